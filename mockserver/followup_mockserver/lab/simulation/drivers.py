"""Drivers of databases that report their commits while a simulation runs: sqlite3, psycopg, and what is built on them.

SQLAlchemy, Django and aiosqlite open their connections with these drivers, so their commits are seen here as well.
Those with other drivers, as that of MySQL, are seen in SQLAlchemy and Django themselves.
"""

import contextvars
import functools
import importlib
import inspect
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import anyio.to_thread

from followup_mockserver.deliveries.applications import running_loop
from followup_mockserver.lab.simulation.clinic import Crash
from followup_mockserver.lab.simulation.commits import adopt, commits, databases_of_thread, leave_thread, opening
from followup_mockserver.lab.simulation.loop import SimulatedLoop

_Replacement = tuple[Any, str, Callable[..., Any]]
"""A class or module, the name of a function in it, and what is called instead: with that function and its arguments."""


@contextmanager
def observed_drivers() -> Iterator[None]:
    """Let the connections and threads that a clinic opens within this block be known to the simulation."""
    connect = sqlite3.connect
    with ExitStack() as stack:
        # It is a function, which a module may have imported by its name; the others are methods of classes.
        stack.enter_context(_everywhere(connect, functools.partial(opening, connect)))
        for each in (*_of_threads(), *_of_psycopg(), *_of_sqlalchemy(), *_of_django()):
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
    return [
        (threading.Thread, "start", _starting),
        (ThreadPoolExecutor, "submit", _submitting),
        (anyio.to_thread, "run_sync", _running_in_thread),
    ]


def _starting(start: Any, thread: threading.Thread) -> None:
    adopt(thread)
    start(thread)


def _submitting(submit: Any, pool: Any, function: Any, *arguments: Any, **named: Any) -> Any:
    """Let a thread of a pool, which may outlive the process that started it, belong to that of each piece of work."""
    databases = databases_of_thread()
    if databases is None:
        return submit(pool, function, *arguments, **named)

    def work() -> Any:
        databases.belong_to_thread()
        try:
            return function(*arguments, **named)
        finally:
            leave_thread()

    leave_thread()  # so that a thread that the pool starts now belongs to no process
    try:
        return submit(pool, work)
    finally:
        databases.belong_to_thread()


async def _running_in_thread(run_sync: Any, func: Any, *args: Any, **options: Any) -> Any:
    """Let the threads that anyio starts for a simulated loop be those that the loop knows."""
    loop = running_loop()  # None in an event loop of trio
    if not isinstance(loop, SimulatedLoop):
        return await run_sync(func, *args, **options)
    # The loop waits for the futures that it has made; anyio makes those of its own threads without it.
    async with options.get("limiter") or anyio.to_thread.current_default_thread_limiter():
        with anyio.CancelScope(shield=not options.get("abandon_on_cancel")):
            run: Any = contextvars.copy_context().run
            return await loop.run_in_executor(None, run, func, *args)


# --- psycopg ---------------------------------------------------------------------------------------------------------


# An attribute of the connection, for the process that opened it: another thread may use it.
_DATABASES = "_databases_of_clinic"


def _of_psycopg() -> list[_Replacement]:
    try:
        import psycopg
    except ImportError:
        return []  # nobody can connect with it
    parts = (
        (psycopg.Connection, psycopg.Cursor, psycopg.Transaction, "__exit__"),
        (psycopg.AsyncConnection, psycopg.AsyncCursor, psycopg.AsyncTransaction, "__aexit__"),
    )
    return [
        replacement
        for connection, cursor, transaction, leave in parts
        for replacement in (
            (connection, "__init__", _opening),
            (connection, "commit", _within(lambda connection: _reported(connection, "COMMIT"))),
            (cursor, "execute", _within(_executing)),
            (cursor, "executemany", _within(_executing)),
            (transaction, leave, _within(_leaving)),
        )
    ]


