"""Locks that all processes of a database share; each lasts until the end of its transaction."""

from typing import Any

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, TextClause, text, update

from followup._results.errors import ConfigurationError
from followup._store.statements import insert_if_absent
from followup._store.texts import LONGEST_TEXT

FROZEN_HOLDER_SECONDS = 10
"""PostgreSQL ends a transaction that holds a lock and has been idle for so long: its process is frozen, or its machine
has lost the network. SQLite cannot do so; there, the process has to be ended."""

metadata = MetaData()

LOCKS = Table(
    "followup_locks",
    metadata,
    Column("name", String(LONGEST_TEXT), primary_key=True),
    Column("times_taken", BigInteger, nullable=False),
)


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
    name = name[:LONGEST_TEXT]  # names that differ only beyond that share a lock, no more
    limit_idle_time(connection, FROZEN_HOLDER_SECONDS)
    taking = update(LOCKS).where(LOCKS.c.name == name).values(times_taken=LOCKS.c.times_taken + 1)
    if connection.execute(taking).rowcount == 0:
        connection.execute(insert_if_absent(LOCKS, connection.dialect.name), {"name": name, "times_taken": 0})
        connection.execute(taking)
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite" and not driver.in_transaction:
        raise ConfigurationError("database is an Engine in autocommit mode, in which no transaction rolls back")


def limit_idle_time(connection: Connection, seconds: float) -> None:
    """Let PostgreSQL end this transaction if its process is idle for so long, frozen or behind a broken network.

    SQLite cannot do so; there, the process has to be ended.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(idle_limit(seconds))


def idle_limit(seconds: float) -> TextClause:
    """Return the statement of ``limit_idle_time`` for PostgreSQL."""
    return text(f"SET LOCAL idle_in_transaction_session_timeout = {round(seconds * 1000)}")
