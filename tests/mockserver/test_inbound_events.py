"""Inbound events of the API and of other sources: who their patient is, what they do (sections 2, 4 and 6.1)."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import EventBatchError, FollowUp, inbound
from followup_mockserver import MockService

PHONE = "+5491155550000"
OTHER_PHONE = "+5491155550009"


def send(client: FollowUp, type: str, data: Any, id: str = "e-1") -> Any:
    (result,) = client.events.create({"id": id, "type": type, "data": data}).results  # type: ignore[typeddict-item]
    return result


def rejected(client: FollowUp, type: str, data: Any) -> Any:
    with pytest.raises(EventBatchError) as caught:
        send(client, type, data)
    return caught.value.results[0]


@pytest.mark.parametrize(
    "more", [{}, {"dni": "30123456"}, {"phone": OTHER_PHONE}, {"phone": OTHER_PHONE, "dni": "30123456"}]
)
def test_section_6_1_an_upsert_finds_by_external_id_whatever_else_is_sent(client: FollowUp, more: Any) -> None:
    patient = client.patients.create(phone=PHONE, external_id="P-1")
    result = send(client, "patient.upserted", {"patient": {"externalId": "P-1", "fullName": "Ana", **more}})
    assert result.result.id == patient.id
    (found,) = client.patients.list()
    assert (found.phone, found.full_name, found.dni) == (PHONE, "Ana", more.get("dni"))


def test_section_6_1_another_event_finds_its_patient_by_external_id_and_fills_what_was_missing(
    client: FollowUp,
) -> None:
    patient = client.patients.create(phone=PHONE, full_name="Ana", external_id="P-1")
    details = {"externalId": "P-1", "phone": OTHER_PHONE, "dni": "30123456", "fullName": "Eva"}
    data = {"patient": details, "visit": {"visitedAt": "2026-09-28T11:00:00Z"}}
    assert send(client, "visit.completed", data).status == "processed"
    (found,) = client.patients.list()
    assert (found.id, found.phone, found.full_name, found.dni) == (patient.id, PHONE, "Ana", "30123456")


def test_the_first_match_decides_phone_then_dni_then_external_id(client: FollowUp) -> None:
    made = [
        client.patients.create(phone=f"+549115555000{number}", dni=str(number), external_id=f"P-{number}").id
        for number in range(3)
    ]

    def found(id: str, **details: str) -> str:
        data = {"patient": details, "treatment": {"name": "rest"}}
        return client.treatments.retrieve(send(client, "treatment.prescribed", data, id).result.id).patient

    assert found("1", externalId="P-2", dni="1", phone="+5491155550000") == made[0]
    assert found("2", externalId="P-2", dni="1", phone=OTHER_PHONE) == made[1]
    assert found("3", externalId="P-2", dni="9", phone=OTHER_PHONE) == made[2]
    assert sorted(made) == sorted(each.id for each in client.patients.list())


def test_an_intake_event_looks_by_phone_and_dni_only(client: FollowUp) -> None:
    known = client.patients.create(phone=PHONE, external_id="P-1")
    send(client, "intake.requested", {"patient": {"externalId": "P-1", "phone": OTHER_PHONE}})
    (request,) = client.intake_requests.list()
    assert request.patient not in (None, known.id)


def test_a_patient_whom_nobody_knows_is_named(client: FollowUp) -> None:
    unknown = rejected(client, "patient.upserted", {"patient": {"externalId": "P-9", "fullName": "Ana"}})
    assert (unknown.status, unknown.error.partition(": ")[0]) == ("failed", "data.patient.externalId")
    nameless = rejected(client, "patient.upserted", {"patient": {"fullName": "Ana"}})
    assert (nameless.status, nameless.error.partition(": ")[0]) == ("invalid", "data.patient.phone")
    assert [*client.patients.list()] == []


def test_null_in_the_data_of_an_event_is_the_same_as_absent(client: FollowUp) -> None:
    client.patients.create(phone=PHONE, full_name="Ana", email="ana@mail.example")
    patient = {"phone": PHONE, "fullName": None, "email": None, "dni": None, "dateOfBirth": None}
    appointment = {"startAt": "2026-10-05T12:00:00Z", "doctor": None, "type": None, "externalId": None}
    data = {"patient": patient, "appointment": appointment, "visit": None}
    assert send(client, "appointment.created", data, "1").status == "processed"
    assert client.events.list().data[0].data == data, "it is stored untouched"
    assert send(client, "patient.upserted", {"patient": patient}, "2").status == "processed"
    (kept,) = client.patients.list()
    assert (kept.full_name, kept.email) == ("Ana", "ana@mail.example")
    intake = {"patient": {"phone": PHONE}, "contacts": None, "coverage": {"insurer": "Salud Sur", "plan": None}}
    assert send(client, "intake.requested", intake, "3").status == "processed"
    assert client.intake_requests.list().data[0].data["coverage"] == {"insurer": "Salud Sur"}


def test_null_for_a_required_key_is_a_missing_one(client: FollowUp) -> None:
    result = rejected(client, "appointment.created", {"patient": {"phone": PHONE}, "appointment": {"startAt": None}})
    assert (result.status, result.error) == ("invalid", "data.appointment.startAt: This field is required.")


@pytest.mark.parametrize(
    "again",
    [
        {"type": "patient.upserted", "data": {}},
        {"type": "patient.upserted", "data": {"patient": {"phone": "x"}}},
        {"type": "no.such", "data": {}},
        {"data": None},
        {"type": "visit.completed", "data": {}, "unknown": 1},
        {},
    ],
)
def test_section_4_an_accepted_id_is_a_duplicate_whatever_comes_with_it(api: Api, again: Any) -> None:
    event = {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"phone": PHONE}}}
    (first,) = api.post("/v1/events", event).json()["results"]
    response = api.post("/v1/events", {"id": "e-1", **again})
    assert response.status_code == 200
    (result,) = response.json()["results"]
    assert (result["accepted"], result["status"]) == (True, "duplicate")
    assert (result["event"], result["result"]) == (first["event"], first["result"])


def test_a_failed_event_sent_again_did_not_occur_after_it_was_received(client: FollowUp, service: MockService) -> None:
    cancel = {"appointment": {"externalId": "A-1"}}
    failed = rejected(client, "appointment.cancelled", cancel)
    service.advance(hours=1)
    client.appointments.create(patient={"phone": PHONE}, start_at="2026-10-05T12:00:00Z", external_id="A-1")
    send(client, "appointment.cancelled", cancel)
    stored = client.events.retrieve(failed.event)
    assert stored.status == "processed"
    assert stored.occurred_at == stored.received_at < service.clock.now
    assert stored.processed_at == service.clock.now


@pytest.mark.parametrize(
    ("type", "data", "wrong", "right"),
    [
        ("patient.upserted", {"patient": {"phone": PHONE, "full_name": "Ana"}}, "data.patient.full_name", "fullName"),
        ("patient.upserted", {"Patient": {}, "patient": {"phone": PHONE}}, "data.Patient", "patient"),
        (
            "intake.requested",
            {"patient": {"phone": PHONE}, "contacts": [{"name": "Eva", "ph-one": PHONE}]},
            "data.contacts[0].ph-one",
            "phone",
        ),
        (
            "intake.requested",
            {"patient": {"phone": PHONE}, "requested_service": "nursing"},
            "data.requested_service",
            "requestedService",
        ),
    ],
)
def test_another_spelling_of_a_key_that_is_used_there_is_invalid(
    api: Api, type: str, data: Any, wrong: str, right: str
) -> None:
    response = api.post("/v1/events", {"id": "e-1", "type": type, "data": data})
    assert problem(response) == (400, "events_invalid", None)
    (result,) = response.json()["results"]
    assert result["error"].startswith(f"{wrong}: ")
    assert right in result["error"]
    assert api.get("/v1/events").json()["data"] == []


def test_a_key_that_no_rule_uses_may_be_spelt_as_one_of_another_place(client: FollowUp) -> None:
    data = {"patient": {"phone": PHONE, "visited_at": "x", "notes": 1}, "full_name": "x"}
    assert send(client, "patient.upserted", data).status == "processed"
    order = {"patient": {"full_name": "Ana"}, "order": {"Kind": "lab"}}
    assert send(client, "order.issued", order, "2").status == "unhandled"


PATIENT: Any = {"phone": "+5491155550000", "full_name": "Ana Pérez"}
START = "2026-10-05T12:00:00Z"
VISITED = "2026-09-28T11:00:00Z"


def booked(id: str = "1", **fields: Any) -> Any:
    return inbound.appointment_created(id=id, patient=PATIENT, start_at=START, external_id="A-1", **fields)


def sent_types(service: MockService) -> list[str]:
    return [each.event_type for each in reversed(service.deliveries)]


@pytest.mark.parametrize(
    ("source", "appointment", "visit"),
    [
        ("pms", "pms", "pms"),
        ("import", "pms", "pms"),
        ("email", "agent", "manual"),
        ("tool", "agent", "manual"),
        ("manual", "manual", "manual"),
    ],
)
def test_section_6_1_an_event_of_any_source_is_stored_and_processed(
    client: FollowUp, service: MockService, source: Any, appointment: str, visit: str
) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    event = service.receive_event(booked("B-1"), source=source)
    service.receive_event(inbound.visit_completed(patient=PATIENT, visited_at=VISITED), source=source)
    assert event == client.events.retrieve(event.id)
    assert (event.source, event.source_ref, event.status, event.error) == (source, "B-1", "processed", None)
    assert [each.id for each in client.events.list(source=source, type="appointment.created")] == [event.id]
    assert client.events.list(source="api").data == []
    (made,) = client.appointments.list()
    assert (made.source, made.status, event.result and event.result.id) == (appointment, "confirmed", made.id)
    assert client.visits.list().data[0].source == visit
    assert len(service.reminders) == 2
    assert sent_types(service) == ["patient.upserted", "appointment.created", "visit.completed"]


def test_an_event_is_identified_by_source_and_id(client: FollowUp, service: MockService) -> None:
    first = service.receive_event(booked("7"), source="pms")
    service.advance(minutes=1)
    assert service.receive_event(booked("7", occurred_at=VISITED), source="pms") == first
    other = service.receive_event(inbound.visit_completed(id="7", patient=PATIENT, visited_at=VISITED), source="tool")
    assert other.id != first.id
    assert client.events.create(inbound.patient_upserted(id="7", patient=PATIENT)).results[0].status == "processed"
    assert len(client.events.list().data) == 3
    assert len(client.appointments.list().data) == 1


def test_an_order_is_unhandled_and_its_webhook_not_sent_until_it_is_activated(
    client: FollowUp, service: MockService
) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["order.issued"])
    order: Any = {"kind": "lab", "items": ["blood count"]}
    stranger = inbound.order_issued(patient={"phone": "+5491155559999"}, order=order)
    assert service.receive_event(stranger, source="pms").status == "unhandled"
    client.events.create(inbound.order_issued(patient=PATIENT, order=order))
    assert service.deliveries == []
    assert client.patients.list().data == []
    service.update_organization(activated_events=["order.issued"])
    ana = client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")
    known = service.receive_event(inbound.order_issued(patient=PATIENT, order=order), source="pms")
    unknown = service.receive_event(stranger | {"id": "another"}, source="pms")
    about_unknown, about_known = service.deliveries
    assert (about_known.payload["ref"], about_unknown.payload["ref"]) == (known.id, unknown.id)
    assert about_known.payload["data"]["order"] == about_unknown.payload["data"]["order"] == order
    assert about_known.payload["data"]["patient"]["id"] == ana.id
    assert about_unknown.payload["data"]["patient"] == {"phone": "+5491155559999"}


@pytest.mark.parametrize(
    ("event", "source", "text"),
    [
        (booked(), "api", "source must be one of pms, email, tool, manual, import"),
        ([booked()], "pms", "event must be one event, as a function of followup.inbound returns it"),
        ({"id": "", "type": "order.issued", "data": {}}, "pms", "event must be a valid event (id: "),
        ({"id": "1", "type": "order.paid", "data": {}}, "pms", "event must be a valid event (type: "),
        ({"id": "1", "type": "visit.completed", "data": {}}, "pms", "event must be a valid event (data.patient: "),
        ({"id": "1", "type": "order.issued", "data": {"at": object()}}, "pms", "event must be an object of JSON"),
    ],
)
def test_an_invalid_event_is_a_value_error_and_not_stored(
    client: FollowUp, service: MockService, event: Any, source: Any, text: str
) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        service.receive_event(event, source=source)
    assert str(caught.value).startswith(text)
    assert client.events.list().data == []


def test_over_http(api: Api, client: FollowUp) -> None:
    event = {
        "id": "B-1",
        "type": "appointment.created",
        "occurredAt": "2026-09-28T09:00:00-03:00",
        "data": {"patient": {"phone": "+5491155550000"}, "appointment": {"startAt": START, "externalId": "A-1"}},
    }
    stored = api.post("/_mock/events", {"event": event, "source": "import"}).json()
    assert (stored["source"], stored["sourceRef"], stored["status"]) == ("import", "B-1", "processed")
    assert (stored["data"], stored["occurredAt"]) == (event["data"], "2026-09-28T12:00:00.000Z")
    assert stored == api.get(f"/v1/events/{stored['id']}").json()
    assert api.post("/_mock/events", {"event": event, "source": "import"}).json() == stored
    for body, param in [
        ({"event": event}, "source"),
        ({"source": "pms"}, "event"),
        ({"event": event, "source": "api"}, "source"),
        ({"event": {**event, "id": "2", "type": "visit.done"}, "source": "pms"}, "event.type"),
        ({"event": {**event, "id": "2", "data": {"patient": {}}}, "source": "pms"}, "event"),
    ]:
        status, _, where = problem(api.post("/_mock/events", body))
        assert (status, where) == (400, param)
    assert len(client.events.list().data) == 1
