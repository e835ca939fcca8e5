"""``record``: an event is stored if and only if the caller's transaction commits, on every kind of connection."""

import asyncio
import contextlib
import json
import sqlite3
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session
from support.connections import (
    Open,
    OpenAsync,
    async_engine,
    django,
    each_async_kind,
    each_kind,
    on_kinds,
    psycopg_of,
    sqlite3_of,
)
from support.databases import engine_of, texts

from followup import ConfigurationError, inbound
from followup.outbox import NewEvent, Outbox

from .conftest import Service

EVENT = inbound.order_issued(id="e1", patient={"phone": "+54 9 11 5555-0000"}, order={"kind": "lab"})
OWN_WRITE = "INSERT INTO bookings VALUES (1)"


@pytest.fixture
def outbox(database_url: str) -> Iterator[Outbox]:
    outbox = Outbox(database_url)
    outbox.create_tables()
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE bookings (id INTEGER PRIMARY KEY)")
    yield outbox
    outbox.close()


def stored(url: str) -> tuple[list[str], int]:
    """Return the ids of the stored events, and the number of the caller's own rows."""
    ids = texts(engine_of(url), "SELECT event_id FROM followup_outbox ORDER BY seq")
    with engine_of(url).connect() as connection:
        return ids, connection.exec_driver_sql("SELECT count(*) FROM bookings").scalar_one()


@each_kind
def test_the_event_commits_and_rolls_back_with_the_callers_writes(
    outbox: Outbox, database_url: str, opened: Open
) -> None:
    for statements in ([OWN_WRITE], []):  # it may also be the first statement
        with opened(database_url) as (connection, execute, _):
            for each in statements:
                execute(each)
            outbox.record(connection, EVENT)
        assert stored(database_url) == ([], 0)
    with opened(database_url) as (connection, execute, commit):
        assert outbox.record(connection, EVENT) == outbox.record(connection, EVENT) == "e1"
        with pytest.raises(ValueError, match=r"event\.data"):
            outbox.record(connection, {"type": "order.issued", "data": {"when": object()}})
        execute(OWN_WRITE)
        assert stored(database_url) == ([], 0)
        commit()
    assert stored(database_url) == (["e1"], 1)


@each_kind
@pytest.mark.parametrize(
    ("change", "kind", "problem"),
    [
        ("UPDATE followup_schema SET version = 99", ConfigurationError, "version 99"),
        ("DROP TABLE followup_schema", ConfigurationError, "call outbox.create_tables"),
        ("DROP TABLE followup_outbox", Exception, "followup_outbox"),
    ],
)
def test_a_failure_says_what_to_do_and_does_not_spoil_the_transaction(
    outbox: Outbox, database_url: str, opened: Open, change: str, kind: type[Exception], problem: str
) -> None:
    with engine_of(database_url).begin() as own:
        own.exec_driver_sql(change)
    with opened(database_url) as (connection, execute, commit):
        execute(OWN_WRITE)
        with pytest.raises(kind, match=problem) as caught:
            outbox.record(connection, EVENT)
        assert "5555" not in str(caught.value)
        commit()
    with engine_of(database_url).connect() as own:
        assert own.exec_driver_sql("SELECT count(*) FROM bookings").scalar_one() == 1


def autocommit_sqlalchemy(url: str) -> AbstractContextManager[Any]:
    return engine_of(url).connect().execution_options(isolation_level="AUTOCOMMIT")


def autocommit_session(url: str) -> AbstractContextManager[Any]:
    return Session(engine_of(url).execution_options(isolation_level="AUTOCOMMIT"))


def autocommit_sqlite(url: str) -> AbstractContextManager[Any]:
    return sqlite3_of(url, isolation_level=None)


def autocommit_psycopg(url: str) -> AbstractContextManager[Any]:
    return psycopg_of(url, autocommit=True)


