"""What SQLite rolls back by itself while an event is recorded: the error says that the transaction is gone."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import PendingRollbackError
from sqlalchemy.ext.asyncio import create_async_engine
from support.connections import Open, Opened, django, sqlalchemy_connection, sqlalchemy_session, sqlite_connection
from support.databases import engine_of, execute

from followup.outbox import Outbox

GONE = "The database has rolled back the whole transaction, with all that you wrote in it: roll back, and repeat it"
LARGE: Any = {"id": "e1", "type": "order.issued", "data": {"note": "Ana" * 20_000}}


@pytest.fixture
def outbox(sqlite_url: str) -> Iterator[Outbox]:
    outbox = Outbox(sqlite_url)
    outbox.create_tables()
    execute(engine_of(sqlite_url), "CREATE TABLE bookings (name TEXT)")
    yield outbox
    outbox.close()


def bookings(url: str) -> list[str]:
    with engine_of(url).connect() as connection:
        return [*connection.exec_driver_sql("SELECT name FROM bookings").scalars()]


def fill_the_disk(execute: Callable[[str], Any]) -> None:
    """Let the file of a connection grow by three pages only."""
    ((pages,),) = execute("PRAGMA page_count")
    execute(f"PRAGMA max_page_count = {pages + 3}")


@contextmanager
def atomic(url: str) -> Iterator[Opened]:
    with django(url) as connection, pytest.MonkeyPatch.context() as patch:
        from django.db import transaction

        patch.setattr(transaction, "get_connection", lambda using: connection)
        block = transaction.atomic()
        block.__enter__()
        yield connection, lambda sql: connection.cursor().execute(sql), lambda: block.__exit__(None, None, None)


@pytest.mark.parametrize("opened", [sqlite_connection, sqlalchemy_connection, sqlalchemy_session, atomic])
def test_a_full_disk_says_that_the_transaction_is_gone(outbox: Outbox, sqlite_url: str, opened: Open) -> None:
    with opened(sqlite_url) as (connection, execute, commit):
        fill_the_disk(execute)
        execute("INSERT INTO bookings VALUES ('A')")
        with pytest.raises(Exception, match=GONE) as caught:
            outbox.record(connection, LARGE)
        assert type(caught.value).__name__ == "OperationalError"
        assert "disk is full" in str(caught.value)
        assert "Ana" not in str(caught.value)
        if opened is sqlite_connection:  # which cannot be kept from going on
            return
        with pytest.raises(Exception, match=r"(?i)roll.?back|atomic"):
            execute("INSERT INTO bookings VALUES ('B')")
        with contextlib.suppress(PendingRollbackError):
            commit()
    assert bookings(sqlite_url) == []


def test_a_transaction_that_has_written_nothing_yet_can_go_on(outbox: Outbox, sqlite_url: str) -> None:
    with sqlite_connection(sqlite_url) as (connection, execute, commit):
        fill_the_disk(execute)
        with pytest.raises(sqlite3.OperationalError, match=r"disk is full$"):
            outbox.record(connection, LARGE)
        execute("INSERT INTO bookings VALUES ('B')")
        commit()
    assert bookings(sqlite_url) == ["B"]


def test_an_asynchronous_connection_says_so_too(outbox: Outbox, sqlite_url: str) -> None:
    async def run() -> None:
        engine = create_async_engine(sqlite_url.replace("sqlite:", "sqlite+aiosqlite:", 1))
        async with engine.connect() as connection:
            ((pages,),) = await connection.exec_driver_sql("PRAGMA page_count")
            await connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 3}")
            await connection.exec_driver_sql("INSERT INTO bookings VALUES ('A')")
            with pytest.raises(Exception, match=GONE):
                await outbox.record_async(connection, LARGE)
            with pytest.raises(PendingRollbackError):
                await connection.exec_driver_sql("INSERT INTO bookings VALUES ('B')")
        await engine.dispose()

    asyncio.run(run())
    assert bookings(sqlite_url) == []


@pytest.mark.parametrize("first", [False, True], ids=["the first statement", "a later one"])
def test_the_recipe_of_sqlalchemy_that_begins_at_its_event_is_no_autocommit(
    outbox: Outbox, sqlite_url: str, first: bool
) -> None:
    engine = engine_of(sqlite_url)

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    with engine.connect() as connection:
        if first:
            connection.exec_driver_sql("INSERT INTO bookings VALUES ('A')")
        outbox.record(connection, {**LARGE, "id": "rolled back"})
        connection.rollback()
        outbox.record(connection, {**LARGE, "id": "kept"})
        connection.commit()
        with connection.begin():
            outbox.record(connection, {**LARGE, "id": "kept too"})
    with engine.connect() as connection:
        ids = connection.exec_driver_sql("SELECT event_id FROM followup_outbox").scalars().all()
    assert ids == ["kept", "kept too"]
