"""Work with many waiting events, and with the tables of the release that had no index for them (version 1)."""

import hashlib
import json
import socket
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Engine, event, inspect, text
from support.databases import engine_of, execute
from support.server import Received, hang_up

from followup import ConfigurationError, FollowUp, inbound
from followup.outbox import DrainReport, Outbox

from .conftest import Desk, Service, batch, processed, result

pytestmark = pytest.mark.on_both

VERSION_1 = """
CREATE TABLE followup_schema (component VARCHAR(32) NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (component));
CREATE TABLE followup_locks (name VARCHAR(255) NOT NULL, times_taken BIGINT NOT NULL, PRIMARY KEY (name));
CREATE TABLE followup_outbox (
    seq {serial} NOT NULL, name VARCHAR(255) NOT NULL, event_id VARCHAR(255) NOT NULL, subject VARCHAR(255) NOT NULL,
    event TEXT NOT NULL, state VARCHAR(16) NOT NULL, blocks_subject BOOLEAN NOT NULL, attempts INTEGER NOT NULL,
    due_at BIGINT NOT NULL, recorded_at BIGINT NOT NULL, finished_at BIGINT, lease_token VARCHAR(32),
    lease_ends_at BIGINT, batch_limit INTEGER NOT NULL, error TEXT, trace_context TEXT,
    PRIMARY KEY (seq), CONSTRAINT followup_outbox_event_id UNIQUE (name, event_id)
);
CREATE INDEX followup_outbox_by_state ON followup_outbox (name, state, seq);
CREATE INDEX followup_outbox_by_subject ON followup_outbox (name, subject, blocks_subject, seq);
CREATE TABLE followup_outbox_rates (
    name VARCHAR(255) NOT NULL, full_burst_at DOUBLE PRECISION NOT NULL, not_before BIGINT NOT NULL,
    failures_in_a_row INTEGER NOT NULL, PRIMARY KEY (name)
);
CREATE TABLE followup_outbox_calls (
    lease_token VARCHAR(32) NOT NULL, name VARCHAR(255) NOT NULL, ends_at BIGINT NOT NULL, PRIMARY KEY (lease_token)
);
CREATE INDEX followup_outbox_calls_by_end ON followup_outbox_calls (name, ends_at);
INSERT INTO followup_schema (component, version) VALUES ('outbox', 1);
"""

INSERT = (
    "INSERT INTO followup_outbox (name, event_id, subject, event, state, blocks_subject, attempts, due_at, recorded_at,"
    " finished_at, batch_limit) "
    "VALUES ('default', :id, :subject, :event, :state, TRUE, 0, 0, 0, CASE WHEN :dead THEN 0 END, 100)"
)


def insert(engine: Engine, *events: tuple[str, str, str], data: str = "{}") -> None:
    """Insert events, each an id, a subject and a state, as a release with tables of version 1 did."""
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


@pytest.fixture
def old_tables(database_url: str, engine: Engine) -> Engine:
    """Tables of version 1, as its create_tables() made them."""
    serial = "BIGSERIAL" if engine.dialect.name == "postgresql" else "INTEGER"
    if engine.dialect.name == "sqlite":
        sqlite3.connect(database_url.removeprefix("sqlite:///")).close()
    with engine.begin() as connection:
        for statement in VERSION_1.format(serial=serial).split(";\n")[:-1]:
            connection.exec_driver_sql(statement)
    return engine


def by_creating(outbox: Desk, _: Engine) -> None:
    outbox.create_tables()
    outbox.create_tables()


def by_hand(outbox: Desk, engine: Engine) -> None:
    for _ in range(2):
        with engine.begin() as connection:
            for statement in outbox.ddl(from_version=1).split(";\n")[:-1]:
                connection.exec_driver_sql(statement)


@pytest.mark.parametrize("migrate", [by_creating, by_hand])
def test_what_the_error_about_older_tables_says_helps(
    old_tables: Engine, database_url: str, service: Service, migrate: Callable[[Outbox, Engine], None]
) -> None:
    insert(old_tables, ("e1", "a", "waiting"), ("e2", "a", "waiting"), ("e3", "b", "waiting"))
    outbox = Outbox(database_url)
    advice = (
        r"^the outbox's tables have version 1, and this release of followup needs version 4: "
        r"call outbox\.create_tables\(\) once, or run the SQL of outbox\.ddl\(from_version=1\)$"
    )
    with pytest.raises(ConfigurationError, match=advice):
        outbox.drain(service.client)
    with old_tables.begin() as connection, pytest.raises(ConfigurationError, match=advice):
        outbox.record(connection, inbound.order_issued(patient={}, order={}))
    migrate(outbox, old_tables)
    assert outbox.drain(service.client) == DrainReport(sent=3)
    assert service.batches == [["e1", "e3"], ["e2"]]
    with old_tables.connect() as connection:
        assert indices(connection, "followup_outbox") == indices_of_new_tables(database_url)
    outbox.close()


def indices(connection: Any, table: str) -> set[tuple[str, tuple[str | None, ...]]]:
    return {(str(each["name"]), tuple(each["column_names"])) for each in inspect(connection).get_indexes(table)}


