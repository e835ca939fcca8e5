"""A crash before a commit undoes it, one after it does not, and nothing of the process goes on, with each driver."""

import asyncio
import gc
import random
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import aiosqlite
import django.db.backends.sqlite3.base
import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from support.connections import django as django_connection
from support.connections import on_kinds
from support.databases import engine_of
from support.integrations.stores import Stores

from followup import FollowUp
from followup_mockserver.lab.simulation.drivers import _commits
from followup_mockserver.lab.simulation.history import Book, CrashAtCommit, seed_of
from followup_mockserver.lab.simulation.promises import time_of
from followup_mockserver.simulation import Booking, Clinic, Crash, simulate

INSERT = "INSERT INTO bookings VALUES ('B1')"


def of_sqlite(url: str, **options: Any) -> Any:
    return closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, **options))


def leave(url: str) -> None:
    with of_sqlite(url) as connection, connection:
        connection.execute(INSERT)


def commit(url: str) -> None:
    with of_sqlite(url) as connection:
        connection.cursor().execute(INSERT)
        connection.commit()


def begin(url: str) -> None:
    with of_sqlite(url, isolation_level=None) as connection:
        for each in ("BEGIN", INSERT, "/* all */ commit"):
            connection.execute(each)


def autocommit(url: str) -> None:
    with of_sqlite(url, isolation_level=None) as connection:
        connection.execute(f"-- alone\n{INSERT}")


def positional(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), 0, 0, None, False)) as connection:
        connection.execute(INSERT)


def script(url: str) -> None:
    with of_sqlite(url) as connection:
        connection.executescript(f"BEGIN; {INSERT}; COMMIT; SELECT 1")


def end_of_transactions(url: str) -> None:
    with of_sqlite(url) as connection:
        connection.execute(INSERT)
        connection.isolation_level = None


def engine_begin(url: str) -> None:
    with engine_of(url).begin() as connection:
        connection.execute(text(INSERT))


def session_commit(url: str) -> None:
    with Session(engine_of(url)) as session:
        session.execute(text(INSERT))
        session.commit()


def django_atomic(url: str) -> None:
    with django_connection(url) as connection:
        connection.set_autocommit(False)
        connection.cursor().execute(INSERT)
        connection.commit()


def django_autocommit(url: str) -> None:
    with django_connection(url) as connection:
        connection.cursor().execute(INSERT)


