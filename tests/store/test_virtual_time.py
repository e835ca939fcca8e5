"""The virtual time of stores: inside it, no outbox or inbox reads the clock of its database, or sleeps."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, text
from support.databases import engine_of
from support.webhook_events import body_of, headers_of

from followup import FollowUp, inbound
from followup._for_mockserver import Time, reproducible_randomness, virtual_store_time
from followup.inbox import Inbox, Received
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


def record(outbox: Outbox, engine: Engine, *events: Any) -> None:
    with engine.begin() as connection:
        for each in events:
            outbox.record(connection, each)


def deliver(inbox: Inbox, id: str = "whd_1", ref: str = "apt_1") -> None:
    body = body_of(id, ref=ref)
    assert inbox.receive(body, headers_of(body)) == 204


def rows(engine: Engine, table: str, *columns: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        found = connection.execute(select(*map(text, columns)).select_from(text(table)).order_by(text("seq")))
        return [tuple(row) for row in found]


def test_an_event_is_recorded_at_the_time_of_the_mock(outbox: Outbox, engine: Engine, time: Time) -> None:
    with virtual_store_time(time):
        record(outbox, engine, {"type": "order.issued", "data": {}})
    [(recorded_at, stored)] = rows(engine, "followup_outbox", "recorded_at", "event")
    assert recorded_at == NOON
    assert '"occurredAt":"2026-09-28T12:00:00.000Z"' in stored


def test_the_request_rate_waits_on_the_clock_of_the_mock(
    database_url: str, engine: Engine, service: MockService, client: FollowUp
) -> None:
    outbox = Outbox(database_url, requests_per_minute=2)
    outbox.create_tables()
    with virtual_store_time(service._time_of(service.api_key)):
        # Two events of one subject are never in one batch, so that there are five calls.
        record(outbox, engine, *(order(number) for number in range(5)))
        assert outbox.drain(client).sent == 5
    # Two calls in each minute: the fifth begins two minutes after the first.
    assert service.clock.now >= datetime(2026, 9, 28, 12, 2, tzinfo=UTC)
    assert [each.at for each in service.requests][-1] == datetime(2026, 9, 28, 12, tzinfo=UTC)
    outbox.close()


def test_status_and_purge_take_the_clock_of_the_mock_without_a_client(
    outbox: Outbox, inbox: Inbox, engine: Engine, service: MockService, client: FollowUp
) -> None:
    inbox.on("appointment.created")(lambda _: None)
    with virtual_store_time(service._time_of(service.api_key)):
        record(outbox, engine, order())
        deliver(inbox)
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


def test_backoff_and_leases_of_the_inbox_end_when_the_mock_advances(
    inbox: Inbox, engine: Engine, service: MockService
) -> None:
    attempts = []

    @inbox.on("appointment.created")
    def fail(received: Received) -> None:
        attempts.append(received.attempt)
        if received.attempt < 3:
            raise (SystemExit if received.attempt == 1 else RuntimeError)

    with virtual_store_time(service._time_of(service.api_key)):
        deliver(inbox)
        with pytest.raises(SystemExit):
            inbox.drain()
        assert rows(engine, "followup_inbox", "lease_ends_at") == [(NOON + 30_000,)]
        assert inbox.drain().remaining == 1
        service.advance(seconds=30)
        assert inbox.drain().failed == 1
        [(due_at,)] = rows(engine, "followup_inbox", "due_at")
        assert NOON + 30_000 < due_at <= NOON + 31_000
        service.advance(seconds=1)
        assert inbox.drain().done == 1
    assert attempts == [1, 2, 3]


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

    with virtual_store_time(Stopping()), service.client() as client:  # type: ignore[arg-type]
        outbox.run(client, stop)
        assert service.clock.now >= until
        stop.clear()
        until += timedelta(minutes=1)
        inbox.run(stop)
        assert service.clock.now >= until


@pytest.mark.on_both
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
        deliver(inbox, f"whd_{len(statements)}")
        outbox.status()
        inbox.status()
        outbox.drain(client)
        inbox.drain()
        inbox.catch_up(client, endpoint.id)
        outbox.purge(older_than=timedelta(0))
        inbox.purge(older_than=timedelta(0))

    clocks = ("julianday", "clock_timestamp", "now(", "current_timestamp", "strftime", "datetime(")
    with virtual_store_time(service._time_of(service.api_key)):
        everything()
    assert statements
    assert not [each for each in statements if any(clock in each.lower() for clock in clocks)]
    everything()
    assert [each for each in statements if any(clock in each.lower() for clock in clocks)]


@pytest.mark.on_both
def test_outside_the_clock_is_that_of_the_database_again(outbox: Outbox, engine: Engine, time: Time) -> None:
    before = datetime.now(UTC).timestamp() * 1000
    with virtual_store_time(time):
        pass
    record(outbox, engine, order())
    [(recorded_at,)] = rows(engine, "followup_outbox", "recorded_at")
    assert before - 1000 <= recorded_at <= datetime.now(UTC).timestamp() * 1000 + 1000


def test_draining_with_a_client_of_a_mock_takes_its_clock(outbox: Outbox, engine: Engine, client: FollowUp) -> None:
    record(outbox, engine, order())
    assert outbox.drain(client).sent == 1
    assert rows(engine, "followup_outbox", "finished_at") == [(NOON,)]


def test_the_same_seed_gives_the_same_rows(sqlite_url: str) -> None:
    def play(seed: int) -> list[Any]:
        engine = engine_of(sqlite_url)
        with engine.begin() as connection:
            for table in ("followup_outbox", "followup_outbox_calls", "followup_outbox_rates", "followup_locks"):
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
        outbox = Outbox(sqlite_url)
        outbox.create_tables()
        with (
            MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=seed) as service,
            service.client() as client,
            virtual_store_time(service._time_of(service.api_key)),
            reproducible_randomness(seed),
        ):
            for number in range(3):
                record(outbox, engine, {"type": "order.issued", "data": {"number": number}})
            service.add_fault(operation="events.create", kind="status", status=500, times=3, skip=1)
            for _ in range(4):
                record(outbox, engine, {"type": "order.issued", "data": {}})
                outbox.drain(client)
                service.advance(seconds=0.4)
            client.patients.create(phone="+5491155550000")
            keys = [each.idempotency_key for each in service.requests]
            assert None not in keys
        outbox.close()
        return [*rows(engine, "followup_outbox", "event_id", "event", "due_at", "attempts", "finished_at"), keys]

    first = play(7)
    assert play(7) == first
    assert play(8) != first
