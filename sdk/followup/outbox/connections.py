"""The kinds of connections that an event can be recorded on, and their drivers.

A driver first rejects a connection in autocommit mode without a transaction: an event that commits by itself could not
roll back with the caller's writes.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect as Compiler
from sqlalchemy.exc import StatementError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from followup._store.database import Dialect, checked_dialect
from followup.outbox.recording import Rows, Statement, Steps

if TYPE_CHECKING:
    import psycopg

RECORD_KINDS = (
    "a SQLAlchemy Connection or Session, a sqlite3.Connection, a psycopg.Connection, or a connection of Django"
)
RECORD_ASYNC_KINDS = "a SQLAlchemy AsyncConnection or AsyncSession, or a psycopg.AsyncConnection"


class DjangoConnection(Protocol):
    """A connection of Django, such as ``django.db.connection``."""

    vendor: str
    in_atomic_block: bool

    def cursor(self) -> Any:
        """Return a cursor."""
        ...

    def get_autocommit(self) -> bool:
        """Return whether each statement commits by itself."""
        ...


RecordingConnection: TypeAlias = (
    "Connection | Session | scoped_session[Any] | sqlite3.Connection | psycopg.Connection[Any] | DjangoConnection"
)
AsyncRecordingConnection: TypeAlias = (
    "AsyncConnection | AsyncSession | async_scoped_session[Any] | psycopg.AsyncConnection[Any]"
)

Recording = Callable[[Dialect], Steps]
"""Returns the steps for the database of the connection."""

_AUTOCOMMIT = (
    "connection is in autocommit mode, and no transaction is open: the event could not roll back with your own writes. "
    "Begin a transaction first"
)
_ROLLED_BACK = (
    "SQLite has rolled back the whole transaction, with all that you wrote in it: roll back, and repeat it. What is "
    "written before that commits without it"
)
_PSYCOPG_IDLE = 0

_NAMED = sqlite.dialect(paramstyle="named")
_PYFORMAT = postgresql.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]
_SQLITE_PYFORMAT = sqlite.dialect(paramstyle="pyformat")


def record_on(connection: object, recording: Recording) -> None:
    """Record an event on a connection.

    Raises:
        TypeError: the connection is of no kind that is supported.
        ValueError: it is in autocommit mode, and no transaction is open.
        ConfigurationError: it is a connection to another database, or the tables are missing.
    """
    if isinstance(connection, scoped_session):
        connection = connection()
    if isinstance(connection, Session):
        connection = connection.connection()
    if isinstance(connection, Connection):
        _record_on_sqlalchemy(connection, recording)
    elif isinstance(connection, sqlite3.Connection):
        _reject(_commits_by_itself_in_sqlite(connection))
        # A cursor of our own kind, because the user's may return rows of another shape.
        cursor = sqlite3.Cursor(getattr(connection, "__wrapped__", connection))  # OpenTelemetry wraps connections
        with _noticing_a_rollback(connection):
            _drive(recording("sqlite"), lambda each: cursor.execute(*_compiled(each, _NAMED)).fetchall())
    elif _is_psycopg(connection, "Connection"):
        _record_on_psycopg(connection, recording)
    elif _is_django(connection):
        _record_on_django(connection, recording)
    else:
        raise TypeError(f"connection must be {RECORD_KINDS}, not {_kind(connection)}")


async def record_on_async(connection: object, recording: Recording) -> None:
    """Record an event on an asynchronous connection. It raises the same errors as ``record_on``."""
    if isinstance(connection, async_scoped_session):
        connection = connection()
    if isinstance(connection, AsyncSession):
        connection = await connection.connection()
    if isinstance(connection, AsyncConnection):
        await connection.run_sync(_record_on_sqlalchemy, recording)
    elif _is_psycopg(connection, "AsyncConnection"):
        await _record_on_async_psycopg(connection, recording)
    else:
        raise TypeError(f"connection must be {RECORD_ASYNC_KINDS}, not {_kind(connection)}")


@contextmanager
def _noticing_a_rollback(driver: Any, forbid_more: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let an error of SQLite say so if it has rolled back the transaction, as it does when the disk is full.

    Args:
        driver: the connection of the driver.
        forbid_more: lets nothing be written until the caller has rolled back. sqlite3 itself has no way to do so.
    """
    was_open = driver.in_transaction
    try:
        yield
    except BaseException as error:
        if was_open and not driver.in_transaction:
            error.args = (f"{error.args[0] if error.args else type(error).__name__}. {_ROLLED_BACK}", *error.args[1:])
            forbid_more()
        raise


