"""The clock that a test advances, and the jobs that run meanwhile."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockServer, MockService, ServiceError
from followup_mockserver.control import access_to

START = datetime(2026, 10, 1, 12, tzinfo=UTC)


def book(client: FollowUp, **fields: Any) -> str:
    patient = {"phone": "+5491155550000", "full_name": "Ana Pérez"}
    return client.appointments.create(**{"patient": patient, "start_at": START, **fields}).id


class TestClock:
    def test_it_never_goes_back(self, service: MockService) -> None:
        now = service.clock.now
        with pytest.raises(ValueError, match="seconds must be 0 or more: the clock never goes back"):
            service.advance(seconds=-1)
        with pytest.raises(ValueError, match="hours must be 0 or more: the clock never goes back"):
            service.advance(days=1, hours=-1)
        with pytest.raises(
            ValueError,
            match=r"to must be the current time, 2026-09-28T12:00:00\.000Z, or later: the clock never goes back",
        ):
            service.advance(to=now - timedelta(milliseconds=1))
        assert service.advance(to=now).now == now

    def test_the_time_that_it_shows_is_not_past(self) -> None:
        """The wire shows milliseconds; a clock that stands between two of them can be advanced to what it shows."""
        service = MockService(start_time=datetime(2026, 9, 28, 12, 0, 0, 123_456, tzinfo=UTC))
        assert service.advance(to=service.clock.now).now == service.clock.now

    def test_a_running_clock_can_be_moved_forward_and_runs_on(self) -> None:
        service = MockService()
        assert not service.clock.frozen
        before = datetime.now(UTC)
        moved = service.advance(days=1)
        assert timedelta(days=1) <= moved.now - before + timedelta(milliseconds=1) < timedelta(days=1, minutes=1)
        assert service.clock.now >= moved.now

    def test_jobs_run_in_time_order_each_at_its_own_time(self, client: FollowUp, service: MockService) -> None:
        book(client)
        client.visits.create(patient={"phone": "+5491155550000"}, visited_at=START - timedelta(hours=20))
        advanced = service.advance(days=10)
        assert [each.kind for each in advanced.jobs] == ["reminder", "post_visit", "reminder", "stage"]
        assert [each.sent_at for each in service.messages] == [each.at for each in advanced.jobs[:3]]
        assert [each.at for each in advanced.jobs] == sorted(each.at for each in advanced.jobs)

    @pytest.mark.parametrize(
        "options",
        [
            {"seconds": float("inf")},
            {"days": 10**9},
            {"to": "x"},
            {"to": "2026-10-01"},
            {"to": "2026-10-01 12:00:00+00:00"},  # ISO 8601 as Python takes it, but not RFC 3339
            {"to": "9999-12-31T23:59:59Z"},
        ],
    )
    def test_an_invalid_duration_or_time_is_rejected(self, service: MockService, options: Any) -> None:
        with pytest.raises(ServiceError):
            service.advance(**options)

    def test_reset_begins_again(self, client: FollowUp, service: MockService) -> None:
        book(client)
        service.advance(days=1)
        service.add_fault(operation="*", kind="status")
        service.reset()
        assert service.clock.now == datetime(2026, 9, 28, 12, tzinfo=UTC)
        assert (service.faults, service.messages, service.reminders, service.requests) == ([], [], [], [])
        assert [*client.patients.list()] == []
        assert book(client).startswith("apt_")


class TestServer:
    def test_a_long_poll_ends_when_something_comes(self) -> None:
        with MockServer() as server, server.client() as client:
            url, version = f"{server.url}/_mock/changes", access_to(server).tenant.version
            threading.Timer(0.1, lambda: client.account.retrieve()).start()
            response = httpx.get(f"{url}?since={version}&wait=60", timeout=20, trust_env=False)
            assert response.json()["version"] != version
