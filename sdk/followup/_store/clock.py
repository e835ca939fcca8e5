"""The clock of a store. Nothing else in a store reads a clock or sleeps.

In production it is the clock of the database, and real waiting. A mock in this process can replace both by its own
clock: for all stores, as its simulation does, or for the relays whose client is a client of the mock.
"""

import threading
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, ColumnElement, Connection, literal, literal_column, select

from followup._core.time import REAL_TIME, Time, find_replacement

if TYPE_CHECKING:
    from followup import FollowUp


def _expression(sql: str) -> ColumnElement[int]:
    return literal_column(sql, BigInteger)


_NOW = MappingProxyType(
    {
        # clock_timestamp(), because now() is the time at which the transaction began.
        "postgresql": _expression("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"),
        "sqlite": _expression("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
    }
)


class StoreTime:
    """A clock, and waiting for it: those of the database and this process, unless a mock has replaced them."""

    def __init__(self, virtual: Time | None = None) -> None:
        """Use a virtual time; by default that of all stores, while there is one."""
        self._own = virtual

    def _virtual(self) -> Time | None:
        return _virtual_time_of_stores() if self._own is None else self._own

    def sql(self, dialect: str) -> ColumnElement[int]:
        """Return the current time as an expression of SQL, in milliseconds since the epoch."""
        if (virtual := self._virtual()) is None:
            return _NOW[dialect]
        # A number in the text of a statement would have SQLAlchemy compile the statement again for each time.
        return literal(_milliseconds_of(virtual), BigInteger)

    def milliseconds(self, connection: Connection) -> int:
        """Return the current time, in milliseconds since the epoch."""
        if (virtual := self._virtual()) is not None:
            return _milliseconds_of(virtual)
        return connection.execute(select(self.sql(connection.dialect.name))).scalar_one()

    def now(self) -> datetime:
        """Return the current time of this machine as an aware datetime, for the data of an event."""
        return (self._virtual() or REAL_TIME).now()

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back, for durations within this process."""
        return (self._virtual() or REAL_TIME).monotonic()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Wait for so many seconds, or until ``stop`` is set. Virtual time passes at once."""
        virtual = self._virtual()
        if virtual is None:
            stop.wait(seconds)
        elif not stop.is_set():
            virtual.sleep(seconds)


def _milliseconds_of(time: Time) -> int:
    return round(time.now().timestamp() * 1000)


def time_of(client: "FollowUp", default: StoreTime) -> StoreTime:
    """Return the time of a relay: that of a client of a mock, unless all stores are in virtual time already."""
    time = client._options.at_present().time
    return default if time is REAL_TIME or _virtual_time_of_stores() is not None else StoreTime(time)


def _virtual_time_of_stores() -> Time | None:
    replacement = find_replacement(None)
    return None if replacement is None else replacement.time_of("")


def datetime_of(milliseconds: int) -> datetime:
    """Return a time in the tables as an aware datetime, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