def _drive(steps: Steps, execute: Callable[[Statement], Rows]) -> None:
    """Execute the statements of the generator, and resume it with the result of each."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = execute(statement)
            except Exception as error:  # noqa: BLE001 - the generator decides
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration:
        return


def _record_on_sqlalchemy(connection: Connection, recording: Recording) -> None:
    dialect = checked_dialect(connection.dialect.name)
    commits_by_itself = _commits_by_itself(connection, dialect)
    if commits_by_itself and not connection.in_transaction():
        # An Engine may begin the transaction of the driver itself, at its event "begin", as SQLAlchemy would do now.
        transaction = connection.begin()
        commits_by_itself = _commits_by_itself(connection, dialect)
        if commits_by_itself:
            transaction.rollback()
    _reject(commits_by_itself)

    def execute(statement: Statement) -> Rows:
        result = connection.execute(statement)
        return result.all() if result.returns_rows else []

    driver: Any = connection.connection.driver_connection
    # The database of such a pool may be in memory, and end with its connection.
    is_kept = isinstance(connection.engine.pool, (StaticPool, SingletonThreadPool))
    forbid_more = (lambda: None) if is_kept else connection.invalidate
    try:
        with _noticing_a_rollback(driver, forbid_more) if dialect == "sqlite" else nullcontext():
            _drive(recording(dialect), execute)
    except StatementError as error:
        error.hide_parameters = True  # its text would contain the event
        raise


def _commits_by_itself(connection: Connection, dialect: Dialect) -> bool:
    adapted: Any = connection.connection.dbapi_connection
    driver: Any = connection.connection.driver_connection
    if dialect == "sqlite":
        return _commits_by_itself_in_sqlite(driver)
    if hasattr(driver, "is_in_transaction"):  # asyncpg
        return bool(adapted.autocommit) and not driver.is_in_transaction()
    return _commits_by_itself_in_postgresql(driver)


def _commits_by_itself_in_sqlite(connection: Any) -> bool:
    if connection.in_transaction:
        return False
    mode = getattr(connection, "autocommit", None)  # since Python 3.12
    return mode if isinstance(mode, bool) else connection.isolation_level is None


def _commits_by_itself_in_postgresql(connection: Any) -> bool:
    if not getattr(connection, "autocommit", False):
        return False
    info = getattr(connection, "info", None)
    return info is None or info.transaction_status == _PSYCOPG_IDLE


def _is_psycopg(connection: object, name: str) -> bool:
    module = sys.modules.get("psycopg")  # without it, nobody has such a connection
    return module is not None and isinstance(connection, getattr(module, name))


def _record_on_psycopg(connection: Any, recording: Recording) -> None:
    import psycopg
    from psycopg.rows import tuple_row

    _reject(_commits_by_itself_in_postgresql(connection))
    # A cursor of our own kind, because the user's may return rows of another shape.
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:

        def execute(statement: Statement) -> Rows:
            # In a pipeline, the result is there only after a sync, at the end of an inner pipeline.
            with connection.pipeline() if connection.info.pipeline_status else nullcontext():
                cursor.execute(*_compiled(statement, _PYFORMAT))
            return cursor.fetchall() if cursor.description else []

        _drive(recording("postgresql"), execute)


async def _record_on_async_psycopg(connection: Any, recording: Recording) -> None:
    import psycopg
    from psycopg.rows import tuple_row

    _reject(_commits_by_itself_in_postgresql(connection))
    steps = recording("postgresql")
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        try:
            statement = next(steps)
            while True:
                try:
                    async with connection.pipeline() if connection.info.pipeline_status else nullcontext():
                        await cursor.execute(*_compiled(statement, _PYFORMAT))
                    rows: Rows = await cursor.fetchall() if cursor.description else []
                except Exception as error:  # noqa: BLE001 - the generator decides
                    statement = steps.throw(error)
                else:
                    statement = steps.send(rows)
        except StopIteration:
            return


def _is_django(connection: Any) -> bool:
    if "django.db" not in sys.modules:
        return False
    return all(hasattr(connection, name) for name in ("vendor", "in_atomic_block", "get_autocommit", "cursor"))


def _record_on_django(connection: Any, recording: Recording) -> None:
    dialect = checked_dialect(connection.vendor)
    _reject(not connection.in_atomic_block and connection.get_autocommit())
    compiler = _PYFORMAT if dialect == "postgresql" else _SQLITE_PYFORMAT
    with connection.cursor() as cursor:

        def execute(statement: Statement) -> Rows:
            cursor.execute(*_compiled(statement, compiler))
            return cursor.fetchall() if cursor.description else []

        def forbid_more() -> None:
            if connection.in_atomic_block:
                connection.set_rollback(True)

        with _noticing_a_rollback(connection.connection, forbid_more) if dialect == "sqlite" else nullcontext():
            _drive(recording(dialect), execute)


def _compiled(statement: Statement, compiler: Compiler) -> tuple[Any, Mapping[str, Any]]:
    """Return a statement as SQL, with its parameters."""
    compiled = statement.compile(dialect=compiler)
    return str(compiled), compiled.params


def _reject(commits_by_itself: bool) -> None:
    if commits_by_itself:
        raise ValueError(_AUTOCOMMIT)


def _kind(connection: object) -> str:
    kind = type(connection)
    return f"{kind.__module__}.{kind.__qualname__}"
