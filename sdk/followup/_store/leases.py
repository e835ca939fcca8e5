"""The clock of a store, and leases: how long a row belongs to the process that claimed it, and when it is due again.

Nothing else in a store reads a clock or sleeps. In production it is the clock of the database, and real waiting. A mock
in this process can replace both by its own clock: for all stores, as its simulation does, or for the relays whose
client is a client of the mock.

Claims are made under a lock that all processes of a database share, and that lasts until the end of its transaction.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Table, and_, literal, or_, select, update

from followup._core.errors import ConfigurationError
from followup._core.time import REAL_TIME, Time, find_replacement, random_fraction
from followup._store.dialects import Dialect, dialect_of
from followup._store.execution import schema_of
from followup._store.schema import IN_FLIGHT, WAITING

if TYPE_CHECKING:
    from followup import FollowUp


class StoreTime:
    """A clock, and waiting for it: those of the database and this process, unless a mock has replaced them."""

    def __init__(self, virtual: Time | None = None) -> None:
        """Use a virtual time; by default that of all stores, while there is one."""
        self._own = virtual

    def _virtual(self) -> Time | None:
        return _virtual_time_of_stores() if self._own is None else self._own

    def sql(self, dialect: Dialect) -> ColumnElement[int]:
        """Return the current time as an expression of SQL, in milliseconds since the epoch."""
        if (virtual := self._virtual()) is None:
            return dialect.now
        # A number in the text of a statement would have SQLAlchemy compile the statement again for each time.
        return literal(_milliseconds_of(virtual), BigInteger)

    def milliseconds(self, connection: Connection) -> int:
        """Return the current time, in milliseconds since the epoch."""
        if (virtual := self._virtual()) is not None:
            return _milliseconds_of(virtual)
        return connection.execute(select(self.sql(dialect_of(connection.dialect.name)))).scalar_one()

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
            ends = self.monotonic() + seconds
            # Before Python 3.14, no signal interrupts a wait on Windows: its handler runs at the end of one.
            while not stop.is_set() and (left := ends - self.monotonic()) > 0:
                stop.wait(min(left, POLL_SECONDS))
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


Now = int | ColumnElement[int]
"""The current time, read before or within the statement."""

FROZEN_HOLDER_SECONDS = 10
"""A server ends a transaction that holds a lock and has been idle for so long: its process is frozen, or its machine
has lost the network. SQLite cannot do so; there, the process has to be ended."""

FIRST_WAIT = 0.5
"""Seconds, at most, from the first failure of a row to its next attempt. It doubles with each failure."""

# 2.0 ** 1024 would be an OverflowError.
_MAX_DOUBLINGS = 30

POLL_SECONDS = 0.5
"""Time between two looks for events that are due, and for a signal to stop."""

RELEASED = MappingProxyType({"lease_token": None, "lease_ends_at": None})
"""The columns of a row that nobody has claimed."""


def retry_wait(attempts: int, longest: float, jitter: Callable[[], float] = random_fraction) -> int:
    """Return the milliseconds until the next attempt: exponential backoff, less up to 25 % jitter.

    Args:
        attempts: number of attempts so far, from 1.
        longest: the upper bound, in seconds.
        jitter: returns a random number from 0 for the longest wait to 1 for the shortest, so that rows that failed
            together are not retried in step.
    """
    seconds = min(longest, FIRST_WAIT * 2.0 ** min(attempts - 1, _MAX_DOUBLINGS))
    return round(seconds * (1 - jitter() / 4) * 1000)


def is_due(columns: Any, now: Now, longest_wait: float) -> ColumnElement[bool]:
    """Return the condition that the wait of an event is over, or began before the clock was set back."""
    return or_(columns.due_at <= now, columns.due_at > now + in_milliseconds(longest_wait))


def is_over(events: Table, name: str, now: Now, longest: float) -> ColumnElement[bool]:
    """Return the condition that the lease of an event has ended, or ends later than any can: the clock was set back."""
    ends_at, latest = events.c.lease_ends_at, now + in_milliseconds(longest)
    return and_(events.c.name == name, events.c.state == IN_FLIGHT, or_(ends_at <= now, ends_at > latest))


def end_leases(connection: Connection, events: Table, name: str, now: int, longest: float, reason: str) -> None:
    """Let the events of ended leases wait again.

    Leases that end too late go on for as long as any lease lasts: the work may still be in flight.
    """
    # The attempt stays counted, because it may have taken effect.
    claimed = update(events).where(events.c.name == name, events.c.state == IN_FLIGHT)
    ended = claimed.where(events.c.lease_ends_at <= now)
    connection.execute(ended.values(state=WAITING, due_at=now, error=reason, **RELEASED))
    latest = now + in_milliseconds(longest)
    connection.execute(claimed.where(events.c.lease_ends_at > latest).values(lease_ends_at=latest))


def in_milliseconds(seconds: float) -> int:
    """Return seconds as a number in the tables."""
    return round(seconds * 1000)


def take_lock(connection: Connection, name: str) -> None:
    """Wait for a lock, and hold it until the transaction ends.

    Call it first in a transaction, so that on SQLite the transaction begins as a writing one: a transaction that
    reads first cannot write once another process has written.

    Args:
        connection: a connection in a transaction of its own.
        name: name of the lock.

    Raises:
        ConfigurationError: the Engine is in autocommit mode, so that its statements form no transaction.
    """
    limit_idle_time(connection, FROZEN_HOLDER_SECONDS)
    dialect = dialect_of(connection.dialect.name)
    connection.execute(dialect.lock(name, schema_of(connection)))
    # In SQLite the lock has begun a transaction, unless each statement commits by itself.
    driver: Any = connection.connection.driver_connection
    if not dialect.is_server and not driver.in_transaction:
        raise ConfigurationError("database is an Engine in autocommit mode, in which no transaction rolls back")


def limit_idle_time(connection: Connection, seconds: float) -> None:
    """Let a server end this transaction if its process is idle for so long, frozen or behind a broken network.

    SQLite cannot do so; there, the process has to be ended. In MySQL, ``Database.transaction`` resets it.
    """
    limit = dialect_of(connection.dialect.name).idle_limit(seconds)
    if limit is not None:
        connection.execute(limit)
