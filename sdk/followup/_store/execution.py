"""Executes statements on our tables, on any connection, and tells what an error of a database means.

A connection may belong to somebody else, with a ``search_path`` or a ``schema_translate_map`` for other tables, or
after a ``USE``; on a server our tables are in the schema in which they were found.

A coroutine function that knows no connection awaits an ``Execution`` for each statement. On a synchronous connection
that never waits, so the coroutine runs to its end at once.
"""

import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, TypeVar, cast

import attrs
import sqlalchemy as sa
from sqlalchemy import Connection, Delete, Insert, Select, TextClause, Update
from sqlalchemy.exc import DBAPIError

from followup._core.errors import FollowUpError
from followup._core.threads import NoThreadError
from followup._store.dialects import Dialect, dialect_of

Rows = Sequence[Sequence[Any]]
Statement = Insert | Update | Delete | Select[Any] | TextClause
Parameters = Mapping[str, Any]

NO_PARAMETERS: Parameters = MappingProxyType({})

T = TypeVar("T")

ROLLED_BACK = (
    "The database has rolled back the whole transaction, with all that you wrote in it: roll back, and repeat it. What "
    "is written before that commits without it"
)

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
    dialect: Dialect
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


def execute_many(connection: Connection, statement: Insert, rows: Iterable[Parameters]) -> None:
    """Execute an INSERT with many rows.

    SQLAlchemy would look at each value, which takes as long as SQLite takes to store it; few of our types need it, and
    drivers take bytes as they are.
    """
    schema, dialect = schema_of(connection), connection.dialect
    options = {**tables_in(schema), "render_schema_translate": True} if schema else {}
    compiled: Any = statement.compile(dialect=dialect, **options)
    binds = [(each, name) for each, name in compiled.bind_names.items() if not isinstance(each.type, sa.LargeBinary)]
    found = {name: each.type.dialect_impl(dialect).bind_processor(dialect) for each, name in binds}
    convert = {name: conversion for name, conversion in found.items() if conversion is not None}
    constants = compiled.params  # once, because it is computed each time; None for what a row has
    constants.update((name, each(constants[name])) for name, each in convert.items() if constants[name] is not None)
    conversions = [(name, each) for name, each in convert.items() if constants[name] is None]
    complete = [{**constants, **each} for each in rows]
    for each in complete if conversions else ():
        each.update((name, conversion(each[name])) for name, conversion in conversions)
    values = operator.itemgetter(*compiled.positiontup) if compiled.positional else dict
    # A list lets the driver execute it for all rows at once.
    connection.exec_driver_sql(compiled.string, [*map(values, complete)])


def has_table(connection: Connection, table: sa.Table) -> bool:
    """Return whether one of our tables exists."""
    return sa.inspect(connection).has_table(table.name, schema=schema_of(connection))


@asynccontextmanager
async def savepoint(execute: Execution, *, is_kept: bool = True) -> AsyncIterator[None]:
    """Undo what fails in the with block: it spoils a transaction of PostgreSQL. SQLite undoes the statement itself.

    An error has the note ``ROLLED_BACK`` if the server has undone the whole transaction, as MySQL does in a deadlock.

    Args:
        execute: executes statements.
        is_kept: whether what succeeds is kept, and not undone as well.
    """
    if not execute.dialect.is_server:
        yield
        return
    await execute(_SAVEPOINT)
    try:
        yield
    except Exception as error:
        # ROLLBACK TO keeps the savepoint itself.
        try:
            await execute(_ROLL_BACK)
            await execute(_RELEASE)
        except Exception:  # noqa: BLE001 - there is no savepoint any more
            error.add_note(ROLLED_BACK)
        raise
    if not is_kept:
        await execute(_ROLL_BACK)
    await execute(_RELEASE)


def executing(connection: Connection) -> Execution:
    """Return what executes statements on a connection of SQLAlchemy."""

    async def execute(statement: Statement, parameters: Parameters, schema: str | None) -> Rows:
        result = connection.execute(statement, parameters, execution_options=tables_in(schema))
        return result.all() if result.returns_rows else []

    return Execution(execute, dialect_of(connection.dialect.name), schema_of(connection))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose ``Execution`` never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    raise RuntimeError("the coroutine waits")


_READ_ONLY = ("25006", 1290, 1792, 1836)
"""The SQLSTATE of PostgreSQL, and the numbers of MySQL."""

