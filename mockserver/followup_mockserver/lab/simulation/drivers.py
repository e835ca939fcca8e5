"""Drivers of databases that report their commits while a simulation runs: sqlite3, psycopg, and what is built on them.

SQLAlchemy, Django and aiosqlite open their connections with these drivers, so their commits are seen here as well.
"""

import asyncio
import contextvars
import functools
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import anyio.to_thread

from followup_mockserver.lab.simulation.clinic import Crash
from followup_mockserver.lab.simulation.commits import (
    OpenDatabases,
    adopt,
    commits,
    databases_of_thread,
    first_word,
    opening,
)
from followup_mockserver.lab.simulation.loop import SimulatedLoop
from followup_mockserver.lab.simulation.unconnected import NotSimulated

_Replacement = tuple[Any, str, Callable[..., Any]]
"""A class or module, the name of a function in it, and what is called instead: with that function and its arguments."""


@contextmanager
def observed_drivers() -> Iterator[None]:
    """Let the connections and threads that a clinic opens within this block be known to the simulation."""
    connect = sqlite3.connect
    with ExitStack() as stack:
        stack.enter_context(_everywhere(connect, functools.partial(opening, connect)))
        for each in (*_of_threads(), *_of_psycopg(), *_of_sqlalchemy()):
            stack.enter_context(_replaced(*each))
        yield


@contextmanager
def _replaced(owner: Any, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        return replacement(original, *arguments, **named)

    setattr(owner, name, call)
    try:
        yield
    finally:
        setattr(owner, name, original)


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


# --- threads ---------------------------------------------------------------------------------------------------------


def _of_threads() -> list[_Replacement]:
    return [(threading.Thread, "start", _starting), (anyio.to_thread, "run_sync", _running_in_thread)]


def _starting(start: Any, thread: threading.Thread) -> None:
    adopt(thread)
    start(thread)


async def _running_in_thread(run_sync: Any, func: Any, *args: Any, **options: Any) -> Any:
    """Let the threads that anyio starts for a simulated loop be those that the loop knows."""
    loop = asyncio._get_running_loop()  # None in an event loop of trio
    if not isinstance(loop, SimulatedLoop):
        return await run_sync(func, *args, **options)
    async with options.get("limiter") or anyio.to_thread.current_default_thread_limiter():
        with anyio.CancelScope(shield=not options.get("abandon_on_cancel")):
            run: Any = contextvars.copy_context().run
            return await loop.run_in_executor(None, run, func, *args)


# --- psycopg ---------------------------------------------------------------------------------------------------------


def _of_psycopg() -> list[_Replacement]:
    """Return what is replaced in psycopg: the generators that synchronous and asynchronous connections share.

    They are private. Where a version does not have them, a connection of the clinic is an error.
    """
    try:
        import psycopg
    except ImportError:
        return []  # nobody can connect with it
    try:
        from psycopg import _connection_base, _cursor_base

        replacements: list[_Replacement] = [
            (_connection_base.BaseConnection, "__init__", _opening),
            (_connection_base.BaseConnection, "_exec_command", _executing_command),
            (_cursor_base.BaseCursor, "_start_query", _beginning_query),
            (_cursor_base.BaseCursor, "_execute_gen", _executing),
        ]
        for owner, name, _ in replacements:
            getattr(owner, name)
    except (ImportError, AttributeError):
        return [(each, "__init__", _refusing) for each in (psycopg.Connection, psycopg.AsyncConnection)]
    return replacements


def _refusing(init: Any, connection: Any, *arguments: Any, **named: Any) -> None:
    import psycopg

    if databases_of_thread() is not None:
        raise NotSimulated(
            f"This simulation cannot observe the commits of psycopg {psycopg.__version__}, so it would miss bugs; "
            "install psycopg 3.2 or 3.3."
        )
    init(connection, *arguments, **named)


def _opening(init: Any, connection: Any, *arguments: Any, **named: Any) -> None:
    init(connection, *arguments, **named)
    databases = connection._databases_of_clinic = databases_of_thread()
    if databases is not None:
        databases.connections[connection] = _close_psycopg


def _executing_command(execute: Any, connection: Any, command: Any, **named: Any) -> Generator[Any, Any, Any]:
    databases = getattr(connection, "_databases_of_clinic", None)
    if databases is not None and databases.process.has_crashed and first_word(_text(command, connection)) == "ROLLBACK":
        if connection.closed:
            return None  # it is rolled back
        databases = None
    try:
        with _reported(connection, databases, command):
            return (yield from execute(connection, command, **named))
    except Crash:
        if databases is not None:  # psycopg warns of a connection that is freed before it is closed, so it is kept
            databases.connections[connection] = functools.partial(lambda kept, _: _close_psycopg(kept), connection)
        raise


def _beginning_query(begin: Any, cursor: Any, *arguments: Any, **named: Any) -> Any:
    if (databases := getattr(cursor._conn, "_databases_of_clinic", None)) is not None:
        databases.process.check()
    return begin(cursor, *arguments, **named)


def _executing(execute: Any, cursor: Any, query: Any, *arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
    with _reported(cursor._conn, getattr(cursor._conn, "_databases_of_clinic", None), query):
        return (yield from execute(cursor, query, *arguments, **named))


def _reported(connection: Any, databases: OpenDatabases | None, query: Any) -> AbstractContextManager[None]:
    if databases is None or connection._pipeline:
        return nullcontext()
    sql = _text(query, connection)
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
    try:
        from sqlalchemy.engine import Engine
        from sqlalchemy.engine.default import DefaultDialect
    except ImportError:  # these names are public
        return []

    return [(Engine, "raw_connection", _connecting), (DefaultDialect, "do_commit", _committing)]


_OBSERVED_DRIVERS = ("pysqlite", "aiosqlite", "psycopg", "psycopg_async")


def _connecting(connect: Any, engine: Any) -> Any:
    databases = databases_of_thread()
    if databases is None:
        return connect(engine)
    databases.process.check()
    databases.engines.add(engine)
    connection = connect(engine)
    if engine.driver not in _OBSERVED_DRIVERS:
        databases.connections[connection] = type(connection).invalidate
    return connection


def _committing(commit: Any, dialect: Any, connection: Any) -> None:
    databases = None if dialect.driver in _OBSERVED_DRIVERS else databases_of_thread()
    with nullcontext() if databases is None else databases.committing(dialect.name):
        commit(dialect, connection)
