"""Removes the copies of earlier data from a SQLite file.

Copies of what was changed or erased remain in free parts of the file and in its log. ``VACUUM`` writes the file anew,
from what is still in the tables, and a checkpoint empties the log.
"""

import sqlite3
from contextlib import closing
from typing import Any

from followup._store.database import Database

_PATIENCE = 30
"""Seconds to wait for other processes that use the file."""


def scrub(database: Database) -> str:
    """Write a SQLite file anew and empty its log; return why copies may be left, or an empty text."""
    if database.dialect != "sqlite":
        return ""
    # On the driver's own connection, because SQLAlchemy begins a transaction, in which VACUUM is impossible.
    with closing(database.engine.raw_connection()) as pooled:
        driver: Any = pooled.driver_connection
        is_file = any(path for _, name, path in driver.execute("PRAGMA database_list") if name == "main")
        ((patience,),) = driver.execute("PRAGMA busy_timeout")
        try:
            driver.execute(f"PRAGMA busy_timeout = {_PATIENCE * 1000}")
            return _rewrite(driver) if is_file else ""
        except sqlite3.Error as error:
            return f"{type(error).__name__}: {error}"
        finally:
            driver.execute(f"PRAGMA busy_timeout = {patience}")


def _rewrite(driver: Any) -> str:
    """Write a file anew; return why copies may be left, or an empty text."""
    ((mode,),) = driver.execute("PRAGMA journal_mode")
    driver.execute("VACUUM")
    if mode == "persist":  # its journal remains, with the pages as they were before
        driver.execute("PRAGMA journal_mode = DELETE").fetchall()
        driver.execute("PRAGMA journal_mode = PERSIST").fetchall()
    ((is_busy, _, _),) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return "the log is in use" if is_busy else ""