_STATES_OF_USELESS_CONNECTIONS = (
    "25006",
    "08",  # the connection is broken
    "25P03",  # the server has ended the session, which was idle in a transaction
    "25P04",  # ... or whose transaction took too long
    "57P",  # the server is shutting down or starting, or an administrator has ended the session
    "0A000",  # as "cannot set transaction read-write mode during recovery", or plans of before the tables changed
    "26000",  # a prepared statement is not there: a pooler has passed the statement to another session
    "42P05",  # ... or is there already
)
"""Beginnings of the SQLSTATE of errors that a connection to PostgreSQL would have again and again."""

_NUMBERS_OF_USELESS_CONNECTIONS = frozenset(
    {
        *_READ_ONLY,
        1047,  # this node of the cluster does not work
        1053,  # the server is shutting down
        1927,  # an administrator has ended the session
        2006,  # the connection is lost
        2013,  # ... during a statement
        4031,  # the server has ended the session, which was idle
    }
)
"""Numbers of such errors in MySQL."""

_SAFE_NUMBERS = frozenset(
    {*_NUMBERS_OF_USELESS_CONNECTIONS, *range(1040, 1050), 1130, 1142, 1146, 1203, 1205, 1213, 1665, 2002, 2003}
)
"""Numbers of errors of MySQL whose texts contain no data; a statement that was cut would."""

NO_SUCH_SAVEPOINT = 1305
_NO_SUCH_TABLE = 1146
_MORE_THAN_A_ROW = 1242

_ABOUT_THE_FILE = ("file is not a database", "database disk image is malformed")
"""Texts of SQLite that contain no data."""


class ReadOnlyError(FollowUpError):
    """The server of a connection takes no writes."""


def _cause_of(error: BaseException) -> Any:
    """Return the error of the driver, which SQLAlchemy or Django may have wrapped."""
    return getattr(error, "orig", None) or error.__cause__ or error


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error; None if it has none, as in SQLite."""
    cause = _cause_of(error)
    found = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    return found if isinstance(found, str) else None


def number_of(error: BaseException) -> int | None:
    """Return the number of an error of MySQL; None if it is another error."""
    cause = _cause_of(error)
    # The drivers of MySQL raise (number, text), and so does the system.
    number = cause.args[0] if len(cause.args) > 1 and not isinstance(cause, OSError) else None
    return number if isinstance(number, int) else None


def is_read_only(error: BaseException) -> bool:
    """Return whether a statement failed because its server takes no writes."""
    return isinstance(error, ReadOnlyError) or not {sqlstate_of(error), number_of(error)}.isdisjoint(_READ_ONLY)


def is_useless(error: BaseException) -> bool:
    """Return whether a connection would have this error again and again, so that another one is needed."""
    is_numbered = number_of(error) in _NUMBERS_OF_USELESS_CONNECTIONS
    return is_numbered or is_read_only(error) or (sqlstate_of(error) or "").startswith(_STATES_OF_USELESS_CONNECTIONS)


def is_missing_table(error: BaseException) -> bool:
    """Return whether a statement failed because its table does not exist, and for no other reason."""
    # SQLite has one code for all errors in SQL, so that only its text tells.
    is_known = sqlstate_of(error) == "42P01" or number_of(error) == _NO_SUCH_TABLE
    return is_known or "no such table" in str(_cause_of(error))


def kind_of_error(error: BaseException) -> str:
    """Return the type of an error, with its number or SQLSTATE if it has one; none of it ever has data."""
    kind, code = type(error).__name__, number_of(error) or sqlstate_of(error)
    return kind if code is None else f"{kind} ({code})"


def reason_of(error: Exception) -> str:
    """Return what a log may show of a database's error. Other texts than these may contain what was to be stored."""
    if isinstance(error, (FollowUpError, NoThreadError)):
        return str(error)
    if isinstance(error, TimeoutError):
        return "the database does not respond"
    kind = kind_of_error(error)
    if not isinstance(error, DBAPIError):
        return kind
    text, number, advice = str(error.orig).partition("\n")[0], number_of(error), advice_on(error)
    if number in _SAFE_NUMBERS and advice is None:
        return f"{kind}: {_cause_of(error).args[1]}"
    is_safe = number is None and type(error).__name__ in ("OperationalError", "ProgrammingError")
    if is_safe or text in _ABOUT_THE_FILE:
        return f"{kind}: {text}"
    return kind if advice is None else f"{kind}: {advice}"


def advice_on(error: BaseException) -> str | None:
    """Return what to do about a conflict in an INSERT that names the one it expects; None for other errors."""
    if number_of(error) != _MORE_THAN_A_ROW and sqlstate_of(error) != "23505":
        return None
    table = getattr(getattr(_cause_of(error), "diag", None), "table_name", None) or "a table of followup"
    return (
        f"{table} numbers new rows as others that are there, as after logical replication or a copy of rows: "
        "set its sequence or AUTO_INCREMENT to more than the highest number"
    )
