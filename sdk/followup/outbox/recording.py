"""Records an event in the caller's transaction, on any kind of connection that has one.

``steps`` is a generator that performs no I/O: it yields statements, and a driver executes each one on the caller's
connection and resumes the generator with the rows, or throws the exception of the database into it. ``record_on`` and
``record_on_async`` choose the driver. A driver first rejects a connection in autocommit mode without a transaction: an
event that commits by itself could not roll back with the caller's writes.
"""

import sqlite3
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sqlalchemy import Connection, Insert, Select, TextClause, Update, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect as Compiler
from sqlalchemy.exc import StatementError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from followup._results.errors import ConfigurationError
from followup._store.clock import StoreTime
from followup._store.database import Dialect, checked_dialect, insert_if_absent
from followup._store.schema import VERSIONS, WAITING
from followup.outbox.events import Recorded
from followup.outbox.tables import EVENTS, LARGEST_BATCH, SCHEMA

if TYPE_CHECKING:
    import psycopg

Rows = Sequence[Sequence[Any]]
Statement = Insert | Update | Select[Any] | TextClause
Steps = Generator[Statement, Rows, None]

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

_SAVEPOINT = text("SAVEPOINT followup_record")
_ROLL_BACK = text("ROLLBACK TO SAVEPOINT followup_record")
_RELEASE = text("RELEASE SAVEPOINT followup_record")
_VERSION = text(SCHEMA.version_query())


def steps(name: str, event: Recorded, dialect: Dialect, clock: StoreTime, *, check_version: bool) -> Steps:
    """Store an event, unless its id is there already.

    A failed statement spoils a transaction of PostgreSQL, so the statements are within a savepoint there. In SQLite
    only the statement itself is undone.

    Args:
        name: name of the outbox.
        event: the event.
        dialect: the database of the connection.
        clock: the clock of the outbox.
        check_version: whether the version of the tables is checked too.

    Raises:
        ConfigurationError: the tables are missing, or have another version.
    """
    if dialect == "postgresql":
        yield _SAVEPOINT
    try:
        if check_version:
            yield from _version_check()
        yield _insert(name, event, dialect, clock)
    except Exception as error:
        if dialect == "postgresql":
            yield _ROLL_BACK
        try:
            if not check_version and not isinstance(error, ConfigurationError):
                # The version was right, but perhaps in another database than that of this connection.
                yield from _version_check()
        finally:
            if dialect == "postgresql":
                yield _ROLL_BACK
                yield _RELEASE
        raise
    if dialect == "postgresql":
        yield _RELEASE


def _version_check() -> Steps:
    try:
        rows = yield _VERSION
    except Exception as error:
        # The text of SQLAlchemy's error contains the statement, which names the table in any case.
        if VERSIONS.name not in str(getattr(error, "orig", None) or error):
            raise
        rows = []
    SCHEMA.check_version(rows[0][0] if rows else None)


def _insert(name: str, event: Recorded, dialect: Dialect, clock: StoreTime) -> Insert:
    return insert_if_absent(
        EVENTS,
        dialect,
        name=name,
        event_id=event.id,
        subject=event.subject,
        event=event.text,
        state=WAITING,
        blocks_subject=True,
        attempts=0,
        due_at=0,
        recorded_at=clock.sql(dialect),
        batch_limit=LARGEST_BATCH,
    )


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
