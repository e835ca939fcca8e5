"""Tests of a user's code, as they use the mock: type checkers accept them, and see exact types."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, assert_type

from hypothesis.strategies import SearchStrategy

from followup import AsyncFollowUp, FollowUp
from followup_mockserver import Fault, MockService, WebhookFault
from followup_mockserver.simulation import Booking, Clinic, simulate
from followup_mockserver.strategies import operation, signed_webhook, webhook_event


def inject_faults(service: MockService) -> None:
    fault = service.add_fault(operation="events.create", kind="event", times=2, skip=1, optional=True)
    assert_type(fault, Fault)
    assert_type(fault.matched, int)
    assert_type(service.disturb(kind="late", optional=True), WebhookFault)
    assert_type(service.unused_faults(), list[Fault | WebhookFault])
    assert_type(service.waits, list[float])
    assert_type(service.organization("fu_test_mock").waits, list[float])


def draw() -> None:
    assert_type(operation("patients.create"), SearchStrategy[tuple[tuple[Any, ...], dict[str, Any]]])
    assert_type(webhook_event(), SearchStrategy[bytes])
    assert_type(webhook_event("intake.ready"), SearchStrategy[bytes])
    assert_type(signed_webhook("whsec_x", "webhook.ping"), SearchStrategy[tuple[bytes, dict[str, str]]])


class Ours(Clinic):
    receiver_url = "https://clinic.example/webhooks"

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.database = folder / "clinic.db"
        assert_type(self.secret, str)
        assert_type(self.async_client, AsyncFollowUp)

    def receiver(self) -> object:
        return print

    def book(self, booking: Booking) -> None:
        assert_type(booking.external_id, str)
        assert_type(booking.phone, str)
        assert_type(booking.full_name, str)
        assert_type(booking.start_at, datetime)

    def reschedule(self, booking: Booking) -> None:
        self.book(booking)

    def cancel(self, booking: Booking) -> None:
        self.book(booking)

    def work(self) -> None:
        assert_type(self.now(), datetime)

    def bookings(self) -> dict[str, datetime | None]:
        return {}

    def handled(self) -> Iterable[str]:
        return []


def judge() -> None:
    simulate(Ours, examples=50, seed=None)
    simulate(Ours, 10)
