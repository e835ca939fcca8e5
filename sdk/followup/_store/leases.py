"""Leases: how long a row belongs to the process that claimed it, and when a row that failed is due again.

Claims are made under a lock that all processes of a database share, and that lasts until the end of its transaction.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, TextClause, and_, or_, text, update

from followup._core.results.errors import ConfigurationError
from followup._core.time import random_fraction
from followup._store.database import insert_if_absent
from followup._store.execution import Execution, advisory_key, executing, run
from followup._store.schema import IN_FLIGHT, LOCKS, LONGEST_TEXT, WAITING

Now = int | ColumnElement[int]
"""The current time, read before or within the statement."""

FROZEN_HOLDER_SECONDS = 10
"""PostgreSQL ends a transaction that holds a lock and has been idle for so long: its process is frozen, or its machine
has lost the network. SQLite cannot do so; there, the process has to be ended."""

FIRST_WAIT = 0.5
"""Seconds, at most, from the first failure of a row to its next attempt. It doubles with each failure."""

_MAX_DOUBLINGS = 30

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
    run(lock(executing(connection), name))
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite" and not driver.in_transaction:
        raise ConfigurationError("database is an Engine in autocommit mode, in which no transaction rolls back")


async def lock(execute: Execution, name: str) -> None:
    """Take a lock as ``take_lock`` does, on any connection, for as long as its transaction lasts."""
    if execute.dialect == "postgresql":
        # It leaves no dead version of a row, over which all later claims would pass while a long transaction is open.
        await execute(text(f"SELECT pg_advisory_xact_lock({advisory_key(name, execute.schema)})"))
        return
    name = name[:LONGEST_TEXT]  # names that differ only beyond that share a lock, no more
    await execute(update(LOCKS).where(LOCKS.c.name == name).values(times_taken=LOCKS.c.times_taken + 1))
    await execute(insert_if_absent(LOCKS, execute.dialect, name=name, times_taken=1))


def limit_idle_time(connection: Connection, seconds: float) -> None:
    """Let PostgreSQL end this transaction if its process is idle for so long, frozen or behind a broken network.

    SQLite cannot do so; there, the process has to be ended.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(idle_limit(seconds))


def idle_limit(seconds: float) -> TextClause:
    """Return the statement of ``limit_idle_time`` for PostgreSQL."""
    return text(f"SET LOCAL idle_in_transaction_session_timeout = {round(seconds * 1000)}")
