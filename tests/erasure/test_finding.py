"""Which events ``export`` finds for a person; ``erase`` finds the same."""

import json
from typing import Any

import pytest
from sqlalchemy import Engine
from support.stores import record
from support.webhook_events import body_of, headers_of

from followup import EventInput, PatientInput, inbound
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup_mockserver import MockService

AT = "2030-05-17T14:30:00Z"


def upserted(id: str, **patient: Any) -> EventInput:
    return {"id": id, "type": "patient.upserted", "data": {"patient": patient}, "occurred_at": AT}


def created(id: str, number: str, **patient: Any) -> EventInput:
    known: PatientInput = patient  # type: ignore[assignment]
    return inbound.appointment_created(
        id=id, patient=known, start_at=AT, external_id=number, doctor={"external_id": "P-1", "full_name": "P-1"}
    )


def moved(id: str, number: str) -> EventInput:
    return inbound.appointment_rescheduled(id=id, external_id=number, start_at=AT)


EVENTS = [
    moved("early", "T-1"),  # before the event that says whose it is
    created("mobile", "T-1", phone="+54 9 11 2345-6789", external_id="P-7"),
    upserted("local", phone="011 15-2345-6789"),
    upserted("landline", phone="(011) 2345 6789"),
    upserted("arabic", phone="+٥٤٩١١٢٣٤٥٦٧٨٩"),
    upserted("number", dni=30111222),
    upserted("dotted", dni=" 30.111.222 ", externalId="other"),
    upserted("labelled", dni="DNI 30-111-222"),
    upserted("mail", email=" Ana@Example.org"),
    upserted("P-1", externalId="P-1"),
    upserted("p-1", externalId="p-1"),
    created("family", "T-2", phone="+5491123456789", dni="40999888"),
    moved("family moved", "T-2"),
    created("another", "P-1", phone="+5491188888888", dni="130111222"),
    inbound.visit_completed(id="visit", patient={"external_id": "v"}, visited_at=AT, external_id="V-1"),
    inbound.intake_requested(id="contact", patient={"dni": "50"}, contacts=[{"name": "Ana", "phone": "1123456789"}]),
    inbound.intake_requested(id="sender", sender={"email": "sender@example.org"}, patient={"full_name": "x"}),
    inbound.appointment_cancelled(id="cancelled", external_id="T-3"),
    inbound.order_issued(id="desk", patient={}, order={}),  # another patient, perhaps
    inbound.order_issued(id="by subject", patient={}, order={"a": [[{"b": "T-1"}]]}),
]

SUBJECTS = {"by subject": "appointment:T-1", "mail": "of the front desk", "desk": "of the front desk"}

