"""Locks that all processes share."""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import DBAPIError

from followup._store import leases
from followup._store.database import Database
from followup._store.leases import take_lock
from followup._store.schema import LOCKS, Schema

pytestmark = pytest.mark.on_both


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
        assert connection.execute(LOCKS.select()).all() == [("counter", 100)]


def test_the_next_holder_sees_what_the_previous_one_committed(database: Database) -> None:
    """The statement after the lock has a newer snapshot than the lock, which had to wait."""
    waiting, seen = threading.Event(), queue.SimpleQueue[list[str]]()

    def look() -> None:
        with database.transaction() as connection:
            waiting.set()
            take_lock(connection, "a")
            seen.put([name for name, _ in connection.execute(LOCKS.select().order_by(LOCKS.c.name))])

    with database.transaction() as connection:
        take_lock(connection, "a")
        thread = threading.Thread(target=look)
        thread.start()
        waiting.wait()
        take_lock(connection, "b")
    thread.join()
    assert seen.get() == ["a", "b"]


def test_a_frozen_holder_loses_its_lock(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "FROZEN_HOLDER_SECONDS", 1)
    database = Database(postgresql_url)
    Schema("outbox", 1, []).create(database)

    def freeze() -> None:
        with database.transaction() as frozen:
            take_lock(frozen, "a")
            with database.transaction() as other:
                take_lock(other, "a")
            take_lock(frozen, "b")

    with pytest.raises(DBAPIError, match="idle-in-transaction"):
        freeze()
    database.close()
