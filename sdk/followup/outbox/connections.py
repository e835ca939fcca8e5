"""Records on any kind of connection that has a transaction.

``record_on`` and ``record_on_async`` choose how statements are executed by the kind of connection, after they have
rejected one in autocommit mode without a transaction: an event that commits by itself could not roll back with the
caller's writes.
"""

import asyncio
import functools
import importlib
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs
from sqlalchemy import Connection, Select
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect as Compiler
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from followup._core.codec.kinds import kind_of
from followup._store import execution
from followup._store.database import unprepared
from followup._store.dialects import MYSQL, POSTGRESQL, SQLITE, Dialect, dialect_of
from followup._store.places import Comparison

if TYPE_CHECKING:
    import psycopg


class DatabaseConnection(Protocol):
    """A connection of Django, such as ``django.db.connection``, or of PyMySQL or mysqlclient."""

    @property
    def cursor(self) -> Callable[..., Any]:
        """The method that returns a cursor."""
        ...

    def get_autocommit(self) -> bool:
        """Return whether each statement commits by itself."""
        ...


if TYPE_CHECKING:
    RecordingConnection: TypeAlias = (
        Connection | Session | scoped_session[Any] | sqlite3.Connection | psycopg.Connection[Any] | DatabaseConnection
    )
    AsyncRecordingConnection: TypeAlias = (
        AsyncConnection | AsyncSession | async_scoped_session[Any] | psycopg.AsyncConnection[Any]
    )
else:  # not all of these drivers are installed
    RecordingConnection = AsyncRecordingConnection = Any


@attrs.frozen
class Recording:
    """What is written in the caller's transaction, once its database was compared with that of the store.

    Attributes:
        write: writes it.
        comparison: None if each connection that may come is to that database.
    """

    write: Callable[[execution.Execution], Coroutine[Any, Any, None]]
    comparison: Comparison | None

    async def __call__(self, driver: object, execute: execution.Execution) -> None:
        """Compare, and write.

        Args:
            driver: the connection of the driver; None if its database needs no comparison.
            execute: executes a statement on it.
        """
        if driver is not None and self.comparison is not None:
            await self.comparison.check(driver, execute)
        await self.write(execute)


_PSYCOPG_IDLE = 0
_OF_MYSQL = ("pymysql", "MySQLdb")
"""The packages of PyMySQL and mysqlclient."""

_NAMED = sqlite.dialect(paramstyle="named")


def record_on(connection: object, recording: Recording) -> None:
    """Write on a connection.

    Raises:
        TypeError: the connection is of no kind that is supported.
        ValueError: it is in autocommit mode, and no transaction is open; or it is to another database.
        ConfigurationError: the tables are missing.
    """
    if isinstance(connection, scoped_session):
        connection = connection()
    if isinstance(connection, Session):
        connection = connection.connection()
    if isinstance(connection, Connection):
        _on_sqlalchemy(connection, recording)
    elif isinstance(connection, sqlite3.Connection):
        _reject(_commits_by_itself(connection, SQLITE))
        # A cursor of our own kind, because the user's may return rows of another shape.
        driver = getattr(connection, "__wrapped__", connection)  # OpenTelemetry wraps connections
        with _noticing_a_rollback(connection):
            _on_cursor(sqlite3.Cursor(driver), _NAMED, SQLITE, recording, driver)
    elif _is_of("psycopg", "Connection", connection):
        _on_psycopg(connection, recording)
    elif module := next((each for each in _OF_MYSQL if _is_of(f"{each}.connections", "Connection", connection)), None):
        _on_mysql(connection, module, recording)
    elif _is_django(connection):
        _on_django(connection, recording)
    else:
        raise TypeError(
            "connection must be a SQLAlchemy Connection or Session, a sqlite3.Connection, a psycopg.Connection, or a "
            f"connection of PyMySQL, mysqlclient or Django, not {kind_of(connection)}"
        )


async def record_on_async(connection: object, recording: Recording) -> None:
    """Write on an asynchronous connection. It raises the same errors as ``record_on``."""
    if recording.comparison is not None and not recording.comparison.is_asked():
        # In a thread, because it connects, and waits for that.
        await asyncio.to_thread(recording.comparison.ask)
    if isinstance(connection, async_scoped_session):
        connection = connection()
    if isinstance(connection, AsyncSession):
        connection = await connection.connection()
    if isinstance(connection, AsyncConnection):
        await connection.run_sync(_on_sqlalchemy, recording)
    elif _is_of("psycopg", "AsyncConnection", connection):
        await _on_async_psycopg(connection, recording)
    else:
        kinds = "SQLAlchemy AsyncConnection or AsyncSession, or a psycopg.AsyncConnection"
        raise TypeError(f"connection must be a {kinds}, not {kind_of(connection)}")


