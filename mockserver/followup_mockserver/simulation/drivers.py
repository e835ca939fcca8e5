"""Drivers of databases that report their commits while a simulation runs: sqlite3, psycopg, and what is built on them.

SQLAlchemy, Django and aiosqlite open their connections with these drivers, so their commits are seen here as well.
"""

import functools
import os
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from followup_mockserver.simulation.clinic import Crash
from followup_mockserver.simulation.commits import (
    IMPLICIT_BEGIN,
    OpenDatabases,
    adopt,
    commits,
    databases_of_thread,
    first_word,
)


@contextmanager
def observed_drivers() -> Iterator[None]:
    """Let the connections that a clinic opens within this block report their commits."""
    with ExitStack() as stack:
        stack.enter_context(_everywhere(sqlite3.connect, _connect(sqlite3.connect)))
        stack.enter_context(_replaced(threading.Thread, "start", _starting))
        for replacements in _REPLACEMENTS:
            with suppress(ImportError):
                for owner, attribute, wrapper in replacements():
                    stack.enter_context(_replaced(owner, attribute, wrapper))
        yield


@contextmanager
def _replaced(owner: Any, attribute: str, wrapper: Callable[[Any], Any]) -> Iterator[None]:
    original = getattr(owner, attribute)
    setattr(owner, attribute, functools.wraps(original)(wrapper(original)))
    try:
        yield
    finally:
        setattr(owner, attribute, original)


@contextmanager
def _everywhere(original: Any, replacement: Any) -> Iterator[None]:
    """Replace a function in all modules that have it, as after ``from sqlite3 import connect``."""
    _replace_in_modules(original, replacement)
    try:
        yield
    finally:
        _replace_in_modules(replacement, original)


def _replace_in_modules(old: Any, new: Any) -> None:
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name in [name for name, value in list(names.items()) if value is old]:
            names[name] = new


