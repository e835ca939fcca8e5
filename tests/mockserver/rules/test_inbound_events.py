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