@on_kinds(
    "opened",
    every=[autocommit_sqlalchemy, autocommit_session, django],
    sqlite=[autocommit_sqlite],
    postgresql=[autocommit_psycopg],
)
def test_a_connection_in_autocommit_mode_is_rejected_and_stores_nothing(
    outbox: Outbox, database_url: str, opened: Callable[[str], AbstractContextManager[Any]]
) -> None:
    with opened(database_url) as connection, pytest.raises(ValueError, match="autocommit"):
        outbox.record(connection, EVENT)
    assert stored(database_url) == ([], 0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has the attribute autocommit since Python 3.12")
def test_the_newer_autocommit_attribute_of_sqlite3_counts(outbox: Outbox, sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    rejected = pytest.raises(ValueError, match="autocommit")
    with contextlib.closing(sqlite3.connect(path, autocommit=True)) as connection, rejected:
        outbox.record(connection, EVENT)
    with contextlib.closing(sqlite3.connect(path, autocommit=False)) as connection:
        outbox.record(connection, EVENT)


def test_a_savepoint_counts_as_a_transaction(outbox: Outbox, sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("SAVEPOINT mine")
        outbox.record(connection, EVENT)
        connection.execute("ROLLBACK TO mine")
        connection.execute("RELEASE mine")
        assert connection.execute("SELECT count(*) FROM followup_outbox").fetchall() == [(0,)]


@each_async_kind
@pytest.mark.parametrize("commits", [True, False])
def test_record_async_commits_and_rolls_back(
    outbox: Outbox, database_url: str, opened: OpenAsync, commits: bool
) -> None:
    async def run() -> None:
        async with opened(database_url) as (connection, execute, commit):
            await execute(OWN_WRITE)
            assert await outbox.record_async(connection, EVENT) == "e1"
            assert await outbox.record_async(connection, EVENT) == "e1"
            if commits:
                await commit()

    asyncio.run(run())
    assert stored(database_url) == ((["e1"], 1) if commits else ([], 0))


@each_async_kind
def test_a_failure_of_record_async_does_not_spoil_the_transaction(
    outbox: Outbox, database_url: str, opened: OpenAsync
) -> None:
    with engine_of(database_url).begin() as own:
        own.exec_driver_sql("UPDATE followup_schema SET version = 99")

    async def run() -> None:
        async with opened(database_url) as (connection, execute, commit):
            await execute(OWN_WRITE)
            with pytest.raises(ConfigurationError, match="version 99"):
                await outbox.record_async(connection, EVENT)
            await commit()

    asyncio.run(run())
    assert stored(database_url) == ([], 1)


@pytest.mark.on_all
def test_async_connections_in_autocommit_mode_are_rejected(outbox: Outbox, database_url: str) -> None:
    async def run() -> None:
        async with async_engine(database_url, isolation_level="AUTOCOMMIT").connect() as connection:
            with pytest.raises(ValueError, match="autocommit"):
                await outbox.record_async(connection, EVENT)
        if database_url.startswith("postgresql"):
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as raw:
                with pytest.raises(ValueError, match="autocommit"):
                    await outbox.record_async(raw, EVENT)

    asyncio.run(run())
    assert stored(database_url) == ([], 0)


def test_other_connections_are_a_type_error(sqlite_url: str) -> None:
    outbox = Outbox(sqlite_url)
    engine: Engine = create_engine(sqlite_url)
    for connection in (engine, None, object(), async_engine(sqlite_url)):
        with pytest.raises(TypeError, match=r"^connection must be a SQLAlchemy Connection or Session, a sqlite3"):
            outbox.record(connection, EVENT)  # type: ignore[arg-type]
    with contextlib.closing(sqlite3.connect(":memory:")) as raw:
        for connection in (engine, raw):
            with pytest.raises(TypeError, match=r"^connection must be a SQLAlchemy AsyncConnection or AsyncSession"):
                asyncio.run(outbox.record_async(connection, EVENT))  # type: ignore[arg-type]


def row(url: str) -> Any:
    with engine_of(url).connect() as connection:
        return connection.exec_driver_sql("SELECT * FROM followup_outbox").mappings().one()


@pytest.mark.on_all
def test_an_id_and_a_time_are_made_once(outbox: Outbox, database_url: str) -> None:
    with engine_of(database_url).begin() as connection:
        made = outbox.record(connection, {"type": "order.issued", "data": {}})
    stored_event = json.loads(row(database_url)["event"])
    assert str(uuid.UUID(made)) == made == stored_event["id"]
    assert stored_event.keys() == {"id", "type", "data", "occurredAt"}
    assert stored_event["occurredAt"].endswith("Z")


PATIENT = {"phone": "+54 9 11 5555-0000", "dni": "30123456", "externalId": "P-1"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"patient": PATIENT, "appointment": {"externalId": "T-1"}}, "appointment:T-1"),
        ({"appointment": {"externalId": "T-1", "startAt": "2030-01-01T00:00:00Z"}}, "appointment:T-1"),
        ({"patient": PATIENT, "appointment": {"startAt": "2030-01-01T00:00:00Z"}}, "patient:phone:5491155550000"),
        ({"patient": PATIENT}, "patient:phone:5491155550000"),
        ({"patient": {"dni": "30123456", "externalId": "P-1"}}, "patient:dni:30123456"),
        ({"patient": {"phone": "", "externalId": "P-1"}}, "patient:externalId:P-1"),
        ({"patient": {"phone": "+٥٤ ٩ ١١ ٥٥٥٥-٠٠٠٠"}}, "patient:phone:5491155550000"),
        ({"patient": {"phone": "+５４ ９ １１ ５５５５-００００"}}, "patient:phone:5491155550000"),
        ({"patient": "pat_1"}, "patient:id:pat_1"),
        ({"patient": {"fullName": "Ana"}}, "e1"),
        ({"patient": None, "appointment": None}, "e1"),
        ({"patient": 7, "appointment": [1]}, "e1"),
        ({}, "e1"),
    ],
)
def test_the_default_subject(outbox: Outbox, database_url: str, data: Any, expected: str) -> None:
    with engine_of(database_url).begin() as connection:
        outbox.record(connection, {"id": "e1", "type": "order.issued", "data": data})
    assert texts(engine_of(database_url), "SELECT subject FROM followup_outbox") == [expected]


