"""The limits of section 8 and the schedule of section 6.2, as observed."""

from typing import Any

import httpx
import pytest
from contract import specification as spec
from contract.live import LiveService
from support.http import Api

from followup import (
    construct_event,
)
from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"
URL = "https://clinic.example/hooks"
EVENTS_CREATE = next(each for each in spec.OPERATIONS if each.name == "events.create")


def test_section_8_an_attempt_has_10_seconds() -> None:
    # That attempts end then is proved with shorter limits; here is the limit that users get.
    assert MockService._attempt_timeout == MockServer._attempt_timeout == spec.WEBHOOK_ATTEMPT_SECONDS


@pytest.mark.parametrize("wrapped", [False, True])
def test_section_8_a_batch_has_1_to_100_events(live: LiveService, wrapped: bool) -> None:
    def status(count: int) -> int:
        events = [live.event("order.issued", id=f"e{number}") for number in range(count)]
        return live.send(EVENTS_CREATE, {"events": events} if wrapped else events).status_code

    assert [status(count) for count in (0, 1, 100, 101)] == [400, 200, 200, 400]
    assert spec.EVENTS_PER_BATCH == 100


# --- webhooks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", spec.OUTBOUND_TYPES)
def test_section_6_2_body_and_headers_of_each_type(service: MockService, type: Any) -> None:
    requests: list[httpx.Request] = []
    service.mount(URL, lambda request: requests.append(request) or httpx.Response(204))  # type: ignore[func-returns-value]
    with service.client() as client:
        endpoint = client.webhook_endpoints.create(url=URL, enabled_events=[type])
        service.trigger(type=type)
        service.advance(seconds=0)
        (delivery,) = client.webhook_deliveries.list(webhook_endpoint=endpoint.id)
    (request,) = requests
    assert endpoint.secret is not None
    now = int(request.headers["x-service-timestamp"])
    event = construct_event(request.content, request.headers, endpoint.secret, now=now)
    assert (event.id, event.type, event.api_version) == (delivery.id, type, spec.SERVICE_VERSION)
    assert set(spec.WEBHOOK_HEADERS) <= set(request.headers)
    assert request.headers["user-agent"] == spec.WEBHOOK_USER_AGENT
    assert request.headers["x-service-event-type"] == type
    assert request.headers["x-service-delivery-attempt"] == "1"


def test_section_6_2_which_types_are_sent_by_what_happens(service: MockService, api: Api) -> None:
    types: list[str] = []

    def receive(request: httpx.Request) -> httpx.Response:
        types.append(request.headers["x-service-event-type"])
        return httpx.Response(204)

    service.mount(URL, receive)
    patient = {"phone": "+54 9 11 5555-0000", "fullName": "Ana Pérez", "dni": "30123456"}
    events = [
        {"id": "1", "type": "patient.upserted", "data": {"patient": patient}},
        {"id": "2", "type": "order.issued", "data": {"patient": patient, "order": {}}},
    ]
    with service.client() as client:
        endpoint = client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        assert api.post("/v1/events", events).status_code == 200
        person: Any = {"phone": patient["phone"]}
        appointment = client.appointments.create(patient=person, start_at="2026-10-01T10:00:00Z")
        client.appointments.update(appointment.id, start_at="2026-10-02T10:00:00Z")
        client.appointments.cancel(appointment.id)
        client.visits.create(patient=person, visited_at="2026-09-28T10:00:00Z")
        client.treatments.create(patient=person, name="ibuprofen")
        client.intake_requests.create(
            patient=person, coverage={"insurer": "Salud Sur"}, address="Sur 1", requested_service="nursing"
        )
        client.webhook_endpoints.ping(endpoint.id)
    service.advance(days=10)
    assert set(types) == set(spec.SENT_TYPES)
    assert set(spec.SENT_TYPES) | set(spec.NOT_YET_SENT_TYPES) == set(spec.OUTBOUND_TYPES)
