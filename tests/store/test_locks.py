"""Locks that all processes share."""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from sqlalchemy.exc import DBAPIError

from followup._store import leases
from followup._store.database import Database
from followup._store.leases import take_lock
from followup._store.schema import Schema

pytestmark = pytest.mark.on_all


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    Schema("outbox", 1, []).create(database)
    yield database
    database.close()


def test_one_holder_at_a_time(database: Database) -> None:
    """Each thread reads a number and writes it back, which loses updates without a lock."""
    with database.transaction() as connection:
        connection.exec_driver_sql("CREATE TABLE counter (value INTEGER)")
        connection.exec_driver_sql("INSERT INTO counter VALUES (0)")

    def count() -> None:
        for _ in range(25):
            with database.transaction() as connection:
                take_lock(connection, "counter")
                value = connection.exec_driver_sql("SELECT value FROM counter").scalar_one()
                connection.exec_driver_sql(f"UPDATE counter SET value = {value + 1}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: count(), range(4)))
    with database.transaction() as connection:
        assert connection.exec_driver_sql("SELECT value FROM counter").scalar_one() == 100


def test_the_next_holder_sees_what_the_previous_one_committed(database: Database) -> None:
    """The statement after the lock has a newer snapshot than the lock, which had to wait."""
    waiting, seen = threading.Event(), queue.SimpleQueue[list[str]]()

    def look() -> None:
        with database.transaction() as connection:
            waiting.set()
            take_lock(connection, "a")
            seen.put([*connection.exec_driver_sql("SELECT value FROM work").scalars()])

    with database.transaction() as connection:
        connection.exec_driver_sql("CREATE TABLE work (value INTEGER)")
    with database.transaction() as connection:
        take_lock(connection, "a")
        thread = threading.Thread(target=look)
        thread.start()
        waiting.wait()
        connection.exec_driver_sql("INSERT INTO work VALUES (1)")
    thread.join()
    assert seen.get() == [1]


def test_locks_of_other_names_and_of_other_kinds_are_apart(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    schema = Schema("outbox", 1, [])
    schema.create(database)
    with ExitStack() as stack:
        for name in ("outbox:a", "outbox:b", "inbox:a", "import:a", "a" * 255 + "b", "a" * 255 + "c"):
            take_lock(stack.enter_context(database.transaction()), name)
        schema.create(database)
    database.close()


def test_a_lock_leaves_no_dead_rows(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    Schema("outbox", 1, []).create(database)
    for _ in range(3):
        with database.transaction() as connection:
            take_lock(connection, "a")
            written = connection.exec_driver_sql("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
            assert not written.scalar_one()
    database.close()


@pytest.mark.parametrize("database_url", ["postgresql", "mysql"], indirect=True)
def test_a_frozen_holder_loses_its_lock(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "FROZEN_HOLDER_SECONDS", 1)
    database = Database(database_url)
    Schema("outbox", 1, []).create(database)

    def freeze() -> None:
        with database.transaction() as frozen:
            take_lock(frozen, "a")
            with database.transaction() as other:
                take_lock(other, "a")
            take_lock(frozen, "b")

    with pytest.raises(DBAPIError, match=r"idle-in-transaction|gone away|Lost connection|inactivity"):
        freeze()
    database.close()