@pytest.mark.on_all
def test_an_event_that_fits_into_no_request_is_a_value_error(
    outbox: Outbox, database_url: str, service: Service
) -> None:
    rest = len(b'{"id":"e1","type":"order.issued","data":{"notes":""},"occurredAt":"2026-09-28T12:00:00Z"}')
    longest = "é" * ((1_048_576 - 2 - rest) // 6)  # in ASCII, as it is stored and sent

    def event(notes: str) -> NewEvent:
        return {"id": "e1", "type": "order.issued", "data": {"notes": notes}, "occurred_at": "2026-09-28T12:00:00Z"}

    with engine_of(database_url).begin() as connection:
        with pytest.raises(ValueError, match=r"^event has 1,048,5\d\d bytes in JSON; at most 1,048,574 fit"):
            outbox.record(connection, event(f"{longest}é"))
        outbox.record(connection, event(longest))
    assert outbox.drain(service.client).sent == 1
    assert 1_048_570 < len(service.received[0].body) <= 1_048_576


def test_long_default_subjects_stay_different(outbox: Outbox, database_url: str) -> None:
    with engine_of(database_url).begin() as connection:
        for last in "ab":
            outbox.record(connection, inbound.appointment_cancelled(external_id="T" * 5000 + last))
        subjects = connection.exec_driver_sql("SELECT subject FROM followup_outbox").scalars().all()
    assert len(set(subjects)) == 2
    assert all(each.startswith("appointment:") and len(each) < 256 for each in subjects)


@pytest.mark.parametrize(
    "occurred_at",
    [
        "2026-09-28T12:00:00Z",
        "2026-09-28t12:00:00.123456-03:00",
        "2026-09-28 12:00",
        "20260928T120000Z",
        "2026-W40-1T12:00:00+00",
        "2026-271T12Z",
        "2016-12-31T23:59:60Z",
        "2026-09-28T24:00:00",
        "2026-09-28T12:00:00,5+0530",
    ],
)
def test_every_notation_of_a_time_is_left_to_the_service(outbox: Outbox, database_url: str, occurred_at: str) -> None:
    with engine_of(database_url).begin() as connection:
        outbox.record(connection, {**EVENT, "occurred_at": occurred_at})
    assert json.loads(row(database_url)["event"])["occurredAt"] == occurred_at


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (None, "event must be a dict"),
        ([EVENT], "event must be a dict"),
        ({}, "event.type is required"),
        ({"type": "order.issued"}, "event.data is required"),
        ({"type": "order.isued", "data": {}}, "event.type must be one of"),
        ({"type": "order.issued", "data": None}, "event.data must be a dict"),
        ({"type": "order.issued", "data": []}, "event.data must be a dict"),
        ({"type": "order.issued", "data": {"a": float("nan")}}, "event.data.a is not a finite number"),
        ({"type": "order.issued", "data": {}, "id": ""}, "event.id must be a string of 1 to 255"),
        ({"type": "order.issued", "data": {}, "id": "x" * 256}, "event.id must be a string of 1 to 255"),
        ({"type": "order.issued", "data": {}, "id": "a\0b"}, "event.id must not contain"),
        ({"type": "order.issued", "data": {}, "id": 7}, "event.id must be a string"),
        ({"type": "order.issued", "data": {}, "when": 7}, "event has an unknown key 'when'"),
        ({"type": "order.issued", "data": {}, "occurred_at": 7}, "event.occurred_at must be"),
        *(
            (
                {"type": "order.issued", "data": {}, "occurred_at": wrong},
                "event.occurred_at must be an ISO 8601 date and time, such as 2026-09-28T12:00:00Z, or an aware ",
            )
            for wrong in ("yesterday", "2026-09-28", "28/09/2026 12:00", "12:00", "", "2026-09-28T", "2026-09-28Tnoon")
        ),
    ],
)
def test_a_bad_event_is_a_value_error_that_names_the_field(sqlite_url: str, event: Any, problem: str) -> None:
    outbox = Outbox(sqlite_url)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection, pytest.raises(ValueError) as caught:
        outbox.record(connection, event)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("subject", ["", 7, "x" * 256, "a\0b", "\ud800"])
def test_a_bad_subject_is_a_value_error(sqlite_url: str, subject: Any) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection, pytest.raises(ValueError, match=r"^subject "):
        Outbox(sqlite_url).record(connection, EVENT, subject)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, "name must be"),
        ({"requests_per_minute": 0}, "requests_per_minute must be"),
        ({"requests_per_minute": 1.5}, "requests_per_minute must be"),
        ({"requests_per_minute": True}, "requests_per_minute must be"),
        ({"on_rejected": "drop"}, "on_rejected must be"),
    ],
)
def test_a_bad_option_is_a_configuration_error(sqlite_url: str, options: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{problem}"):
        Outbox(sqlite_url, **options)