def psycopg_leave(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(INSERT)


def psycopg_transaction(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute(INSERT)


def psycopg_asynchronous(url: str) -> None:
    async def insert() -> None:
        opened = await psycopg.AsyncConnection.connect(url)
        async with opened as connection, connection.transaction(), connection.transaction():
            await connection.execute(INSERT)

    asyncio.run(insert())


def psycopg_autocommit(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(INSERT.encode())


BOTH = [engine_begin, session_commit, django_atomic, django_autocommit]
SQLITE = [leave, commit, begin, autocommit, positional, script, end_of_transactions]
POSTGRESQL = [psycopg_leave, psycopg_transaction, psycopg_autocommit, psycopg_asynchronous]


def clinic_with(insert: Callable[[str], None], url: str) -> type[Clinic]:
    """Return a clinic that inserts its booking, tells nobody, and tries to go on after a crash."""

    class Inserting(Clinic):
        def start(self, client: FollowUp, folder: Path) -> None:
            self.client = client
            if not (folder / "begun").exists():
                (folder / "begun").touch()
                with engine_of(url).begin() as connection:
                    connection.execute(text("DELETE FROM bookings"))

        def book(self, booking: Booking) -> None:
            try:
                insert(url)
            except Crash:
                with suppress(BaseException):
                    insert(url)
                with suppress(BaseException):
                    self.client.patients.create(phone=booking.phone)
                raise

        def reschedule(self, booking: Booking) -> None: ...

        def cancel(self, booking: Booking) -> None: ...

        def bookings(self) -> dict[str, datetime | None]:
            with engine_of(url).connect() as connection:
                found = list(connection.execute(text("SELECT id FROM bookings")).scalars())
            assert len(found) < 2
            return dict.fromkeys(found, time_of(0))

    return Inserting


@on_kinds("insert", every=BOTH, sqlite=SQLITE, postgresql=POSTGRESQL)
def test_a_crash_before_a_commit_undoes_it_and_one_after_it_does_not(insert: Any, database_url: str) -> None:
    with engine_of(database_url).begin() as connection:
        connection.execute(text("CREATE TABLE bookings (id TEXT)"))
    clinic = clinic_with(insert, database_url)
    simulate(clinic, examples=1, seed=seed_of((CrashAtCommit(0), Book(0, 0))))
    with pytest.raises(AssertionError, match=r"\n2\. The clinic crashed after it committed \((clinic|postgres|mysql)"):
        simulate(clinic, examples=1, seed=seed_of((CrashAtCommit(1), Book(0, 0))))


@pytest.mark.parametrize(("statement", "is_commit"), [("SELECT ", False), ("INSERT INTO bookings VALUES (", True)])
def test_a_template_string_for_psycopg_is_read(statement: str, is_commit: bool) -> None:
    template = SimpleNamespace(strings=(statement, ")"))  # Python has template strings from 3.14 on
    state = {"info.transaction_status.name": "IDLE", "autocommit": True, "pgconn.pipeline_status": 0}
    connection = mock.Mock(**state)
    assert _commits(connection, template) is is_commit


def test_an_engine_and_a_session_that_survive_a_restart_have_no_connection_of_the_crashed_process(
    sqlite_url: str,
) -> None:
    engine = create_engine(sqlite_url)

    def insert(url: str) -> None:
        connection = engine.connect()  # it is never given back
        connection.execute(text(INSERT))
        connection.commit()

    with of_sqlite(sqlite_url) as connection:
        connection.execute("CREATE TABLE bookings (id TEXT)")
    clinic = clinic_with(insert, sqlite_url)
    simulate(clinic, examples=1, seed=seed_of((CrashAtCommit(0), Book(0, 0)) * 2))
    assert engine.pool.status().endswith("Current Checked out connections: 0")


def test_a_thread_of_a_crashed_process_commits_nothing(tmp_path: Path) -> None:
    threads = []

    def insert(url: str) -> None:
        def later() -> None:
            leaves.wait(60)
            leave(url)

        leaves = threading.Event()
        threads.append((threading.Thread(target=later), leaves))
        threads[-1][0].start()
        leave(url)

    url = f"sqlite:///{tmp_path / 'clinic.db'}"
    with of_sqlite(url) as connection:
        connection.execute("CREATE TABLE bookings (id TEXT)")

    class Lasting(clinic_with(insert, url)):  # type: ignore[misc]
        def bookings(self) -> Any:
            for thread, leaves in threads:
                leaves.set()
                thread.join(60)
            return super().bookings()

    simulate(Lasting, examples=1, seed=seed_of((CrashAtCommit(0), Book(0, 0))))


# --- afterwards ------------------------------------------------------------------------------------------------------

PACKAGES = (
    "aiosqlite",
    "asyncio",
    "django.db",
    "os",
    "psycopg",
    "random",
    "secrets",
    "sqlalchemy",
    "sqlite3",
    "threading",
)
LOADED = (aiosqlite, django, psycopg)
"""They are loaded so that there is something to replace in them."""


class Exits(Stores):
    def book(self, booking: Booking) -> None:
        raise KeyboardInterrupt


def names() -> Iterator[tuple[str, Any]]:
    """Yield each name of a function or class in a module, and in a class of it, with its object."""
    for module in [*sys.modules.values()]:
        package = getattr(module, "__name__", "")
        if package.startswith(PACKAGES) or package == "time":
            for name, value in [*vars(module).items()]:
                yield f"{package}.{name}", value
                if issubclass(type(value), type) and value.__module__.startswith(PACKAGES):
                    yield from ((f"{package}.{name}.{each}", found) for each, found in [*vars(value).items()])


@pytest.mark.parametrize(("clinic", "outcome"), [(Stores, None), (Exits, KeyboardInterrupt)])
def test_a_simulation_restores_what_it_replaced(clinic: type[Stores], outcome: type[BaseException] | None) -> None:
    simulate(Stores, examples=1, seed=1)  # what is loaded or built once is there before the names are read
    before = {name: value for name, value in names() if callable(value)}
    assert {"sqlite3.connect", "psycopg.Connection.commit", "threading.Thread.start"} <= before.keys()
    state, hook = random.getstate(), threading.excepthook
    if outcome is None:
        simulate(clinic, examples=2, seed=2)
    else:
        with pytest.raises(outcome):
            simulate(clinic, examples=2, seed=2)
    assert [name for name, value in names() if name in before and before[name] is not value] == []
    assert (random.getstate(), threading.excepthook, gc.get_freeze_count()) == (state, hook, 0)
