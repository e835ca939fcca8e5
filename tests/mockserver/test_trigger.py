"""Webhooks that a test triggers: about the newest object that fits, or an example with all fields of the resource."""

from typing import Any

import pytest

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.webhooks.examples import examples

FIELDS = {
    "patient": "id object fullName phone email dni externalId dateOfBirth stage optedOut createdAt updatedAt",
    "appointment": "id object patient doctor startAt status type externalId source cancelledAt createdAt updatedAt",
    "visit": ("id object patient doctor appointment visitedAt type diagnosis notes externalId source createdAt"),
    "treatment": (
        "id object patient kind name dosage frequency instructions startDate endDate active createdAt updatedAt"
    ),
    "intakeRequest": (
        "id object status patient summary missing data discardReason readyAt loadedAt closedAt createdAt updatedAt"
    ),
    "webhookEndpoint": "id object url description enabledEvents status lastDeliveredAt lastError createdAt",
}
"""The fields of the resources (specification, section 2); a secret is shown by the creation alone."""

PARTS = {
    "intake.requested": ["intakeRequest", "patient"],
    "patient.upserted": ["patient"],
    "appointment.created": ["appointment", "patient"],
    "appointment.rescheduled": ["appointment", "patient"],
    "appointment.cancelled": ["appointment", "patient"],
    "visit.completed": ["visit", "patient"],
    "treatment.prescribed": ["treatment", "patient"],
    "order.issued": ["patient"],
    "intake.created": ["intakeRequest", "patient"],
    "conversation.handoff": ["patient"],
    "patient.silent": ["patient"],
    "webhook.ping": ["webhookEndpoint"],
}
PHONE = "+5491155550000"


@pytest.fixture(autouse=True)
def endpoint(service: MockService, client: FollowUp) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])


def triggered(service: MockService, type: Any) -> Any:
    (delivery,) = service.trigger(type=type)
    return delivery.payload


@pytest.mark.parametrize("type", PARTS)
def test_section_2_an_example_has_all_fields_of_its_resources(service: MockService, type: str) -> None:
    for data in (examples()[type], triggered(service, type)["data"]):
        for part in PARTS[type]:
            assert sorted(data[part]) == sorted(FIELDS[part].split())
    about = examples()[type].get("patient")
    if about is not None:
        for part in PARTS[type][:-1]:
            assert examples()[type][part]["patient"] == about["id"]  # type: ignore[index]


def test_section_6_2_ready_is_never_about_a_request_that_is_not(client: FollowUp, service: MockService) -> None:
    client.intake_requests.create(patient={"phone": PHONE})
    payload = triggered(service, "intake.ready")
    assert payload["data"]["intake"] == {"id": "int_example", "missing": []}
    assert payload["data"]["patient"]["fullName"]
    ready = client.intake_requests.create(
        patient={"phone": PHONE, "full_name": "Ana", "dni": "30123456"},
        coverage={"insurer": "Salud Sur"},
        address="Calle 1",
        requested_service="nursing",
    )
    client.intake_requests.create(patient={"phone": "+5491155550001"})
    assert triggered(service, "intake.ready")["data"]["intake"] == {"id": ready.id, "missing": []}
    service.load_intake_request(ready.id)
    assert triggered(service, "intake.ready")["data"]["intake"]["id"] == "int_example"


@pytest.mark.parametrize(
    ("type", "fits"),
    [
        ("appointment.created", "confirmed"),
        ("appointment.rescheduled", "rescheduled"),
        ("appointment.cancelled", "cancelled"),
    ],
)
def test_an_appointment_of_another_status_does_not_fit(
    client: FollowUp, service: MockService, type: str, fits: str
) -> None:
    made = {}
    for number, status in enumerate(["confirmed", "rescheduled", "cancelled"]):
        appointment = client.appointments.create(patient={"phone": PHONE}, start_at=f"2026-10-0{number + 1}T12:00:00Z")
        made[status] = appointment.id
    client.appointments.update(made["rescheduled"], start_at="2026-10-09T12:00:00Z")
    client.appointments.cancel(made["cancelled"])
    payload = triggered(service, type)
    assert (payload["ref"], payload["data"]["appointment"]["status"]) == (made[fits], fits)


def test_without_a_fitting_object_it_is_an_example(client: FollowUp, service: MockService) -> None:
    client.appointments.create(patient={"phone": PHONE}, start_at="2026-10-01T12:00:00Z")
    for name in ("appointment.rescheduled", "appointment.cancelled"):
        payload = triggered(service, name)
        assert payload["data"]["appointment"]["id"] == "apt_example"
        assert payload["data"]["appointment"]["status"] == name.removeprefix("appointment.")
