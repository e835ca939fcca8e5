"""Removes the copies of earlier data from a SQLite file.

Copies of what was changed or erased remain in free parts of the file and in its log. ``VACUUM`` writes the file anew,
from what is still in the tables, and a checkpoint empties the log.
"""

import sqlite3
import threading
from contextlib import closing
from typing import Any

from followup._core.results.errors import FollowUpError
from followup._store.clock import StoreTime
from followup._store.database import Database

_TRIES = 30
"""How often a statement is tried while other processes use the file, about once a second."""

_WAIT = 0.5
"""Seconds that a try waits for other processes. Meanwhile they wait for it, so it gives way to them for as long."""


def scrub(database: Database, clock: StoreTime, done: str, copied: str, again: str) -> None:
    """Write a SQLite file anew and empty its log.

    Args:
        database: the database; nothing is done if it is another one than SQLite.
        clock: the clock, by which it waits for other processes.
        done: for the error, what has been done.
        copied: for the error, what copies may be left of.
        again: for the error, what is to be done again.

    Raises:
        FollowUpError: copies may be left, because other processes use the file, for example.
    """
    if database.dialect == "sqlite" and (problem := _scrubbed(database, clock)):
        raise FollowUpError(
            f"{done}, but the file of the database or its log still has copies of {copied} ({problem}): {again} again "
            "when fewer processes use it"
        )


def _scrubbed(database: Database, clock: StoreTime) -> str:
    """Write a SQLite file anew and empty its log; return why copies may be left, or an empty text."""
    # On the driver's own connection, because SQLAlchemy begins a transaction, in which VACUUM is impossible.
    with closing(database.engine.raw_connection()) as pooled:
        driver: Any = pooled.driver_connection
        is_file = any(path for _, name, path in driver.execute("PRAGMA database_list") if name == "main")
        ((patience,),) = driver.execute("PRAGMA busy_timeout")
        try:
            driver.execute(f"PRAGMA busy_timeout = {round(_WAIT * 1000)}")
            return _rewrite(driver, clock) if is_file else ""
        except sqlite3.Error as error:
            return f"{type(error).__name__}: {error}"
        finally:
            driver.execute(f"PRAGMA busy_timeout = {patience}")


def _rewrite(driver: Any, clock: StoreTime) -> str:
    """Write a file anew; return why copies may be left, or an empty text."""
    ((mode,),) = driver.execute("PRAGMA journal_mode")
    _execute(driver, "VACUUM", clock)
    if mode == "persist":  # its journal remains, with the pages as they were before
        driver.execute("PRAGMA journal_mode = DELETE").fetchall()
        driver.execute("PRAGMA journal_mode = PERSIST").fetchall()
    return "" if _execute(driver, "PRAGMA wal_checkpoint(TRUNCATE)", clock) else "the log is in use"


def _execute(driver: Any, statement: str, clock: StoreTime) -> bool:
    """Try a statement again while others are in its way; return whether it was done.

    Raises:
        sqlite3.Error: it is impossible, or another process has kept the file locked.
    """
    for left in reversed(range(_TRIES)):
        try:
            rows = driver.execute(statement).fetchall()
            if not rows or not rows[0][0]:  # a checkpoint says so whether it was busy
                return True
        except sqlite3.OperationalError as error:
            if not left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        if left:
            clock.wait(_WAIT, threading.Event())
    return False
