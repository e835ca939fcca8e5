"""Inbound events of other sources, and orders (section 6.1)."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp, inbound
from followup_mockserver import MockService

PATIENT: Any = {"phone": "+5491155550000", "full_name": "Ana Pérez"}
START = "2026-10-05T12:00:00Z"
VISITED = "2026-09-28T11:00:00Z"


def booked(id: str = "1", **fields: Any) -> Any:
    return inbound.appointment_created(id=id, patient=PATIENT, start_at=START, external_id="A-1", **fields)


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
