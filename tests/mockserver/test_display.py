"""``repr`` of the mock, of its controls, and of what its lists contain: short, useful, and without personal data."""

import subprocess
import sys
from datetime import timedelta

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockServer, MockService


def test_a_new_service_shows_its_url_and_its_clock() -> None:
    assert repr(MockService(start_time="2026-09-28T12:00:00Z")) == (
        "<MockService http://followup.mock, 2026-09-28T12:00:00.000Z (frozen)>"
    )


def test_a_running_clock_is_not_shown_as_frozen() -> None:
    with MockServer() as server:
        assert repr(server).startswith(f"<MockServer {server.url}, 20")
        assert "frozen" not in repr(server)


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


def test_entries_of_lists_are_short_and_without_personal_data(service: MockService, client: FollowUp) -> None:
    use(service, client)
    lists = {
        "requests": service.requests,
        "deliveries": service.deliveries,
        "attempts": service.attempts(service.deliveries[-1].id),
        "messages": service.messages,
        "jobs": service.jobs,
        "reminders": service.reminders,
        "faults": [*service.faults, *service.webhook_faults],
        "clock": [service.clock, service.advance()],
    }
    for name, entries in lists.items():
        assert entries, name
        for entry in entries:
            assert len(repr(entry)) <= 320, name
            for hidden in ("Ana", "5555", "datetime.datetime", "sha256="):
                assert hidden not in repr(entry)


def test_an_entry_of_the_journal_reads_like_a_request(service: MockService, client: FollowUp) -> None:
    client.account.retrieve()
    (call,) = service.requests
    assert repr(call) == f"<JournalEntry 200 GET /v1/account at 2026-09-28T12:00:00.000Z, {call.request_id}>"
    client.patients.create(phone="+5491155550000", idempotency_key="mine")
    assert repr(service.requests[0]).endswith(", idempotency key mine>")


def test_results_show_times_as_text(client: FollowUp) -> None:
    assert "created_at=2026-09-28T12:00:00Z" in repr(client.patients.create(phone="+5491155550000"))


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


@pytest.mark.parametrize("logging", ["", "import logging; logging.basicConfig(level=0)"])
def test_a_server_that_stops_during_a_delayed_call_prints_nothing(logging: str) -> None:
    code = f"""
{logging}
import contextlib, threading, time
from followup_mockserver import MockServer
with MockServer(rate_limit=0) as server:
    server.add_fault(operation="*", kind="delay", seconds=3600)
    def call():
        with server.client(max_retries=0) as client, contextlib.suppress(Exception):
            client.account.retrieve()
    thread = threading.Thread(target=call)
    thread.start()
    while server.faults:
        time.sleep(0.01)
thread.join()
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "still running" not in run.stderr
    assert logging or not run.stderr