OF_PHONE = ["early", "mobile", "local", "landline", "arabic", "family", "family moved", "contact", "by subject"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Outbox:
    url = f"sqlite:///{tmp_path_factory.mktemp('finding') / 'clinic.db'}"
    outbox = Outbox(url)
    outbox.create_tables()
    with outbox._database.transaction() as connection:
        for event in EVENTS:
            outbox.record(connection, event, SUBJECTS.get(event["id"]))
        Outbox(url, name="another clinic").record(connection, upserted("elsewhere", phone="+5491123456789"))
    return outbox


@pytest.mark.parametrize(
    ("criteria", "ids"),
    [
        ({"phone": "+54 9 11 2345-6789"}, OF_PHONE),
        ({"phone": "11 15 2345 6789"}, OF_PHONE),  # the country code is in the stored ones
        ({"phone": "+54 11 2345 6789"}, OF_PHONE),
        ({"phone": "+55 11 2345 6789"}, ["landline", "contact"]),  # these have no country code
        ({"dni": "30.111 222"}, ["number", "dotted", "labelled"]),
        ({"email": "ANA@example.ORG "}, ["mail"]),
        ({"external_id": " P-1"}, ["P-1"]),
        ({"external_id": "P-7"}, ["early", "mobile", "by subject"]),
        ({"external_id": "T-1"}, []),
        ({"email": "sender@example.org"}, []),
        ({"dni": "40999888"}, ["family", "family moved"]),
        ({"dni": "40999888", "email": "ana@example.org"}, ["mail", "family", "family moved"]),
    ],
)
def test_events_of_the_outbox(recorded: Outbox, criteria: dict[str, str], ids: list[str]) -> None:
    assert [each["id"] for each in recorded.export(**criteria)] == ids


def test_phones_have_equal_digits_without_the_library(recorded: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("followup._store.person.find_spec", lambda _: None)
    found = [each["id"] for each in recorded.export(phone="+54 9 11 2345-6789")]
    assert found == ["early", "mobile", "arabic", "family", "family moved", "by subject"]


@pytest.mark.parametrize(
    ("criteria", "problem"),
    [
        ({}, "pass at least one of phone, dni, external_id and email"),
        ({"phone": "none"}, "phone must be a non-empty string, with digits"),
        ({"dni": ". "}, "dni must be a non-empty string"),
        ({"external_id": ""}, "external_id must be a non-empty string"),
        ({"email": 5, "phone": "1"}, "email must be a non-empty string"),
    ],
)
def test_invalid_criteria(recorded: Outbox, criteria: dict[str, Any], problem: str) -> None:
    for call in (recorded.export, recorded.erase):
        with pytest.raises(ValueError, match=f"^{problem}$"):
            call(**criteria)


@pytest.mark.on_all
def test_an_export_is_json_in_the_order_of_storing(outbox: Outbox, inbox: Inbox, engine: Engine) -> None:
    event = upserted("e1", phone="+54 9 11 2345-6789", fullName="Ana Núñez")
    record(outbox, engine, event, moved("e2", "T-9"))
    body = body_of("whd_1", data={"patient": {"phone": "+5491123456789"}})
    assert inbox.receive(body, headers_of(body)) == 204
    (sent,), (received,) = outbox.export(phone="5491123456789"), inbox.export(phone="+5491123456789")
    for each, key in ((sent, "recorded_at"), (received, "received_at")):
        assert json.loads(json.dumps(each)) == each
        assert each.pop(key).endswith("+00:00")
    stored = {"id": "e1", "type": "patient.upserted", "data": event["data"], "occurredAt": AT}
    common = {"state": "waiting", "attempts": 0, "error": None}
    assert sent == {"store": "outbox", "id": "e1", "subject": "patient:phone:5491123456789", "event": stored} | common
    about = {"ref": "apt_1", "event": json.loads(body)}
    assert received == {"store": "inbox", "id": "whd_1"} | about | common


def test_webhooks_of_every_type(inbox: Inbox) -> None:
    """What the service sends about one of two patients, by each criterion."""
    service = MockService()
    found: dict[str, list[str]] = {}
    with service.client() as client:
        endpoint = client.webhook_endpoints.create(url="https://clinic.example/", enabled_events=["*"])
    inbox = Inbox(inbox._database.engine, secret=endpoint.secret)
    service.mount("https://clinic.example/", inbox.wsgi_app)
    people = [{"phone": "+5491123456789", "dni": "30111222"}, {"phone": "+5491155550000", "dni": "40999888"}]
    people = [{"full_name": "Ana Quispe", **each} for each in people]
    for number, person in enumerate(people):
        with service.client() as client:
            patient: Any = {
                **person,
                "full_name": "Ana",
                "external_id": f"P-{number}",
                "email": f"{number}@example.org",
            }
            appointment = client.appointments.create(patient=patient, start_at=AT, external_id=f"T-{number}")
            client.appointments.update(appointment.id, start_at="2030-06-17T14:30:00Z")
            client.visits.create(patient=patient, visited_at=AT, appointment=appointment.id)
            client.treatments.create(patient=patient, name="Ibuprofeno")
            intake = client.intake_requests.create(
                patient=patient, coverage={"insurer": "x"}, address="x", requested_service="x"
            )
            client.events.create(inbound.order_issued(patient=patient, order={"number": number}))
            client.appointments.cancel(appointment.id)
            assert intake.status == "ready"
        for each in ("order.issued", "conversation.handoff", "patient.silent", "webhook.ping"):
            service.trigger(each)
        service.advance(seconds=1)
        found[str(number)] = [each.id for each in service.deliveries]
    types = {each.id: each.event_type for each in service.deliveries}
    about_the_first = {each for each in found["0"] if types[each] != "webhook.ping"}
    assert len({types[each] for each in about_the_first}) == 12, about_the_first and {
        types[each] for each in about_the_first
    }
    criteria = {"phone": "11 2345-6789", "dni": "30.111.222", "external_id": "P-0", "email": "0@example.org"}
    for criterion, value in criteria.items():
        assert {each["id"] for each in inbox.export(**{criterion: value})} == about_the_first, criterion