def _within(context: Callable[..., AbstractContextManager[None]]) -> Callable[..., Any]:
    """Return a replacement that calls the function, which may be a coroutine function, in a context."""

    async def call_async(original: Any, *arguments: Any, **named: Any) -> Any:
        with context(*arguments, **named):
            return await original(*arguments, **named)

    def call(original: Any, *arguments: Any, **named: Any) -> Any:
        if inspect.iscoroutinefunction(original):
            return call_async(original, *arguments, **named)
        with context(*arguments, **named):
            return original(*arguments, **named)

    return call


def _opening(init: Any, connection: Any, *arguments: Any, **named: Any) -> None:
    init(connection, *arguments, **named)
    databases = databases_of_thread()
    setattr(connection, _DATABASES, databases)
    if databases is not None:
        databases.connections[connection] = _close_psycopg


def _executing(cursor: Any, query: Any, *_: Any, **__: Any) -> AbstractContextManager[None]:
    return _reported(cursor.connection, query)


def _leaving(block: Any, error: Any, *_: Any) -> AbstractContextManager[None]:
    commits = error is None and not block.savepoint_name and not block.force_rollback
    return _reported(block.connection, "COMMIT") if commits else nullcontext()


@contextmanager
def _reported(connection: Any, query: Any) -> Iterator[None]:
    databases = getattr(connection, _DATABASES, None)
    if databases is None:
        yield
        return
    try:
        databases.process.check()
        with databases.committing(connection.info.dbname) if _commits(connection, query) else nullcontext():
            yield
    except Crash:
        _close_psycopg(connection)  # otherwise psycopg warns of a connection that is freed before it is closed
        raise


def _commits(connection: Any, query: Any) -> bool:
    status = connection.info.transaction_status.name
    # psycopg begins a transaction before the first statement; in a pipeline, a statement is only sent, and runs later.
    begins = status == "IDLE" and not connection.autocommit
    if begins or status == "INERROR" or connection.pgconn.pipeline_status:
        return False
    return commits(_text(query, connection), in_transaction=status == "INTRANS")


def _text(query: Any, connection: Any) -> str:
    if hasattr(query, "as_string"):
        return str(query.as_string(connection))
    if hasattr(query, "strings"):  # a template string of Python 3.14
        return "?".join(query.strings)
    return query.decode(errors="replace") if isinstance(query, bytes) else str(query)


def _close_psycopg(connection: Any) -> None:
    if connection.lock.locked():  # another thread waits for a response
        connection.cancel()
    elif not connection.closed:
        # The server notices only later that a connection has ended, and keeps its locks until then.
        connection.pgconn.exec_(b"ROLLBACK")
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


# --- Django on MySQL and MariaDB -------------------------------------------------------------------------------------


def _of_django() -> list[_Replacement]:
    try:
        wrapper: Any = importlib.import_module("django.db.backends.base.base").BaseDatabaseWrapper
        cursor_wrapper: Any = importlib.import_module("django.db.backends.utils").CursorWrapper
    except ImportError:
        return []
    return [
        (wrapper, "connect", _connecting_django),
        (wrapper, "_commit", _within(lambda django: _reported_by_django(django, "COMMIT"))),
        (cursor_wrapper, "_execute", _within(lambda cursor, sql, *_: _reported_by_django(cursor.db, sql))),
        (cursor_wrapper, "_executemany", _within(lambda cursor, sql, *_: _reported_by_django(cursor.db, sql))),
    ]


def _connecting_django(connect: Any, django: Any) -> None:
    databases = databases_of_thread()
    if databases is not None:
        databases.process.check()
    connect(django)
    if databases is not None and django.vendor == "mysql":
        databases.connections[django.connection] = type(django.connection).close


def _reported_by_django(django: Any, sql: str) -> AbstractContextManager[None]:
    databases = databases_of_thread()
    # On SQLite and PostgreSQL, the drivers below report the commits.
    if databases is None or django.vendor != "mysql":
        return nullcontext()
    databases.process.check()
    is_commit = commits(sql, in_transaction=not django.autocommit)
    return databases.committing(django.vendor) if is_commit else nullcontext()
