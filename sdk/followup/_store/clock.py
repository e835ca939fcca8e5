"""The time of a store: the clock that its tables use, and waiting. Nothing else in a store reads a clock or sleeps.

``DATABASE_TIME`` is the default. A simulation passes its own ``StoreTime``, whose clock is that of the mock.
"""

import threading
import time
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

from sqlalchemy import BigInteger, ColumnElement, Connection, literal_column, select

from followup._store.database import Dialect, checked_dialect

_NOW = MappingProxyType(
    {
        # clock_timestamp(), because now() is the time at which the transaction began.
        "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    }
)


class StoreTime(Protocol):
    """A clock, and waiting for it."""

    def sql(self, dialect: Dialect) -> str:
        """Return a SQL expression of the current time, in milliseconds since the epoch."""
        ...

    def now(self) -> datetime:
        """Return the current time of this machine as an aware datetime, for the data of an event."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back, for durations within this process."""
        ...

    def wait(self, seconds: float, stop: threading.Event | None) -> None:
        """Wait for so many seconds, or until ``stop`` is set."""
        ...


class DatabaseTime:
    """The clock of the database, and real waiting."""

    def sql(self, dialect: Dialect) -> str:
        """Return the expression for the clock of the database."""
        return _NOW[dialect]

    def now(self) -> datetime:
        """Return the time of this machine, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return ``time.monotonic()``."""
        return time.monotonic()

    def wait(self, seconds: float, stop: threading.Event | None) -> None:
        """Sleep in this thread."""
        if stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)


DATABASE_TIME = DatabaseTime()


def current_time(connection: Connection, clock: StoreTime) -> int:
    """Return the current time of a store, in milliseconds since the epoch."""
    return connection.execute(select(sql_time(connection.dialect.name, clock))).scalar_one()


def sql_time(dialect: str, clock: StoreTime) -> ColumnElement[int]:
    """Return the current time of a store as an expression of SQLAlchemy, in milliseconds since the epoch."""
    return literal_column(clock.sql(checked_dialect(dialect)), BigInteger)
