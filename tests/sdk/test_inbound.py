"""``followup.inbound``: events that are typed, checked and understood by the service (specification, section 6.1)."""

import inspect
import json
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from contract import specification as spec

from followup import EventInput, inbound
from followup_mockserver import MockService

AT = datetime(2026, 10, 1, 9, 30, tzinfo=timezone(timedelta(hours=-3)))
ON_THE_WIRE = "2026-10-01T12:30:00.000Z"
ANA = {"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez", "date_of_birth": date(1980, 2, 29)}
ANA_ON_THE_WIRE = {"phone": "+54 9 11 5555-0000", "fullName": "Ana Pérez", "dateOfBirth": "1980-02-29"}
LUIS = {"full_name": "Luis Gómez", "external_id": "D-1"}
NAIVE = AT.replace(tzinfo=None)

BUILDERS: dict[str, Callable[..., EventInput]] = {
    each: getattr(inbound, each.replace(".", "_")) for each in spec.INBOUND_TYPES
}
EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "intake.requested": (
        {
            "patient": ANA, "contacts": [{"name": "Eva", "phone": "+54 9 11 5555-0001"}],
            "coverage": {"insurer": "OSDE", "member_id": "1"}, "requested_service": "home care", "hospitalized": False,
            "address": "Calle 1", "summary": "Referred.", "sender": {"name": "Eva", "organization": "Hospital"},
        },
        {
            "patient": ANA_ON_THE_WIRE, "contacts": [{"name": "Eva", "phone": "+54 9 11 5555-0001"}],
            "coverage": {"insurer": "OSDE", "memberId": "1"}, "requestedService": "home care", "hospitalized": False,
            "address": "Calle 1", "summary": "Referred.", "sender": {"name": "Eva", "organization": "Hospital"},
        },
    ),
    "patient.upserted": ({"patient": ANA}, {"patient": ANA_ON_THE_WIRE}),
    "appointment.created": (
        {"patient": ANA, "start_at": AT, "external_id": "T-1", "type": "control", "doctor": LUIS},
        {
            "patient": ANA_ON_THE_WIRE,
            "appointment": {
                "startAt": ON_THE_WIRE, "externalId": "T-1", "type": "control",
                "doctor": {"fullName": "Luis Gómez", "externalId": "D-1"},
            },
        },
    ),
    "appointment.rescheduled": (
        {"external_id": "T-1", "start_at": "2026-10-02T09:30:00Z"},
        {"appointment": {"externalId": "T-1", "startAt": "2026-10-02T09:30:00Z"}},
    ),
    "appointment.cancelled": (
        {"external_id": "T-1", "reason": "moved"}, {"appointment": {"externalId": "T-1", "reason": "moved"}},
    ),
    "visit.completed": (
        {"patient": ANA, "visited_at": AT, "external_id": "V-1", "notes": "Well.", "diagnosis": "None", "type": "x"},
        {
            "patient": ANA_ON_THE_WIRE,
            "visit": {
                "visitedAt": ON_THE_WIRE, "externalId": "V-1", "notes": "Well.", "diagnosis": "None", "type": "x",
            },
        },
    ),
    "treatment.prescribed": (
        {"patient": ANA, "name": "Ibuprofen", "kind": "medication", "frequency": "every 12 h", "start_date": AT},
        {
            "patient": ANA_ON_THE_WIRE,
            "treatment": {
                "name": "Ibuprofen", "kind": "medication", "frequency": "every 12 h", "startDate": ON_THE_WIRE,
            },
        },
    ),
    "order.issued": (
        {"patient": ANA, "order": {"kind": "lab", "anyKey": [1]}},
        {"patient": ANA_ON_THE_WIRE, "order": {"kind": "lab", "anyKey": [1]}},
    ),
}  # fmt: skip
each_type = pytest.mark.parametrize("type", spec.INBOUND_TYPES)


def test_there_is_one_for_each_type_and_nothing_else() -> None:
    assert sorted(inbound.__all__) == sorted(each.replace(".", "_") for each in spec.INBOUND_TYPES)


