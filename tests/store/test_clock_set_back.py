"""The clock of the database is set back: nothing waits until it has caught up."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine
from support.stores import receive, record
from support.times import ManualTime

from followup import FollowUp
from followup._store.leases import retry_wait
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup.outbox.relay import Relay
from followup_mockserver import MockServer

DAY = 86_400.0


@pytest.fixture
def clock(outbox: Outbox, inbox: Inbox) -> ManualTime:
    outbox._clock = inbox._clock = clock = ManualTime()
    return clock


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(rate_limit=0) as server:
        yield server


def value(engine: Engine, query: str) -> Any:
    with engine.connect() as connection:
        return connection.exec_driver_sql(query).scalar_one()


def test_an_event_that_waits_for_its_retry_is_sent(
    outbox: Outbox, engine: Engine, clock: ManualTime, server: MockServer
) -> None:
    record(outbox, engine, "e1")
    server.add_fault(operation="events.create", kind="status", status=500, times=1)
    with server.client() as client:
        assert outbox.drain(client).failed == 1
        clock.advance(-DAY)
        assert outbox.drain(client).sent == 1


def test_the_wait_doubles_up_to_a_limit_and_jitter_shortens_it_by_up_to_a_quarter() -> None:
    waits = [retry_wait(attempt, 30, lambda: 0.0) for attempt in (1, 2, 3, 4, 5, 6, 7, 8, 1_000_000)]
    assert waits == [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
    assert retry_wait(2, 30, lambda: 1.0) == 750


class Killed(httpx.BaseTransport):
    """Ends the relay at the next request, as if it were killed: nothing is settled."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise SystemExit


def claim_and_die(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, httpx.Client(transport=Killed()) as http:
        patch.setattr(Relay, "_finish", lambda *_, **__: None)
        with pytest.raises(SystemExit):
            outbox.drain(FollowUp(api_key="k", base_url="https://service.example", http_client=http))


def test_an_event_whose_relay_was_killed_is_sent_after_one_lease(
    outbox: Outbox, engine: Engine, clock: ManualTime, server: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(outbox, engine, "e1")
    claim_and_die(outbox, monkeypatch)
    clock.advance(-DAY)
    with server.client() as client:
        assert outbox.drain(client).sent == 0, "the call could still be in flight"
        clock.advance(29)
        assert outbox.drain(client).sent == 0
        clock.advance(1)
        assert outbox.drain(client).sent == 1


def test_a_lease_that_is_not_too_long_is_not_changed(
    outbox: Outbox, engine: Engine, clock: ManualTime, server: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(outbox, engine, "e1", "e2")
    claim_and_die(outbox, monkeypatch)
    lease = "SELECT max(lease_ends_at) - 1800000000000 FROM followup_outbox"
    assert value(engine, lease) == 30_000
    clock.advance(3)
    record(outbox, engine, "e3")
    with server.client() as client:
        outbox.drain(client)
    assert value(engine, lease) == 30_000


def test_a_webhook_that_waits_for_its_retry_is_handled(inbox: Inbox, clock: ManualTime) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        if received.attempt == 1:
            raise RuntimeError

    receive(inbox)
    assert inbox.drain().failed == 1
    assert inbox.drain().done == 0
    clock.advance(-DAY)
    assert inbox.drain().done == 1


def test_a_webhook_whose_worker_was_killed_is_handled_after_one_lease(inbox: Inbox, clock: ManualTime) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        if received.attempt == 1:
            raise KeyboardInterrupt

    receive(inbox)
    with pytest.raises(KeyboardInterrupt):
        inbox.drain()
    clock.advance(-DAY)
    assert inbox.drain().done == 0, "the handler could still be running"
    clock.advance(29)
    assert inbox.drain().done == 0
    clock.advance(1)
    assert inbox.drain().done == 1


def test_a_pause_is_no_longer_than_it_was(
    outbox: Outbox, engine: Engine, clock: ManualTime, server: MockServer
) -> None:
    server.add_fault(operation="events.create", kind="status", status=429, retry_after=60)
    record(outbox, engine, "e1")
    with server.client() as client:
        assert outbox.drain(client, deadline=1).failed == 1
        clock.advance(-DAY)
        assert outbox.drain(client, deadline=120).sent == 1


def test_a_rate_from_the_future_holds_no_call_back(
    outbox: Outbox, engine: Engine, clock: ManualTime, server: MockServer
) -> None:
    record(outbox, engine, *(f"e{number}" for number in range(300)))
    with server.client() as client:
        outbox.drain(client)
        clock.advance(-DAY)
        record(outbox, engine, "later")
        clock.waits.clear()
        assert outbox.drain(client).sent == 1
    assert clock.waits == []
