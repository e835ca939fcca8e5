"""Inbound events: their ids, the keys of their data, and what they do to an appointment (sections 4 and 6.1)."""

from typing import Any

import pytest
from contract.live import DATA_OF_EVENTS
from support.http import Api

from followup import EventBatchError, FollowUp
from followup_mockserver import MockService

PATIENT = {"phone": "+5491155550000", "fullName": "Ana"}
BOOKING = {"startAt": "2026-10-05T12:00:00Z", "externalId": "A-1"}
VISIT = {"patient": PATIENT, "visit": {"visitedAt": "2026-09-28T11:00:00Z", "externalId": "V-1"}}


def event(type: str = "visit.completed", data: Any = None, id: str = "e-1", **fields: Any) -> Any:
    return {"id": id, "type": type, "data": VISIT if data is None else data, **fields}


MISPLACED = {"patient": PATIENT, "doctor": {"externalId": "D-1"}, "appointment": BOOKING}


def test_keys_that_the_service_does_not_read_are_in_the_journal() -> None:
    with MockService(refuse_unknown_fields=False) as service, service.client(max_retries=0) as client:
        events: Any = [
            event("appointment.created", MISPLACED, "1"),
            event("order.issued", {"order": {"paint": "red"}, "patient": {"paint": "red"}}, "2"),
            event("patient.upserted", {"patient": {**PATIENT, "full_name": "Eva", "shoe": {"size": 5}}}, "3"),
            event("intake.requested", {"contacts": [{"name": "Eva"}, {"name": "Ana", "age": 5}], "gone": None}, "4"),
            event("appointment.cancelled", {"appointment": {"externalId": "A-9", "paint": "red"}}, "5"),
        ]
        client.events.create(events)
        paths = ["events[0].data.doctor", "events[2].data.patient.full_name", "events[2].data.patient.shoe"]
        assert service.requests[0].ignored_keys == (*paths, "events[3].data.contacts[1].age")
        client.events.create(events)
        assert service.requests[0].ignored_keys == (), "duplicates are not read"
        client.events.create({**events[0], "id": "6"})
        assert service.requests[0].ignored_keys == ("data.doctor",)
        service.receive_event(event("appointment.created", MISPLACED, "7"), source="pms")
        client.patients.list()
        assert service.requests[0].ignored_keys == ()
        entry = client.events.list(type="appointment.created").data[0]
        assert entry.data["doctor"] == {"externalId": "D-1"}, "it is stored all the same"


BEGUN = {"patient": PATIENT, "appointment": {"startAt": "2026-10-05T12:00:00Z"}}
MISPLACED_KEYS = [
    ("appointment.created", {**BEGUN, "startAt": "2026-10-06T12:00:00Z"}, "startAt", "appointment.startAt"),
    ("appointment.created", {**BEGUN, "fullName": "Eva"}, "fullName", "patient.fullName"),
    ("appointment.created", {**BEGUN, "externalId": "x"}, "externalId", "patient.externalId or appointment.externalId"),
    (
        "appointment.rescheduled",
        {"appointment": BOOKING, "startAt": "2026-10-06T12:00:00Z"},
        *["startAt", "appointment.startAt"],
    ),
    (
        "appointment.cancelled",
        {"appointment": {"externalId": "A-1", "reason": "y"}, "reason": "x"},
        *["reason", "appointment.reason"],
    ),
    ("visit.completed", {**VISIT, "appointment": {"externalId": "A-1"}}, "appointment", "visit.appointment"),
    ("intake.requested", {"patient": PATIENT, "coverage": {"plan": "1"}, "plan": "2"}, "plan", "coverage.plan"),
]


@pytest.mark.parametrize(("type", "data", "key", "place"), MISPLACED_KEYS)
def test_a_misplaced_key_is_invalid_and_names_its_place(type: str, data: Any, key: str, place: str) -> None:
    with MockService() as service, service.client(max_retries=0) as client:
        client.appointments.create(patient={"phone": "+5491155550000"}, start_at=BOOKING["startAt"], external_id="A-1")
        with pytest.raises(EventBatchError) as caught:
            client.events.create(event(type, data))
        (result,) = caught.value.results
        assert (result.status, result.error) == (
            "invalid",
            f"data.{key}: There is no such field; did you mean {place}?",
        )
    with MockService(refuse_unknown_fields=False) as service, service.client(max_retries=0) as client:
        client.appointments.create(patient={"phone": "+5491155550000"}, start_at=BOOKING["startAt"], external_id="A-1")
        assert client.events.create(event(type, data)).results[0].status == "processed"
        assert service.requests[0].ignored_keys == (f"data.{key}",)


ABOUT_AN_APPOINTMENT = DATA_OF_EVENTS | {
    "appointment.created": {"patient": PATIENT, "appointment": BOOKING},
    "visit.completed": {"patient": PATIENT, "visit": {**VISIT["visit"], "appointment": "A-1"}},
}
OTHERS = {"treatment.prescribed": "processed", "order.issued": "unhandled"}
OTHERS |= {"patient.upserted": "processed", "intake.requested": "processed"}
OPEN, CLOSED = ("pending", "rescheduled"), ("cancelled", "completed")
CELLS = [
    # type, states of the appointment; status of the result, state afterwards, whether a webhook of the type is sent
    *[(type_, (None, "confirmed", "cancelled"), status, "", None) for type_, status in OTHERS.items()],
    ("appointment.created", (None,), "processed", "confirmed", True),
    ("appointment.created", ("confirmed", *OPEN, *CLOSED), "processed", "", False),
    ("appointment.rescheduled", (None,), "failed", "", False),
    ("appointment.rescheduled", ("confirmed", *OPEN), "processed", "rescheduled", True),
    ("appointment.rescheduled", CLOSED, "invalid", "", False),
    ("appointment.cancelled", (None,), "failed", "", False),
    ("appointment.cancelled", ("confirmed", *OPEN, "completed"), "processed", "cancelled", True),
    ("appointment.cancelled", ("cancelled",), "processed", "", False),
    ("visit.completed", (None,), "failed", "", False),
    ("visit.completed", ("confirmed", *OPEN), "processed", "completed", True),
    ("visit.completed", CLOSED, "processed", "", True),
]


