"""``repr`` of the mock, of its controls, and of what its lists contain: short, useful, and without personal data."""

from datetime import timedelta

import httpx

from followup import FollowUp
from followup_mockserver import MockService


def test_a_service_shows_how_much_happened(service: MockService, client: FollowUp) -> None:
    use(service, client)
    assert repr(service) == (
        "<MockService http://followup.mock, 2026-09-28T12:02:00.000Z (frozen), "
        "2 API calls, 4 pending jobs, 2 deliveries, 1 message, 2 faults>"
    )


def test_controls_show_their_organization(service: MockService) -> None:
    made = service.create_organization()
    assert repr(service.organization(made.keys[0].value)) == (
        f"<Control of {made.organization.id}, 2026-09-28T12:00:00.000Z (frozen)>"
    )
    assert repr(service.organization("fu_test_unknown")) == "<Control of an unknown API key>"


def use(service: MockService, client: FollowUp) -> None:
    """Make calls, deliveries, a message and faults."""
    service.mount("https://clinic.example", lambda _: httpx.Response(500))
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    client.appointments.create(
        patient={"phone": "+5491155550000", "full_name": "Ana"}, start_at=service.clock.now + timedelta(hours=24)
    )
    service.advance(minutes=2)
    service.add_fault(operation="patients.create", kind="status")
    service.disturb(kind="late")
