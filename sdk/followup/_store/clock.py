"""The time of a store: the clock that its tables use, and waiting. Nothing else in a store reads a clock or sleeps.

``DATABASE_TIME`` is the default. A client of a mock in this process has a clock of its own, which ``ClientTime`` uses.
"""

import threading
import time
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Protocol
from weakref import WeakKeyDictionary

from sqlalchemy import BigInteger, ColumnElement, Connection, literal_column, select

from followup._store.database import Dialect, checked_dialect
from followup._time import REAL_TIME, Time
from followup._virtual_time import with_current_time

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


class ClientTime:
    """The virtual time of a client, in which waiting takes no real time.

    Args:
        time: the time of the client.
    """

    _origins: ClassVar[WeakKeyDictionary[Time, float]] = WeakKeyDictionary()

    def __init__(self, time: Time) -> None:
        self._time = time
        # The clock of a client begins anywhere. All stores that use it have to agree, also after a simulated crash.
        self._origin = self._origins.setdefault(time, datetime.now(UTC).timestamp() - time.monotonic())

    def sql(self, dialect: Dialect) -> str:  # noqa: ARG002 - the database does not matter
        """Return the time of the client."""
        return str(round((self._origin + self._time.monotonic()) * 1000))

    def now(self) -> datetime:
        """Return the time of the client, in UTC."""
        return datetime.fromtimestamp(self._origin + self._time.monotonic(), UTC)

    def monotonic(self) -> float:
        """Return the seconds of the client's clock."""
        return self._time.monotonic()

    def wait(self, seconds: float, stop: threading.Event | None) -> None:  # noqa: ARG002 - it returns at once
        """Let the time of the client pass."""
        self._time.sleep(seconds)


def time_of(client: "FollowUp", default: StoreTime) -> StoreTime:
    """Return the virtual time of a client that lives in one, such as that of a mock; otherwise the default."""
    time = with_current_time(client._options).time
    return default if time is REAL_TIME else ClientTime(time)


def current_time(connection: Connection, clock: StoreTime) -> int:
    """Return the current time of a store, in milliseconds since the epoch."""
    return connection.execute(select(sql_time(connection.dialect.name, clock))).scalar_one()


def sql_time(dialect: str, clock: StoreTime) -> ColumnElement[int]:
    """Return the current time of a store as an expression of SQLAlchemy, in milliseconds since the epoch."""
    return literal_column(clock.sql(checked_dialect(dialect)), BigInteger)
