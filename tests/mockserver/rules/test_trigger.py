"""Webhooks that a test triggers: about the newest object that fits, or about an invented one that is made for them."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from contract.specification import RESULTS

from followup import FollowUp, WebhookEvent, construct_event
from followup_mockserver import MockService
from followup_mockserver.rules.triggered_events import examples

FIELDS = {
    part: {each.name for each in RESULTS[part[0].upper() + part[1:]] if each.required}
    for part in ("patient", "appointment", "visit", "treatment", "intakeRequest", "webhookEndpoint")
}
"""The fields of the resources; a secret is shown by the creation alone."""

EMPTY = {
    "appointment.created": {"cancelledAt"},
    "appointment.rescheduled": {"cancelledAt"},
    "intake.requested": {"discardReason", "readyAt", "loadedAt", "closedAt"},
    "intake.created": {"discardReason", "readyAt", "loadedAt", "closedAt"},
    "webhook.ping": {"description", "lastDeliveredAt", "lastError"},
}
"""The fields that are null in the object of an event, because of its state."""

PARTS = {
    "intake.requested": ("int_", {"intakeRequest", "patient"}),
    "patient.upserted": ("pat_", {"patient"}),
    "appointment.created": ("apt_", {"appointment", "patient"}),
    "appointment.rescheduled": ("apt_", {"appointment", "patient"}),
    "appointment.cancelled": ("apt_", {"appointment", "patient"}),
    "visit.completed": ("vis_", {"visit", "patient"}),
    "treatment.prescribed": ("trt_", {"treatment", "patient"}),
    "order.issued": ("evt_", {"order", "patient"}),
    "intake.created": ("int_", {"intakeRequest", "patient"}),
    "intake.ready": ("int_", {"intake", "patient", "requestedService"}),
    "conversation.handoff": ("pat_", {"conversation", "patient"}),
    "patient.silent": ("pat_", {"patient"}),
    "webhook.ping": ("we_", {"webhookEndpoint"}),
}
"""The prefix of the object that ``ref`` names, and the parts of the data."""

PHONE = "+5491155550000"
URL = "https://clinic.example/hooks"
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)

each_type = pytest.mark.parametrize("type", PARTS)


@pytest.fixture(autouse=True)
def received(service: MockService, client: FollowUp) -> list[WebhookEvent]:
    """The webhooks that a receiver of all types has verified, oldest first."""
    secret = client.webhook_endpoints.create(url=URL, enabled_events=["*"]).secret or ""
    events: list[WebhookEvent] = []

    def receive(request: httpx.Request) -> httpx.Response:
        events.append(construct_event(request.content, request.headers, secret))
        return httpx.Response(204)

    service.mount(URL, receive)
    return events


def triggered(service: MockService, type: Any) -> Any:
    (delivery,) = service.trigger(type=type)
    return delivery.payload


@each_type
def test_section_2_an_event_and_its_objects_are_complete(service: MockService, type: str) -> None:
    for data in (examples()[type], triggered(service, type)["data"]):
        _, parts = PARTS[type]
        assert {*data} == parts
        for part in parts & {*FIELDS} if type != "intake.ready" else ():
            assert {*data[part]} == FIELDS[part]
            empty = {name for name, value in data[part].items() if value is None}
            assert empty == (EMPTY.get(type, set()) if part != "patient" else set())
        for part in parts & {*FIELDS} - {"patient"}:
            assert data[part].get("patient") == data.get("patient", {}).get("id")


@each_type
def test_section_6_2_the_object_that_ref_names_can_be_retrieved(
    client: FollowUp, service: MockService, received: list[WebhookEvent], type: str
) -> None:
    payload = triggered(service, type)
    service.advance()
    (event,) = received
    assert (event.type, event.ref, event.data) == (type, payload["ref"], payload["data"])
    assert event.ref.startswith(PARTS[type][0])
    found = event.retrieve(client)
    assert found.id == event.ref
    in_data = event.appointment or event.visit or event.treatment or event.intake_request
    assert in_data is None or in_data.id == event.ref
    if "patient" in event.data and type != "intake.ready":
        assert event.patient == client.patients.retrieve(event.patient.id if event.patient else "")
    service.advance(days=10)
    assert len(received) == len(service.deliveries) == 1  # nothing is sent about what was made for it


@each_type
def test_own_data_without_an_id_still_has_a_ref_that_can_be_retrieved(
    client: FollowUp, service: MockService, received: list[WebhookEvent], type: Any
) -> None:
    for data in ({"x": 1}, {"appointment": None, "patient": "Ana", "order": {"id": 5}}):
        service.trigger(type, data=data)
    service.advance()
    assert [each.data for each in received] == [{"x": 1}, {"appointment": None, "patient": "Ana", "order": {"id": 5}}]
    for event in received:
        assert event.retrieve(client).id.startswith(PARTS[type][0])


def test_a_request_is_ready_whatever_the_organization_requires(client: FollowUp, service: MockService) -> None:
    every = [
        "fullName", "dni", "phone", "address", "requestedService", "summary", "hospitalized", "contacts",
        "coverage.insurer", "coverage.plan", "coverage.memberId", "patient.email", "patient.dateOfBirth",
        "patient.externalId", "sender.name", "sender.organization", "sender.email",
    ]  # fmt: skip
    service.update_organization(intake_required=every)
    payload = triggered(service, "intake.ready")
    assert payload["data"]["intake"] == {"id": payload["ref"], "missing": []}


def test_a_wrong_type_is_a_value_error(service: MockService) -> None:
    with pytest.raises(ValueError, match=r"^type must be one of intake\.requested, patient\.upserted, "):
        service.trigger("appointment.canceled")  # type: ignore[arg-type]
