"""Work with many waiting events of many subjects."""

import socket
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from support.databases import engine_of, execute
from support.server import Received

from followup.outbox import DrainReport, Outbox

from .conftest import Desk, Service, batch, processed

pytestmark = pytest.mark.on_all

INSERT = (
    "INSERT INTO followup_outbox (name, event_id, subject, event, state, blocks_subject, attempts, due_at, recorded_at,"
    " finished_at, batch_limit) "
    "VALUES ('default', :id, :subject, :event, :state, TRUE, 0, 0, 0, CASE WHEN :dead THEN 0 END, 100)"
)


def insert(engine: Engine, *events: tuple[str, str, str], data: str = "{}") -> None:
    """Insert events, each an id, a subject and a state."""
    rows = [
        {
            "id": event_id,
            "subject": subject,
            "state": state,
            "dead": state == "dead",
            "event": f'{{"id":"{event_id}","type":"order.issued","data":{data},"occurredAt":"2026-09-28T12:00:00Z"}}',
        }
        for event_id, subject, state in events
    ]
    with engine.begin() as connection:
        connection.execute(text(INSERT), rows)


@pytest.mark.parametrize("version", [0, 2, True, "1"])
def test_a_version_that_does_not_exist_is_a_value_error(sqlite_url: str, version: Any) -> None:
    with pytest.raises(ValueError, match=r"^from_version must be a version of the outbox's tables, 1 to 1$"):
        Outbox(sqlite_url).ddl(from_version=version)


def test_subjects_of_different_kinds_never_collide(outbox: Desk, engine: Engine, service: Service) -> None:
    """A dead event of one patient holds no other, whose phone, document or external id has the same digits."""
    data: list[dict[str, Any]] = [
        {"patient": {"phone": "30111222"}},
        {"patient": {"dni": "30111222"}},
        {"patient": {"externalId": "30111222"}},
        {"patient": "30111222"},
        {"patient": "another"},
        {"appointment": {"externalId": "30111222"}},
    ]
    ids = [f"e{number}" for number in range(len(data))] + ["patient:dni:30111222", "appointment:30111222"]
    with engine.begin() as connection:
        for event_id, each in zip(ids, [*data, {}, {}], strict=True):
            outbox.record(connection, {"id": event_id, "type": "order.issued", "data": each})
        subjects = connection.exec_driver_sql("SELECT subject FROM followup_outbox").scalars().all()
    assert outbox.drain(service.client).sent == len(ids)
    assert service.batches == [ids]
    assert len({*subjects}) == len(ids)


def steps(engine: Engine, work: Callable[[], object], each: int = 100, *, only_writing: bool = False) -> int:
    """Return how many instructions of SQLite's virtual machine some work takes.

    Args:
        engine: an engine whose connections are opened by the work.
        work: the work.
        each: the number of instructions that count as one.
        only_writing: whether only those count that run in a transaction, under the lock of a writer.
    """
    count = 0

    @event.listens_for(engine, "connect")
    def watch(connection: sqlite3.Connection, _: object) -> None:
        def tick() -> int:
            nonlocal count
            count += connection.in_transaction or not only_writing
            return 0

        connection.set_progress_handler(tick, each)

    work()
    event.remove(engine, "connect", watch)
    return count


SHAPES: dict[str, Callable[[int], list[tuple[str, str, str]]]] = {
    "of one subject": lambda n: [(f"e{each}", "clinic", "waiting") for each in range(n)],
    "behind one dead event": lambda n: [(f"e{each}", "clinic", "waiting" if each else "dead") for each in range(n)],
    "each behind its own dead event": lambda n: [
        (f"{state}{each}", f"s{each}", state) for each in range(n // 2) for state in ("dead", "waiting")
    ],
    "of as many subjects": lambda n: [(f"e{each}", f"s{each}", "waiting") for each in range(n)],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_the_work_grows_no_faster_than_the_number_of_waiting_events(
    sqlite_url: str, service: Service, shape: Callable[[int], list[tuple[str, str, str]]]
) -> None:
    engine = engine_of(sqlite_url)
    outbox = Outbox(engine)
    outbox.create_tables()

    def slow(connection: socket.socket, received: Received) -> bool:
        service.clock.seconds += 10
        return batch(processed)(connection, received)

    service.script = [slow]
    counts = []
    for size in (2_000, 8_000):
        execute(engine, "DELETE FROM followup_outbox")
        insert(engine, *shape(size))
        work = (outbox.status, lambda: outbox.drain(service.client, deadline=5))  # one call
        counts.append([steps(engine, each) for each in work])
    for small, large in zip(*counts, strict=True):
        assert large < small * 4.5 + 50, "four times as many events are about four times the work"


def test_a_claim_under_the_lock_visits_no_event_that_it_does_not_send(sqlite_url: str, service: Service) -> None:
    """What is done between BEGIN and COMMIT of a writer takes as long with 100 as with 10,000 held events."""
    engine = engine_of(sqlite_url)
    outbox = Outbox(engine)
    outbox.create_tables()
    counts = []
    for size in (100, 10_000):
        execute(engine, "DELETE FROM followup_outbox")
        insert(engine, *SHAPES["behind one dead event"](size), ("free", "another", "waiting"))
        counts.append(steps(engine, lambda: outbox.drain(service.client), 10, only_writing=True))
        assert service.batches[-1] == ["free"]
    assert counts[1] < counts[0] * 1.5 + 20, counts


def test_status_counts_what_is_held_by_each_dead_event(outbox: Desk, engine: Engine, service: Service) -> None:
    insert(
        engine,
        ("a0", "a", "waiting"), ("a1", "a", "dead"), ("a2", "a", "waiting"), ("a3", "a", "dead"),
        ("a4", "a", "waiting"),
        ("b0", "b", "waiting"), ("b1", "b", "waiting"),
        ("c0", "c", "dead"), ("c1", "c", "waiting"),
    )  # fmt: skip
    found = outbox.status()
    assert (found.waiting, found.held, found.dead) == (3, 3, 3)
    assert outbox.drain(service.client) == DrainReport(sent=3)
    found = outbox.status()
    assert (found.waiting, found.held, found.dead, found.sent) == (0, 3, 3, 3)