def _reject(commits_by_itself: bool) -> None:
    if commits_by_itself:
        raise ValueError(
            "connection is in autocommit mode, and no transaction is open: the event could not roll back with your own "
            "writes. Begin a transaction first"
        )


def _commits_by_itself(driver: Any, dialect: Dialect, adapted: Any = None) -> bool:
    """Return whether the next statement on a driver's connection commits by itself."""
    if not dialect.is_server:
        mode = getattr(driver, "autocommit", None)  # since Python 3.12
        return not driver.in_transaction and (mode if isinstance(mode, bool) else driver.isolation_level is None)
    if dialect is MYSQL:
        return _commits_in_mysql(driver, driver if adapted is None else adapted)
    if hasattr(driver, "is_in_transaction"):  # asyncpg
        return bool(adapted.autocommit) and not driver.is_in_transaction()
    info = getattr(driver, "info", None)
    is_idle = info is None or info.transaction_status == _PSYCOPG_IDLE
    return is_idle and bool(getattr(driver, "autocommit", False))


def _commits_in_mysql(driver: Any, adapted: Any) -> bool:
    mode = getattr(driver, "get_autocommit", None)
    if mode is not None and not mode():
        return False
    # Not every driver knows whether a transaction is open. Without one, a savepoint ends with its own statement.
    with closing(adapted.cursor()) as cursor:
        cursor.execute("SAVEPOINT followup_record")
        try:
            cursor.execute("RELEASE SAVEPOINT followup_record")
        except Exception as error:
            if execution.number_of(error) != execution.NO_SUCH_SAVEPOINT:
                raise
            return True
    return False


