"""The virtual time of stores: inside it, no outbox or inbox reads the clock of its database, or sleeps."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, text
from support.stores import receive, record

from followup import FollowUp, inbound
from followup._for_mockserver import Time, reproducible_randomness, virtual_time
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup_mockserver import MockService

NOON = 1_790_596_800_000
"""2026-09-28T12:00:00Z, at which the clock of the mock is frozen."""

HOUR = 3_600_000


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=1) as service:
        yield service


@pytest.fixture
def time(service: MockService) -> Time:
    return service._time_of(service.api_key)


@pytest.fixture
def client(service: MockService) -> Iterator[FollowUp]:
    with service.client() as client:
        yield client


def order(number: int = 1, patient: dict[str, Any] | None = None) -> Any:
    return inbound.order_issued(id=f"order-{number}", patient=patient or {"phone": "+5491155550000"}, order={})


def rows(engine: Engine, table: str, *columns: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        found = connection.execute(select(*map(text, columns)).select_from(text(table)).order_by(text("seq")))
        return [tuple(row) for row in found]


def test_an_event_is_recorded_at_the_time_of_the_mock(outbox: Outbox, engine: Engine, time: Time) -> None:
    with virtual_time(None, lambda _: time):
        record(outbox, engine, {"type": "order.issued", "data": {}})
    [(recorded_at, stored)] = rows(engine, "followup_outbox", "recorded_at", "event")
    assert recorded_at == NOON
    assert '"occurredAt":"2026-09-28T12:00:00.000Z"' in stored


def test_status_and_purge_take_the_clock_of_the_mock_without_a_client(
    outbox: Outbox, inbox: Inbox, engine: Engine, service: MockService, client: FollowUp
) -> None:
    inbox.on("appointment.created")(lambda _: None)
    with virtual_time(None, lambda _: service._time_of(service.api_key)):
        record(outbox, engine, order())
        receive(inbox)
        service.advance(hours=2)
        assert outbox.status().oldest_waiting_seconds == 7200
        assert inbox.status().oldest_waiting_seconds == 7200
        assert (outbox.drain(client).sent, inbox.drain().done) == (1, 1)
        assert rows(engine, "followup_outbox", "finished_at") == [(NOON + 2 * HOUR,)]
        assert rows(engine, "followup_inbox", "received_at", "finished_at") == [(NOON, NOON + 2 * HOUR)]
        service.advance(days=3)
        assert (outbox.purge(older_than=timedelta(days=4)), inbox.purge(older_than=timedelta(days=4))) == (0, 0)
        service.advance(days=2)
        assert (outbox.purge(older_than=timedelta(days=4)), inbox.purge(older_than=timedelta(days=4))) == (1, 1)


def test_run_waits_on_the_clock_of_the_mock(outbox: Outbox, inbox: Inbox, engine: Engine, service: MockService) -> None:
    stop = threading.Event()
    until = service.clock.now + timedelta(minutes=1)

    class Stopping:
        """The time of the mock, which ends the work after a minute of waiting."""

        def __getattr__(self, name: str) -> Any:
            return getattr(service._time_of(service.api_key), name)

        def sleep(self, seconds: float) -> None:
            service._time_of(service.api_key).sleep(seconds)
            if service.clock.now >= until:
                stop.set()

    with virtual_time(None, lambda _: Stopping()), service.client() as client:  # type: ignore[arg-type]
        outbox.run(client, stop)
        assert service.clock.now >= until
        stop.clear()
        until += timedelta(minutes=1)
        inbox.run(stop)
        assert service.clock.now >= until


@pytest.mark.on_all
def test_no_statement_reads_the_clock_of_the_database(
    outbox: Outbox, inbox: Inbox, engine: Engine, service: MockService, client: FollowUp
) -> None:
    statements: list[str] = []
    inbox.on("appointment.created")(lambda _: None)
    service.mount("https://clinic.example/hooks", inbox.wsgi_app)
    endpoint = client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["order.issued"])
    for each in (engine, outbox._database.engine, inbox._database.engine):
        event.listen(each, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))

    def everything() -> None:
        record(outbox, engine, order(len(statements)))
        receive(inbox, f"whd_{len(statements)}")
        outbox.status()
        inbox.status()
        outbox.drain(client)
        inbox.drain()
        inbox.catch_up(client, endpoint.id)
        outbox.purge(older_than=timedelta(0))
        inbox.purge(older_than=timedelta(0))

    clocks = ("julianday", "clock_timestamp", "now(", "current_timestamp", "utc_timestamp", "strftime", "datetime(")
    with virtual_time(None, lambda _: service._time_of(service.api_key)):
        everything()
    assert statements
    assert not [each for each in statements if any(clock in each.lower() for clock in clocks)]
    everything()
    assert [each for each in statements if any(clock in each.lower() for clock in clocks)]


def test_the_same_seed_gives_the_same_ids_and_waits(
    outbox: Outbox, engine: Engine, service: MockService, client: FollowUp
) -> None:
    def play(seed: int) -> list[Any]:
        outbox.clear()
        service.reset()
        with virtual_time(None, lambda _: service._time_of(service.api_key)), reproducible_randomness(seed):
            record(outbox, engine, {"type": "order.issued", "data": {}})
            service.add_fault(operation="events.create", kind="status", status=500)
            outbox.drain(client)
            client.patients.create(phone="+5491155550000")
        keys = [each.idempotency_key for each in service.requests]
        return [rows(engine, "followup_outbox", "event_id", "event", "due_at"), keys]

    first = play(7)
    assert play(7) == first
    assert play(8) != first
