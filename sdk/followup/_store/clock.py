"""The time of a store: the clock that its tables use, and waiting. Nothing else in a store reads a clock or sleeps.

In production that is the clock of the database, and real waiting. A mock in this process can replace both by its own
clock: for all stores, as its simulation does, or for the relays whose client is a client of the mock.
"""

import threading
import time
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import BigInteger, ColumnElement, Connection, literal, literal_column, select

from followup._store.database import Dialect, checked_dialect
from followup._time import REAL_TIME, Time, virtual_time_of_stores, with_current_time

if TYPE_CHECKING:
    from followup._client import FollowUp

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


class VirtualTime:
    """The time of a mock in this process, in which waiting takes no real time."""

    def __init__(self, time: Time) -> None:
        self._time = time

    def sql(self, dialect: Dialect) -> str:  # noqa: ARG002 - the database does not matter
        """Return the time of the mock."""
        return str(round(self._time.now().timestamp() * 1000))

    def now(self) -> datetime:
        """Return the time of the mock."""
        return self._time.now()

    def monotonic(self) -> float:
        """Return the seconds of the mock's clock, which never decrease."""
        return self._time.monotonic()

    def wait(self, seconds: float, stop: threading.Event | None) -> None:
        """Let the time of the mock pass, unless ``stop`` is set."""
        if stop is None or not stop.is_set():
            self._time.sleep(seconds)


class DefaultTime:
    """The time of every outbox and inbox: virtual while a mock replaces it, otherwise that of the database."""

    def sql(self, dialect: Dialect) -> str:
        """Return the expression for the current time."""
        return _default_time().sql(dialect)

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return _default_time().now()

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return _default_time().monotonic()

    def wait(self, seconds: float, stop: threading.Event | None) -> None:
        """Wait in the time that is set now."""
        _default_time().wait(seconds, stop)


def _default_time() -> StoreTime:
    virtual = virtual_time_of_stores()
    return DATABASE_TIME if virtual is None else VirtualTime(virtual)


DEFAULT_TIME = DefaultTime()


def time_of(client: "FollowUp", default: StoreTime) -> StoreTime:
    """Return the time of a relay: that of a client of a mock, unless all stores are in virtual time already."""
    time = with_current_time(client._options).time
    return default if time is REAL_TIME or virtual_time_of_stores() is not None else VirtualTime(time)


def current_time(connection: Connection, clock: StoreTime) -> int:
    """Return the current time of a store, in milliseconds since the epoch."""
    return connection.execute(select(sql_time(connection.dialect.name, clock))).scalar_one()


def sql_time(dialect: str, clock: StoreTime) -> ColumnElement[int]:
    """Return the current time of a store as an expression of SQLAlchemy, in milliseconds since the epoch."""
    text = clock.sql(checked_dialect(dialect))
    # A number in the text of a statement would have SQLAlchemy compile the statement again for each time.
    return literal(int(text), BigInteger) if text.isdigit() else literal_column(text, BigInteger)


def datetime_of(milliseconds: int) -> datetime:
    """Return a time in the tables as an aware datetime, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def seconds_since(then: int | None, now: int) -> float | None:
    """Return the seconds between two times in the tables, 0 if the clock was set back; None if there is no time."""
    return None if then is None else max(0, now - then) / 1000
