"""An error of an outbox leaves no personal data, key or password behind in local variables of our frames."""

import asyncio
import contextlib
import json
import re
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session
from support import leaks
from support.connections import async_engine, django, psycopg_of, pymysql_of
from support.databases import execute
from support.responses import error
from support.server import reply

from followup import FollowUp
from followup.outbox import Outbox

from .conftest import Service, batch, result

PLANTED = re.compile("11 ?5555|Ana Secreta|fu_test_secret|hunter2")
EVENT: Any = {
    "id": "e1",
    "type": "patient.upserted",
    "data": {"patient": {"phone": "+54 9 11 5555-0000", "fullName": "Ana Secreta"}},
}


def assert_shows_nothing(call: Callable[[], Any]) -> None:
    leaks.assert_shows_nothing(call, PLANTED)


@contextlib.contextmanager
def without(engine: Engine, table: str) -> Any:
    """Let the statements on a table fail."""
    execute(engine, f"ALTER TABLE {table} RENAME TO not_{table}")
    yield
    execute(engine, f"ALTER TABLE not_{table} RENAME TO {table}")


@pytest.mark.on_all
def test_record_on_each_kind_of_connection(outbox: Outbox, engine: Engine, database_url: str) -> None:
    with without(engine, "followup_outbox"), contextlib.ExitStack() as stack:
        connections: list[Any] = [
            stack.enter_context(engine.connect()),
            stack.enter_context(Session(engine)),
            stack.enter_context(django(database_url)),
        ]
        connections[2].set_autocommit(False)
        if engine.dialect.name == "sqlite":
            path = database_url.removeprefix("sqlite:///")
            connections.append(stack.enter_context(contextlib.closing(sqlite3.connect(path))))
        else:
            of_driver = pymysql_of if engine.dialect.name == "mysql" else psycopg_of
            connections.append(stack.enter_context(of_driver(database_url)))
        for connection in connections:
            assert_shows_nothing(lambda each=connection: outbox.record(each, EVENT))
            assert_shows_nothing(lambda each=connection: outbox.record(each, {**EVENT, "type": "Ana Secreta"}))
            assert_shows_nothing(lambda each=connection: outbox.record(each, EVENT, "Ana Secreta" * 100))
            if hasattr(connection, "rollback"):
                connection.rollback()
    assert_shows_nothing(lambda: outbox.record("Ana Secreta", EVENT))  # type: ignore[arg-type]


@pytest.mark.on_all
@pytest.mark.parametrize("was_used", [False, True])
def test_record_where_the_tables_are_missing(outbox: Outbox, engine: Engine, database_url: str, was_used: bool) -> None:
    """An outbox that has recorded before finds out about its tables when the event is there already."""
    if was_used:
        with engine.begin() as connection:
            outbox.record(connection, {**EVENT, "id": "e0"})

    async def record_async() -> None:
        async with async_engine(database_url).connect() as connection:
            await outbox.record_async(connection, EVENT)

    with without(engine, "followup_outbox"):
        assert_shows_nothing(lambda: asyncio.run(record_async()))
        with engine.connect() as own, without(engine, "followup_schema"):
            assert_shows_nothing(lambda: asyncio.run(record_async()))
            assert_shows_nothing(lambda: outbox.record(own, EVENT))
    execute(engine, "ALTER TABLE followup_outbox RENAME COLUMN due_at TO other")  # which may not be NULL
    with engine.connect() as own:
        assert_shows_nothing(lambda: outbox.record(own, EVENT))


@pytest.mark.on_all
def test_record_where_the_database_rejects_the_row(outbox: Outbox, engine: Engine, database_url: str) -> None:
    """PostgreSQL quotes a row that violates a constraint."""
    with engine.begin() as connection:
        outbox.record(connection, {**EVENT, "id": "e0"})
    execute(engine, "DELETE FROM followup_outbox")
    if engine.dialect.name == "sqlite":
        execute(engine, "CREATE TRIGGER t BEFORE INSERT ON followup_outbox BEGIN SELECT RAISE(ABORT, 'no'); END")
    else:
        execute(engine, "ALTER TABLE followup_outbox ADD CONSTRAINT short CHECK (length(event) < 10)")
    with contextlib.ExitStack() as stack:
        connections: list[Any] = [stack.enter_context(engine.connect()), stack.enter_context(django(database_url))]
        connections[1].set_autocommit(False)
        if engine.dialect.name == "postgresql":
            connections.append(stack.enter_context(psycopg_of(database_url)))
        for each in connections:
            assert_shows_nothing(lambda each=each: outbox.record(each, EVENT))
            each.rollback()


@pytest.fixture
def recorded(outbox: Outbox, engine: Engine) -> Outbox:
    with engine.begin() as connection:
        outbox.record(connection, EVENT)
    return outbox


def test_drain_and_run(recorded: Outbox, engine: Engine, service: Service) -> None:
    with FollowUp(api_key="fu_test_secret", base_url=service.url) as client:
        service.script = [reply(401, error(message="Ana Secreta"))]
        assert_shows_nothing(lambda: recorded.drain(client))
        service.clock.seconds += 60
        service.script = [batch(lambda each: result(each, "failed", "Ana Secreta: +54 9 11 5555-0000"))]
        with without(engine, "followup_outbox_rates"):
            assert_shows_nothing(lambda: recorded.drain(client))

        @event.listens_for(engine, "before_cursor_execute")
        def interrupt(_: object, __: object, statement: str, *___: object) -> None:
            if "finished_at" in statement and statement.startswith("UPDATE"):
                raise KeyboardInterrupt

        on_engine = Outbox(engine)
        assert_shows_nothing(lambda: on_engine.drain(client))
        service.clock.seconds += 60
        assert_shows_nothing(lambda: on_engine.run(client))


def test_what_lists_and_changes_events(recorded: Outbox, engine: Engine) -> None:
    execute(engine, "UPDATE followup_outbox SET state = 'dead', error = 'Ana Secreta', event = '[' || event")
    assert_shows_nothing(recorded.dead)
    execute(engine, "UPDATE followup_outbox SET state = 'waiting'")
    assert_shows_nothing(recorded.failing)
    for each in ("Ana Secreta", "e1"):
        assert_shows_nothing(lambda each=each: recorded.retry(each))
        assert_shows_nothing(lambda each=each: recorded.discard(each))
    with without(engine, "followup_outbox"):
        assert_shows_nothing(lambda: recorded.purge(older_than=timedelta(0)))
        assert_shows_nothing(recorded.status)


@pytest.mark.parametrize(
    "call",
    [Outbox.create_tables, Outbox.status, Outbox.dead, Outbox.failing, Outbox.retry],
    ids=lambda each: each.__name__,
)
def test_the_password_of_a_database(call: Callable[[Outbox], object]) -> None:
    unreachable = Outbox("postgresql://clinic:hunter2@127.0.0.1:1/clinic")
    assert_shows_nothing(lambda: call(unreachable))


def test_a_constructor(sqlite_url: str) -> None:
    assert_shows_nothing(lambda: Outbox("oracle://clinic:hunter2@127.0.0.1/clinic"))
    assert_shows_nothing(lambda: Outbox("nonsense hunter2"))
    assert_shows_nothing(lambda: Outbox("postgresql://clinic:hunter2/clinic"))
    assert_shows_nothing(lambda: Outbox("postgresql://clinic:a@hunter2@127.0.0.1/clinic"))
    assert_shows_nothing(lambda: Outbox("postgresql://clinic:a@b/hunter2@127.0.0.1/clinic"))
    assert_shows_nothing(lambda: Outbox(sqlite_url).ddl(from_version=json.loads('"hunter2"')))