@contextmanager
def _noticing_a_rollback(driver: Any, forbid_more: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let an error say so if it has rolled back the transaction, as SQLite does when the disk is full.

    Args:
        driver: the connection of the driver.
        forbid_more: lets nothing be written until the caller has rolled back. Drivers have no way to do so.
    """
    was_open = getattr(driver, "in_transaction", False)  # drivers of PostgreSQL have no such attribute
    try:
        yield
    except BaseException as error:
        if was_open and not driver.in_transaction:
            error.args = (
                f"{error.args[0] if error.args else type(error).__name__}. {execution.ROLLED_BACK}",
                *error.args[1:],
            )
            forbid_more()
        elif execution.ROLLED_BACK in getattr(error, "__notes__", ()):
            forbid_more()
        raise


def _on_cursor(
    cursor: Any,
    compiler: Compiler,
    dialect: Dialect,
    recording: Recording,
    driver: object,
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
    **options: object,
) -> None:
    """Write with a cursor; do this around each statement, and pass these options with it."""

    async def execute(
        statement: execution.Statement, parameters: execution.Parameters, schema: str | None
    ) -> execution.Rows:
        compiled = _compiled(statement, compiler, schema)
        with around():
            cursor.execute(compiled.text, compiled.converted(parameters), **options)
        rows: execution.Rows = cursor.fetchall() if cursor.description else []
        return compiled.rows(rows)

    execution.run(recording(driver, execution.Execution(execute, dialect)))


def _on_sqlalchemy(connection: Connection, recording: Recording) -> None:
    dialect = dialect_of(connection.dialect.name)
    driver: Any = connection.connection.driver_connection
    adapted = connection.connection.dbapi_connection
    commits_by_itself = _commits_by_itself(driver, dialect, adapted)
    if commits_by_itself and not connection.in_transaction():
        # An Engine may begin the transaction of the driver itself, at its event "begin", as SQLAlchemy would do now.
        transaction = connection.begin()
        commits_by_itself = _commits_by_itself(driver, dialect, adapted)
        if commits_by_itself:
            transaction.rollback()
    _reject(commits_by_itself)

    # The database of such a pool may be in memory, and end with its connection.
    is_kept = isinstance(connection.engine.pool, (StaticPool, SingletonThreadPool))
    forbid_more = (lambda: None) if is_kept else connection.invalidate
    is_ours = recording.comparison is not None and recording.comparison.is_of(connection.engine)
    compared = None if is_ours else driver
    with _noticing_a_rollback(driver, forbid_more), unprepared(driver):
        execution.run(recording(compared, execution.executing(connection)))


def _is_of(module: str, name: str, connection: object) -> bool:
    found = sys.modules.get(module)  # without it, nobody has such a connection
    return found is not None and isinstance(connection, getattr(found, name))


def _on_psycopg(connection: Any, recording: Recording) -> None:
    import psycopg
    from psycopg.rows import tuple_row

    _reject(_commits_by_itself(connection, POSTGRESQL))
    # In a pipeline, the result is there only after a sync, at the end of an inner pipeline.
    around = connection.pipeline if connection.info.pipeline_status else nullcontext
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        # prepare=False as in ``unprepared``: a pooler may pass the next statement to another session.
        _on_cursor(cursor, POSTGRESQL.compiler, POSTGRESQL, recording, connection, around, prepare=False)


async def _on_async_psycopg(connection: Any, recording: Recording) -> None:
    import psycopg
    from psycopg.rows import tuple_row

    _reject(_commits_by_itself(connection, POSTGRESQL))
    around = connection.pipeline if connection.info.pipeline_status else nullcontext
    of_tuples: Any = psycopg.AsyncCursor(connection, row_factory=tuple_row)
    async with of_tuples as cursor:

        async def execute(
            statement: execution.Statement, parameters: execution.Parameters, schema: str | None
        ) -> execution.Rows:
            compiled = _compiled(statement, POSTGRESQL.compiler, schema)
            async with around():
                await cursor.execute(compiled.text, compiled.converted(parameters), prepare=False)
            return await cursor.fetchall() if cursor.description else []

        await recording(connection, execution.Execution(execute, POSTGRESQL))


def _on_mysql(connection: Any, module: str, recording: Recording) -> None:
    _reject(_commits_by_itself(connection, MYSQL))
    kind = importlib.import_module(f"{module}.cursors").Cursor  # the caller's own may return rows of another shape
    with closing(connection.cursor(kind)) as cursor:
        _on_cursor(cursor, MYSQL.compiler, MYSQL, recording, connection)


def _is_django(connection: Any) -> bool:
    names = ("vendor", "in_atomic_block", "get_autocommit", "cursor")
    return "django.db" in sys.modules and all(hasattr(connection, name) for name in names)


def _on_django(connection: Any, recording: Recording) -> None:
    dialect = dialect_of(connection.vendor)
    _reject(not connection.in_atomic_block and connection.get_autocommit())

    def forbid_more() -> None:
        if connection.in_atomic_block:
            connection.set_rollback(True)

    with connection.cursor() as cursor, _noticing_a_rollback(connection.connection, forbid_more):
        _on_cursor(cursor, dialect.compiler, dialect, recording, connection.connection)


@attrs.frozen(eq=False)
class _Compiled:
    """A statement for a driver, and the converters of what a driver passes as it is."""

    text: str
    _compiled: Any
    _of_parameters: Mapping[str, Callable[[Any], Any]]
    _of_columns: Sequence[Callable[[Any], Any] | None]

    def converted(self, parameters: execution.Parameters) -> dict[str, Any]:
        """Return the parameters of the driver."""
        found: dict[str, Any] = self._compiled.construct_params(dict(parameters))
        return {**found, **{name: convert(found[name]) for name, convert in self._of_parameters.items()}}

    def rows(self, rows: execution.Rows) -> execution.Rows:
        """Return the rows of a SELECT, with values of the types of its columns."""
        if not any(self._of_columns):
            return rows
        return [
            [value if convert is None else convert(value) for value, convert in zip(row, self._of_columns, strict=True)]
            for row in rows
        ]


@functools.lru_cache(maxsize=64)
def _compiled(statement: execution.Statement, compiler: Compiler, schema: str | None) -> _Compiled:
    """Return a statement on our tables in a schema, compiled once where the same object is executed again."""
    options = {**execution.tables_in(schema), "render_schema_translate": True} if schema else {}
    compiled: Any = statement.compile(dialect=compiler, **options)
    binds = compiled.bind_names.items()
    found = ((name, each.type.dialect_impl(compiler).bind_processor(compiler)) for each, name in binds)
    columns = statement.selected_columns if isinstance(statement, Select) else ()
    return _Compiled(
        compiled.string,
        compiled,
        {name: convert for name, convert in found if convert is not None},
        [each.type.dialect_impl(compiler).result_processor(compiler, None) for each in columns],
    )