@each_type
def test_section_6_1_the_event_is_as_on_the_wire(type: str) -> None:
    arguments, data = EXAMPLES[type]
    event = BUILDERS[type](id="mine-1", occurred_at=AT, source={"system": "HIS", "version": "7"}, **arguments)
    assert event == {
        "id": "mine-1", "type": type, "data": data, "occurred_at": ON_THE_WIRE,
        "source": {"system": "HIS", "version": "7"},
    }  # fmt: skip
    assert json.loads(json.dumps(event)) == event, "so that it can be stored"


@each_type
def test_what_is_omitted_or_none_is_not_there(type: str) -> None:
    arguments, data = EXAMPLES[type]
    optional = {
        name: None
        for name, each in inspect.signature(BUILDERS[type]).parameters.items()
        if each.default is None and name not in arguments
    }
    event = BUILDERS[type](**arguments, **optional)
    assert event.keys() == {"id", "type", "data"}
    assert event["data"] == data


@each_type
def test_an_id_is_made_that_is_never_the_same(type: str) -> None:
    ids = [BUILDERS[type](**EXAMPLES[type][0])["id"] for _ in range(2)]
    assert ids[0] != ids[1]
    assert str(uuid.UUID(ids[0])) == ids[0]


@pytest.mark.parametrize(
    ("type", "operation"),
    {
        "intake.requested": "intake_requests.create", "appointment.created": "appointments.create",
        "visit.completed": "visits.create", "treatment.prescribed": "treatments.create",
    }.items(),
)  # fmt: skip
def test_the_arguments_are_those_of_the_operation(type: str, operation: str) -> None:
    declared = inspect.signature(BUILDERS[type]).parameters
    (specified,) = (each for each in spec.OPERATIONS if each.name == operation)
    expected = {snake(field.name): field.required for field in specified.body}
    envelope = {"id", "occurred_at", "source"}
    assert {
        name: each.default is inspect.Parameter.empty for name, each in declared.items() if name not in envelope
    } == expected
    assert envelope < declared.keys()
    assert {each.kind for each in declared.values()} == {inspect.Parameter.KEYWORD_ONLY}


def snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def test_the_service_understands_all_of_them() -> None:
    service = MockService()
    with service.client() as client:
        results = list(client.events.send_all(BUILDERS[each](**EXAMPLES[each][0]) for each in spec.INBOUND_TYPES))
        assert [each.error for each in results] == [None] * 8
        assert [each.status for each in results] == ["processed"] * 7 + ["unhandled"]
        appointment = next(iter(client.appointments.list(external_id="T-1")))
        assert appointment.status == "cancelled"
        assert appointment.start_at == datetime(2026, 10, 2, 9, 30, tzinfo=UTC)
        patient = client.patients.retrieve(appointment.patient)
        assert (patient.full_name, patient.date_of_birth) == ("Ana Pérez", date(1980, 2, 29))
        assert next(iter(client.visits.list(external_id="V-1"))).notes == "Well."
        assert next(iter(client.treatments.list(patient=patient.id))).frequency == "every 12 h"


@pytest.mark.parametrize("type", [each for each in spec.INBOUND_TYPES if "patient" in EXAMPLES[each][0]])
def test_section_6_1_a_patient_is_an_object_and_never_an_id(type: str) -> None:
    with pytest.raises(TypeError, match=r"^patient must be a dict with the keys of PatientInput, not a str$"):
        BUILDERS[type](**EXAMPLES[type][0] | {"patient": "pat_1"})


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: inbound.appointment_created(patient=ANA), TypeError, "start_at"),
        (lambda: inbound.patient_upserted(ANA), TypeError, "positional"),
        (lambda: inbound.patient_upserted(patient=ANA, fullname="A"), TypeError, "fullname"),
        (lambda: inbound.patient_upserted(id=4711, patient=ANA), TypeError, "id must be a string, not an int"),
        (lambda: inbound.patient_upserted(patient=ANA, occurred_at=NAIVE), ValueError, "occurred_at is a naive"),
        (lambda: inbound.appointment_cancelled(external_id=None), TypeError, "external_id must be a string"),
        (lambda: inbound.order_issued(patient=ANA, order=[]), TypeError, "order must be a dict, not a list"),
    ],
)
def test_a_wrong_argument_is_named(build: Callable[[], EventInput], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        build()
