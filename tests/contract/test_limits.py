"""The limits of section 8 and the schedule of section 6.2, as observed."""

from typing import Any

import httpx
import pytest
from contract import specification as spec
from support.http import Api

from followup import (
    RateLimitError,
    construct_event,
)
from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"
URL = "https://clinic.example/hooks"
SECRET = "whsec_0123456789"


def test_section_8_600_requests_a_minute() -> None:
    limited = MockService(start_time=NOON)
    with limited.client(max_retries=0) as client:
        for _ in range(spec.REQUESTS_PER_MINUTE):
            client.account.retrieve()
        with pytest.raises(RateLimitError) as caught:
            client.account.retrieve()
        assert caught.value.type == "rate_limit_error"
        assert caught.value.retry_after is not None
        limited.advance(seconds=60)
        client.account.retrieve()


def test_section_8_an_attempt_has_10_seconds() -> None:
    # That attempts end then is proved with shorter limits; here is the limit that users get.
    assert MockService._attempt_timeout == MockServer._attempt_timeout == spec.WEBHOOK_ATTEMPT_SECONDS


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
