"""Records an event in the caller's transaction.

``store`` is a coroutine function that knows no connection (``_store.execution``); ``connections`` executes it.

In PostgreSQL, the schema of our tables is that of the outbox, once it has used them. Before, a connection finds them by
its own ``search_path`` or, if that is set to a schema without them for this transaction, by the one of its session.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any

import attrs
from sqlalchemy import ColumnElement, Insert, bindparam, text

from followup._store.cipher import Hash, RowCipher, unhashed
from followup._store.clock import StoreTime
from followup._store.database import Database, insert_if_absent
from followup._store.execution import FIND_SCHEMA, Execution, savepoint
from followup._store.failures import advice_on, is_missing_table
from followup._store.places import Comparison
from followup._store.schema import WAITING
from followup.outbox.events import EVENTS, LARGEST_BATCH, SCHEMA, Recorded, hash_subjects

Write = Callable[[Execution], Coroutine[Any, Any, None]]
"""Writes in the caller's transaction."""


@attrs.frozen
class Recording:
    """What is written in the caller's transaction, once its database was compared with that of the store."""

    write: Write
    comparison: Comparison

    async def __call__(self, driver: object, execute: Execution) -> None:
        """Compare, and write.

        Args:
            driver: the connection of the driver; None if its database needs no comparison.
            execute: executes a statement on it.
        """
        if driver is not None:
            await self.comparison.check(driver, execute)
        await self.write(execute)


_SEARCH_PATH_OF_SESSION = text("SET LOCAL search_path TO DEFAULT")


async def store(
    execute: Execution, database: Database, cipher: RowCipher, event: Recorded, clock: StoreTime, *, check_version: bool
) -> None:
    """Store an event, unless its id is there already.

    Args:
        execute: executes a statement on the caller's connection.
        database: the database of the outbox.
        cipher: the cipher of the outbox.
        event: the event.
        clock: the clock of the outbox.
        check_version: whether the version of the tables is checked too, and that they are not encrypted under a cipher
            that the outbox lacks.

    Raises:
        ConfigurationError: the tables are missing, or have another version, or are encrypted under another cipher.
    """
    try:
        async with savepoint(execute):
            execute = execute.within(database.schema or await _schema_on(execute, database))
            if check_version:
                await _check_version(execute, database.shown)
            # With a cipher, each time: a salt that this transaction has stored may roll back with it.
            is_asked = cipher.is_on or check_version
            hashed = await cipher.hash_on(execute, hash_subjects) if is_asked else unhashed
            statement = insertion(cipher.name, execute.dialect, clock.sql(execute.dialect))
            await execute(statement, columns_of(event, cipher, hashed))
    except Exception as error:
        if (advice := advice_on(error)) is not None:
            error.add_note(advice)
        if not check_version:  # it was right, but perhaps in another database than that of this connection
            async with savepoint(execute):
                await _check_version(execute, database.shown)
        raise


async def _schema_on(execute: Execution, database: Database) -> str | None:
    """Return the schema in which a connection finds our tables; None if it finds none, or in SQLite."""
    if execute.dialect == "sqlite":
        return None
    if rows := await execute(FIND_SCHEMA):
        return str(rows[0][0])
    async with savepoint(execute, is_kept=False):  # then the caller's search_path holds again
        await execute(_SEARCH_PATH_OF_SESSION)
        rows = await execute(FIND_SCHEMA)
    if rows:
        database.use_schema(rows[0][0])
    return database.schema


async def _check_version(execute: Execution, place: str) -> None:
    try:
        rows = await execute(SCHEMA.version_query)
    except Exception as error:
        if not is_missing_table(error):
            raise
        rows = []
    SCHEMA.check_version(rows[0][0] if rows else None, place)


@functools.lru_cache(maxsize=64)
def insertion(name: str, dialect: str, now: ColumnElement[int]) -> Insert:
    """Return the INSERT of an event, whose parameters are ``columns_of`` it. It does nothing if the id is there."""
    return insert_if_absent(
        EVENTS,
        dialect,
        **{each: bindparam(each) for each in ("event_id", "subject", "event")},
        name=name,
        state=WAITING,
        blocks_subject=True,
        attempts=0,
        due_at=0,
        recorded_at=now,
        batch_limit=LARGEST_BATCH,
    )


def columns_of(event: Recorded, cipher: RowCipher, hashed: Hash) -> dict[str, str]:
    """Return the columns of an event that differ from event to event, encrypted."""
    return {"event_id": event.id, "subject": hashed(event.subject), "event": cipher.encrypt(event.text)}