def _starting(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start_adopted(thread: threading.Thread) -> None:
        adopt(thread)
        start(thread)

    return start_adopted


# --- sqlite3 ---------------------------------------------------------------------------------------------------------

_PARAMETERS: tuple[str, ...] = (
    "database",
    "timeout",
    "detect_types",
    "isolation_level",
    "check_same_thread",
    "factory",
)
_PARAMETERS += ("cached_statements", "uri")


def _connect(original: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    @functools.wraps(original)
    def connect(*values: Any, **named: Any) -> sqlite3.Connection:
        databases = databases_of_thread()
        if databases is None or len(values) > len(_PARAMETERS):
            return original(*values, **named)
        arguments = dict(zip(_PARAMETERS, values, strict=False)) | named
        factory = arguments.pop("factory", sqlite3.Connection)
        return original(arguments.pop("database"), factory=_observed(_ObservedConnection, factory), **arguments)

    return connect


@functools.cache
def _observed(observed: type, factory: Any) -> Any:
    """Return a factory whose objects are observed, below what a class of the user overrides."""
    if not isinstance(factory, type) or issubclass(observed, factory):
        return observed if isinstance(factory, type) else factory
    return type(factory.__name__, (factory, observed), {})


class _ObservedConnection(sqlite3.Connection):
    """A connection of sqlite3. The end of its process can close it from another thread, so it checks threads itself."""

    def __init__(self, database: Any, *, check_same_thread: bool = True, **arguments: Any) -> None:
        databases = databases_of_thread()
        assert databases is not None
        self._databases = databases
        self._name = os.fsdecode(database).partition("?")[0].rpartition("/")[2]
        self._thread = threading.get_ident() if check_same_thread else None
        databases.process.check()
        super().__init__(database, check_same_thread=False, **arguments)
        databases.connections[self] = _close_sqlite

    def __setattr__(self, name: str, value: Any) -> None:
        ends = (name, value) in (("isolation_level", None), ("autocommit", True))  # they commit what is open
        with self._commit() if ends else nullcontext():
            super().__setattr__(name, value)

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        self._check()
        return super().cursor(_observed(_ObservedCursor, factory))

    def execute(self, sql: str, *parameters: Any) -> Any:
        return self.cursor().execute(sql, *parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: str) -> Any:
        return self.cursor().executescript(script)

    def commit(self) -> None:
        self._check()
        with self._commit():
            super().commit()

    def rollback(self) -> None:
        if self._databases.process.has_crashed:
            with suppress(sqlite3.Error):  # it is closed
                super().rollback()
            return
        self._check()
        super().rollback()

    def close(self) -> None:
        if not self._databases.process.has_crashed:
            self._check()
        super().close()

    def __exit__(self, type: Any, value: Any, traceback: Any) -> Any:
        if type is not None:
            self.rollback()
            return False
        self._check()
        with self._commit():
            return super().__exit__(type, value, traceback)

    def _check(self) -> None:
        self._databases.process.check()
        if self._thread not in (None, threading.get_ident()):
            raise sqlite3.ProgrammingError(
                "SQLite objects created in a thread can only be used in that same thread. The object was created in "
                f"thread id {self._thread} and this is thread id {threading.get_ident()}."
            )

    def _commit(self) -> AbstractContextManager[None]:
        return self._databases.committing(self._name) if self.in_transaction else nullcontext()

    def _statement(self, sql: str) -> AbstractContextManager[None]:
        self._check()
        self._databases.writing(sql)
        begins = self.isolation_level is not None and getattr(self, "autocommit", -1) == -1
        if begins and not self.in_transaction and first_word(sql) in IMPLICIT_BEGIN:
            return nullcontext()
        is_commit = commits(sql, in_transaction=self.in_transaction)
        return self._databases.committing(self._name) if is_commit else nullcontext()


class _ObservedCursor(sqlite3.Cursor):
    connection: _ObservedConnection  # pyright: ignore[reportIncompatibleMethodOverride]

    def execute(self, sql: str, *parameters: Any) -> Any:
        with self.connection._statement(sql):
            return super().execute(sql, *parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        with self.connection._statement(sql):
            return super().executemany(sql, parameters)

    def executescript(self, script: str) -> Any:
        connection = self.connection
        connection._check()
        if getattr(connection, "autocommit", -1) == -1:
            connection.commit()  # as executescript does by itself
        done, is_open = "", connection.in_transaction
        try:
            for statement in _statements(script):
                is_commit = commits(statement, in_transaction=is_open)
                with connection._databases.committing(connection._name) if is_commit else nullcontext():
                    done += statement
                word = first_word(statement)
                is_open = word == "BEGIN" or (is_open and not is_commit and word != "ROLLBACK")
        except Crash:
            with suppress(sqlite3.Error):
                super().executescript(done)
            raise
        return super().executescript(script)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; joined, they are the script."""
    statement = ""
    for part in re.split("(?<=;)", script):
        statement += part
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    yield statement


def _close_sqlite(connection: sqlite3.Connection) -> None:
    connection.interrupt()
    sqlite3.Connection.close(connection)


# --- psycopg ---------------------------------------------------------------------------------------------------------

_Replacement = tuple[Any, str, Callable[[Any], Any]]


def _of_psycopg() -> list[_Replacement]:
    """Return what is replaced in psycopg: the generators that synchronous and asynchronous connections share."""
    from psycopg import _connection_base, _cursor_base

    return [
        (_connection_base.BaseConnection, "__init__", _opening),
        (_connection_base.BaseConnection, "_exec_command", _executing_command),
        (_cursor_base.BaseCursor, "_start_query", _beginning_query),
        (_cursor_base.BaseCursor, "_execute_gen", _executing),
    ]


def _opening(init: Any) -> Any:
    def opened(connection: Any, *arguments: Any, **named: Any) -> None:
        init(connection, *arguments, **named)
        databases = connection._databases_of_clinic = databases_of_thread()
        if databases is not None:
            databases.connections[connection] = _close_psycopg

    return opened


def _executing_command(execute: Any) -> Any:
    def executed(connection: Any, command: Any, *arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        databases = getattr(connection, "_databases_of_clinic", None)
        if (
            databases is not None
            and databases.process.has_crashed
            and first_word(_text(command, connection)) == "ROLLBACK"
        ):
            if connection.closed:
                return None  # it is rolled back
            databases = None
        try:
            with _reported(connection, databases, command):
                return (yield from execute(connection, command, *arguments, **named))
        except Crash:
            if databases is not None:  # psycopg warns of a connection that is freed before it is closed, so it is kept
                databases.connections[connection] = functools.partial(lambda kept, _: _close_psycopg(kept), connection)
            raise

    return executed


def _beginning_query(begin: Any) -> Any:
    def begun(cursor: Any, *arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        if (databases := getattr(cursor._conn, "_databases_of_clinic", None)) is not None:
            databases.process.check()
        return (yield from begin(cursor, *arguments, **named))

    return begun


def _executing(execute: Any) -> Any:
    def executed(cursor: Any, query: Any, *arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        with _reported(cursor._conn, getattr(cursor._conn, "_databases_of_clinic", None), query):
            return (yield from execute(cursor, query, *arguments, **named))

    return executed


def _reported(connection: Any, databases: OpenDatabases | None, query: Any) -> AbstractContextManager[None]:
    if databases is None or connection._pipeline:
        return nullcontext()
    sql = _text(query, connection)
    databases.writing(sql)
    status = connection.info.transaction_status.name
    begins = status == "IDLE" and not connection.autocommit
    if begins or status == "INERROR" or not commits(sql, in_transaction=status == "INTRANS"):
        return nullcontext()
    return databases.committing(connection.info.dbname)


def _text(query: Any, connection: Any) -> str:
    if hasattr(query, "as_string"):
        return str(query.as_string(connection))
    if hasattr(query, "strings"):  # a template string
        return "?".join(query.strings)
    return query.decode(errors="replace") if isinstance(query, bytes) else str(query)


def _close_psycopg(connection: Any) -> None:
    if connection.lock.locked():  # another thread waits for a response
        connection.cancel()
        return
    connection.pgconn.exec_(b"ROLLBACK")  # the server notices later that a connection has ended
    connection.pgconn.finish()


# --- SQLAlchemy and the outbox ---------------------------------------------------------------------------------------


def _of_sqlalchemy() -> list[_Replacement]:
    from sqlalchemy.engine import Engine
    from sqlalchemy.engine.default import DefaultDialect

    from followup.outbox import Outbox

    return [
        (Engine, "raw_connection", _connecting),
        (DefaultDialect, "do_commit", _committing),
        (Outbox, "record", _recording),
        (Outbox, "record_async", _recording),
    ]


_OBSERVED_DRIVERS = ("pysqlite", "aiosqlite", "psycopg", "psycopg_async")


def _connecting(connect: Any) -> Any:
    def connected(engine: Any) -> Any:
        databases = databases_of_thread()
        if databases is None:
            return connect(engine)
        databases.process.check()
        databases.engines.add(engine)
        connection = connect(engine)
        if engine.driver not in _OBSERVED_DRIVERS:
            databases.connections[connection] = type(connection).invalidate
        return connection

    return connected


def _committing(commit: Any) -> Any:
    def committed(dialect: Any, connection: Any) -> None:
        databases = None if dialect.driver in _OBSERVED_DRIVERS else databases_of_thread()
        with nullcontext() if databases is None else databases.committing(dialect.name):
            commit(dialect, connection)

    return committed


def _recording(record: Any) -> Any:
    def recorded(outbox: Any, connection: Any, event: Any, *arguments: Any, **named: Any) -> Any:
        if (databases := databases_of_thread()) is not None:
            databases.recording(event)
        return record(outbox, connection, event, *arguments, **named)

    return recorded


_REPLACEMENTS = (_of_psycopg, _of_sqlalchemy)
