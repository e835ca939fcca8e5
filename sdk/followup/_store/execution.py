"""Executes statements on our tables, on any connection, in the schema of PostgreSQL in which they were found.

A connection may belong to somebody else, with a ``search_path`` or a ``schema_translate_map`` for other tables.

A coroutine function that knows no connection awaits an ``Execution`` for each statement. On a synchronous connection
that never waits, so the coroutine runs to its end at once.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, TypeVar, cast

import attrs
import sqlalchemy as sa
from sqlalchemy import Connection, Delete, Insert, Select, TextClause, Update

Rows = Sequence[Sequence[Any]]
Statement = Insert | Update | Delete | Select[Any] | TextClause
Parameters = Mapping[str, Any]

NO_PARAMETERS: Parameters = MappingProxyType({})

T = TypeVar("T")

FIND_SCHEMA = sa.text(
    "SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.oid = to_regclass('followup_schema')"
)
"""Finds the schema of our tables by the ``search_path`` of a connection."""

_SAVEPOINT = sa.text("SAVEPOINT followup_record")
_ROLL_BACK = sa.text("ROLLBACK TO SAVEPOINT followup_record")
_RELEASE = sa.text("RELEASE SAVEPOINT followup_record")


@attrs.frozen
class Execution:
    """Executes statements on a connection of whatever kind.

    Attributes:
        on: executes a statement on our tables in a schema; with None, the connection finds them itself.
        dialect: the database of the connection.
        schema: the schema of our tables.
    """

    on: Callable[[Statement, Parameters, str | None], Awaitable[Rows]]
    dialect: str
    schema: str | None = None

    async def __call__(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Rows:
        """Execute a statement and return its rows, if it has any."""
        return await self.on(statement, parameters, self.schema)

    def within(self, schema: str | None) -> "Execution":
        """Return one for our tables in a schema."""
        return attrs.evolve(self, schema=schema)


def tables_in(schema: str | None) -> Mapping[str, Any]:
    """Return the execution options of SQLAlchemy with which our tables are those of a schema."""
    return {"schema_translate_map": {None: schema} if schema else {}}


def schema_of(connection: Connection) -> str | None:
    """Return the schema of our tables on a connection that has these options."""
    translated: Mapping[Any, str] = connection.get_execution_options().get("schema_translate_map") or {}
    return translated.get(None)


def has_table(connection: Connection, table: sa.Table) -> bool:
    """Return whether one of our tables exists."""
    return sa.inspect(connection).has_table(table.name, schema=schema_of(connection))


def advisory_key(name: str, schema: str | None = None) -> int:
    """Return the number of an advisory lock of PostgreSQL, which has its own numbers for each database."""
    digest = hashlib.blake2b(f"{schema}\0{name}".encode(), digest_size=8, person=b"followup").digest()
    return int.from_bytes(digest) >> 1  # not negative


@asynccontextmanager
async def savepoint(execute: Execution, *, is_kept: bool = True) -> AsyncIterator[None]:
    """Undo what fails in the with block: it spoils a transaction of PostgreSQL. SQLite undoes the statement itself.

    Args:
        execute: executes statements.
        is_kept: whether what succeeds is kept, and not undone as well.
    """
    if execute.dialect == "sqlite":
        yield
        return
    await execute(_SAVEPOINT)
    try:
        yield
    except Exception:
        await execute(_ROLL_BACK)
        await execute(_RELEASE)
        raise
    if not is_kept:
        await execute(_ROLL_BACK)
    await execute(_RELEASE)


def executing(connection: Connection) -> Execution:
    """Return what executes statements on a connection of SQLAlchemy."""

    async def execute(statement: Statement, parameters: Parameters, schema: str | None) -> Rows:
        result = connection.execute(statement, parameters, execution_options=tables_in(schema))
        return result.all() if result.returns_rows else []

    return Execution(execute, connection.dialect.name, schema_of(connection))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose ``Execution`` never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    raise RuntimeError("the coroutine waits")