def book(service: MockService, state: str | None) -> None:
    """Book an appointment that has this state; None: book none."""
    if state is None:
        return
    status: Any = "pending" if state == "pending" else "confirmed"
    patient, start = {"phone": "+5491155550000"}, "2026-10-05T12:00:00Z"
    made = service.add_appointment(patient=patient, start_at=start, external_id="A-1", source="pms", status=status)  # type: ignore[arg-type]
    if state == "rescheduled":
        service.reschedule_appointment(made.id, start_at="2026-10-07T12:00:00Z")
    elif state == "cancelled":
        service.cancel_appointment(made.id)
    elif state == "completed":
        service.add_visit(patient=made.patient, visited_at="2026-09-28T11:00:00Z", appointment="A-1")


@pytest.mark.parametrize(
    ("type", "state", "status", "after", "is_sent"),
    [(type_, state, *rest) for type_, states, *rest in CELLS for state in states],
)
def test_each_type_of_event_on_each_state_of_an_appointment(
    service: MockService, client: FollowUp, type: str, state: str | None, status: str, after: str, is_sent: bool | None
) -> None:
    client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=[type])  # type: ignore[list-item]
    book(service, state)
    before, sent = [each.to_dict() for each in client.appointments.list()], len(service.deliveries)
    service.advance(seconds=1)
    try:
        (result,) = client.events.create(event(type, ABOUT_AN_APPOINTMENT[type])).results
    except EventBatchError as error:
        (result,) = error.results
    appointments = [each.to_dict() for each in client.appointments.list()]
    assert result.status == status
    if after:
        assert [each["status"] for each in appointments] == [after]
    else:
        assert appointments == before, "nothing has changed"
    assert is_sent is None or len(service.deliveries) - sent == is_sent


ANA_AGAIN = {"patient": PATIENT, "note": {"size": 1, "colour": "red"}}


@pytest.mark.parametrize(
    ("resent", "is_changed"),
    [
        ({}, False),
        ({"data": {"note": {"colour": "red", "size": 1.0}, "patient": {"fullName": "Ana", **PATIENT}}}, False),
        ({"data": {**ANA_AGAIN, "gone": None}, "occurredAt": "2026-09-28T11:00:00Z"}, False),
        ({"data": {**ANA_AGAIN, "patient": {**PATIENT, "fullName": "Ana María"}}}, True),
        ({"data": {**ANA_AGAIN, "note": {"size": 1, "colour": ["red"]}}}, True),
        ({"type": "order.issued"}, True),
        ({"data": None}, True),
    ],
)
def test_a_duplicate_with_other_data_is_marked(
    service: MockService, api: Api, resent: dict[str, Any], is_changed: bool
) -> None:
    accepted = event("patient.upserted", ANA_AGAIN)
    (first,) = api.post("/v1/events", accepted).json()["results"]
    (again,) = api.post("/v1/events", {**accepted, **resent}).json()["results"]
    assert again == {**first, "status": "duplicate"}, "on the wire it is a duplicate like any other"
    call = api.get("/_mock/requests").json()["data"][0]
    assert call.get("changedDuplicates") == (["e-1"] if is_changed else None)
    loaded = MockService.load(service.save())
    for mock in (service, loaded):
        marks = [each for each in mock.explain(first["event"]) if each.kind == "event.resent"]
        assert [each.outcome for each in marks] == [NOT_TAKEN_OVER] * is_changed
    assert [each.cause for each in marks] == [call["requestId"]] * is_changed
    with loaded.client() as client:
        client.events.create({**accepted, "data": {"patient": {"phone": "+5491155550009"}}})
    assert loaded.requests[0].changed_duplicates == ("e-1",)


NOT_TAKEN_OVER = (
    "duplicate with other data: the change was not taken over; the id of an event must contain what changes"
)


def test_duplicates_with_other_data_in_batches_and_from_other_sources(service: MockService, client: FollowUp) -> None:
    def named(name: str, id: str = "e-1") -> Any:
        return event("patient.upserted", {"patient": {**PATIENT, "fullName": name}}, id)

    client.events.create([named("Ana"), named("Eva"), named("Ana"), named("Ana", "e-2")])
    assert service.requests[0].changed_duplicates == ("e-1",)
    service.add_fault(operation="events.create", kind="event")
    with pytest.raises(EventBatchError):
        client.events.create(named("Eva", "e-3"))
    client.events.create(named("Ida", "e-3"))
    assert service.requests[0].changed_duplicates == (), "a failed event is processed with its new data"
    (patient,) = client.patients.list()
    (lost,) = [each.id for each in service.explain(patient.id) if each.kind == "event.resent"]
    assert client.events.retrieve(lost).source_ref == "e-1", "the chain of the patient shows the lost change too"
    stored = service.receive_event(named("Eva", "P-1"), source="pms")
    service.receive_event(named("Ana", "P-1"), source="pms")
    assert [each.outcome for each in service.explain(stored.id) if each.kind == "event.resent"] == [NOT_TAKEN_OVER]