def indices_of_new_tables(url: str) -> set[tuple[str, tuple[str | None, ...]]]:
    """Return the indices that create_tables() makes in the place of the present tables."""
    engine, outbox = engine_of(url), Outbox(url)
    with engine.begin() as connection:
        for table in ("followup_outbox", "followup_outbox_rates", "followup_outbox_calls", "followup_schema"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    outbox.create_tables()
    outbox.close()
    with engine.connect() as connection:
        return indices(connection, "followup_outbox")


@pytest.mark.parametrize("version", [0, 5, True, "1"])
def test_a_version_that_does_not_exist_is_a_value_error(sqlite_url: str, version: Any) -> None:
    with pytest.raises(ValueError, match=r"^from_version must be a version of the outbox's tables, 1 to 4$"):
        Outbox(sqlite_url).ddl(from_version=version)


PHONE = '{"patient":{"phone":"+54 9 11 5555-0000"}}'


def subjects(engine: Engine) -> dict[str, str]:
    with engine.connect() as connection:
        return {
            each[0]: each[1] for each in connection.exec_driver_sql("SELECT event_id, subject FROM followup_outbox")
        }


def record_patient(outbox: Desk, engine: Engine, *ids: str) -> None:
    with engine.begin() as connection:
        for each in ids:
            outbox.record(connection, {"id": each, "type": "patient.upserted", "data": json.loads(PHONE)})


@pytest.mark.parametrize("migrate", [by_creating, by_hand])
@pytest.mark.parametrize("version", [1, 2])
def test_stored_events_keep_their_order_over_an_update(
    old_tables: Engine, database_url: str, service: Service, migrate: Callable[[Outbox, Engine], None], version: int
) -> None:
    """Also those that a process stored under the present subject while others waited under the older one."""
    insert(old_tables, ("e1", "patient:phone:5491155550000", "waiting"), data=PHONE)
    insert(old_tables, ("e2", "patient:5491155550000", "waiting"), data=PHONE)
    execute(old_tables, f"UPDATE followup_schema SET version = {version}")
    outbox = Outbox(database_url)
    migrate(outbox, old_tables)
    record_patient(outbox, old_tables, "e3")
    service.script = [batch(lambda each: result(each, "failed" if each == "e1" else "processed"))]
    assert outbox.drain(service.client) == DrainReport(failed=1, remaining=3)
    service.script = [batch(processed)]
    record_patient(outbox, old_tables, "e4")
    service.clock.seconds += 1
    assert outbox.drain(service.client) == DrainReport(sent=4)
    assert service.ids == ["e1", "e1", "e2", "e3", "e4"]
    assert {*subjects(old_tables).values()} == {"patient:phone:5491155550000"}
    outbox.close()


def hashed(text: str) -> str:
    return f"patient:sha256:{hashlib.sha256(text.encode()).hexdigest()}"


OLDER_AND_PRESENT = [
    (PHONE, "patient:5491155550000", "patient:phone:5491155550000"),
    ('{"patient":{"phone":"","dni":"549"}}', "patient:549", "patient:dni:549"),
    ('{"patient":{"externalId":"549"}}', "patient:549", "patient:externalId:549"),
    ('{"patient":" 549 "}', "patient:549", "patient:id:549"),
    (f'{{"patient":{{"dni":"{"x" * 247}"}}}}', "patient:" + "x" * 247, hashed("dni:" + "x" * 247)),
    ('{"patient":{"dni":"5\\u00009"}}', hashed("5\0" + "9"), hashed("dni:5\0" + "9")),
    (PHONE, "patient:17", "patient:17"),  # the program chose it
    (PHONE[:-1] + ',"appointment":{"externalId":"T-1"}}', "patient:5491155550000", "patient:5491155550000"),
    ('{"patient":{}}', "patient:17", "patient:17"),
    ("no JSON", "patient:17", "patient:17"),
    ("[]", "patient:17", "patient:17"),
]


@pytest.mark.parametrize("state", ["waiting", "in_flight", "dead"])
def test_an_update_renews_exactly_the_default_subjects_of_unfinished_events(
    old_tables: Engine, database_url: str, service: Service, state: str
) -> None:
    for number, (data, older, _) in enumerate(OLDER_AND_PRESENT):
        insert(old_tables, (f"e{number}", older, state), data=data)
        insert(old_tables, (f"sent{number}", older, "sent"), data=data)
    with old_tables.begin() as connection:
        # Several organizations share the tables, and a dead event holds no others with on_rejected="skip".
        connection.exec_driver_sql("UPDATE followup_outbox SET name = 'other' WHERE event_id IN ('e1', 'e2')")
        connection.exec_driver_sql("UPDATE followup_outbox SET blocks_subject = FALSE WHERE state IN ('sent', 'dead')")
        connection.exec_driver_sql(
            f"UPDATE followup_outbox SET lease_token = 't', lease_ends_at = {time.time_ns() // 1_000_000 + 100_000} "
            "WHERE state = 'in_flight'"
        )
    outbox = Outbox(database_url)
    outbox.create_tables()
    service.script = [batch(lambda each: result(each, "failed"))]
    outbox.drain(service.client)
    found = subjects(old_tables)
    assert [found[f"e{number}"] for number in range(len(OLDER_AND_PRESENT))] == [each[2] for each in OLDER_AND_PRESENT]
    assert [found[f"sent{number}"] for number in range(len(OLDER_AND_PRESENT))] == [
        each[1] for each in OLDER_AND_PRESENT
    ]
    insert(old_tables, ("explicit", "patient:5491155550000", "waiting"), data=PHONE)
    outbox.drain(service.client)
    assert subjects(old_tables)["explicit"] == "patient:5491155550000", "once only"
    outbox.close()


def test_processes_that_start_together_update_the_tables_once(old_tables: Engine, database_url: str) -> None:
    ids = [f"e{number}" for number in range(300)]
    insert(old_tables, *[(each, "patient:5491155550000", "waiting") for each in ids], data=PHONE)

    def start(service: Service) -> None:
        with (
            closing(Outbox(database_url)) as outbox,
            service,
            FollowUp(api_key="fu_test", base_url=service.url) as client,
        ):
            outbox.create_tables()
            service.script = [hang_up]
            outbox.drain(client)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(start, [Service() for _ in range(4)]))
    assert {*subjects(old_tables).values()} == {"patient:phone:5491155550000"}


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
