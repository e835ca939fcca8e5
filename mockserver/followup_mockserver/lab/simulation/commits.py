"""The clinic's commits: which statements commit, the crashes before and after, and what a crash does to connections.

Each process of the clinic has the databases that it opened. The drivers ask for those of the thread that calls them;
a thread belongs to the process that started it.
"""

import functools
import os
import re
import sqlite3
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import PureWindowsPath
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import attrs

from followup_mockserver.lab.simulation.network import PendingFaults
from followup_mockserver.lab.simulation.process import Process
from followup_mockserver.lab.simulation.promises import Story

_FIRST_WORD = re.compile(r"(?:[\s(]|--[^\n]*(?:\n|$)|/\*.*?\*/)*([a-z]*)", re.IGNORECASE | re.DOTALL)
_WRITTEN = re.compile(
    r"\b(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE|DELETE\s+FROM|PRAGMA(?=\s+user_version\s*=))\s+\W?(\w+)",
    re.IGNORECASE,
)
_READS = frozenset(("SELECT", "VALUES", "EXPLAIN", "SHOW", "SET", "RESET", "DECLARE", "FETCH", "MOVE", "CLOSE"))
_OTHERS = frozenset(("", "BEGIN", "START", "SAVEPOINT", "RELEASE", "ROLLBACK", "ABORT", "ATTACH", "DETACH"))
_NO_WRITES = _READS | _OTHERS | {"LISTEN", "UNLISTEN", "DEALLOCATE", "DISCARD"}
"""The first words of statements that commit nothing, even outside of a transaction."""

IMPLICIT_BEGIN = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE"))
"""The first words of the statements before which ``sqlite3`` begins a transaction by itself."""


def first_word(sql: str) -> str:
    """Return the first word of a statement, in upper case; empty if it has none."""
    found = _FIRST_WORD.match(sql)
    return found[1].upper() if found is not None else ""


def commits(sql: str, *, in_transaction: bool) -> bool:
    """Return whether a statement commits: it ends a transaction, or writes outside of one."""
    word = first_word(sql)
    if in_transaction or word in ("COMMIT", "END"):
        return in_transaction and word in ("COMMIT", "END")
    return word not in _NO_WRITES and (word not in ("WITH", "PRAGMA") or _WRITTEN.search(sql) is not None)


@attrs.define(eq=False)
class Commits:
    """The commits of one history.

    Attributes:
        pending: the crashes that are pending.
        story: learns what happens.
        made: how many commits were made.
        runs: by the id of a webhook event, for each run of its handler whether the run committed something by itself.
        lock: held while it is decided whether a commit is one at which the clinic crashes.
    """

    pending: PendingFaults
    story: Story
    made: int = attrs.field(default=0, init=False)
    runs: defaultdict[str, list[bool]] = attrs.field(factory=lambda: defaultdict(list), init=False)
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)


@attrs.define(eq=False)
class OpenDatabases:
    """The databases that one process has opened.

    Attributes:
        process: the process.
        commits: the commits of its history.
        connections: its connections, each with a function that closes it.
        engines: the engines of SQLAlchemy that it used.
    """

    process: Process
    commits: Commits
    connections: WeakKeyDictionary[Any, Callable[[Any], object]] = attrs.field(factory=WeakKeyDictionary, init=False)
    engines: WeakSet[Any] = attrs.field(factory=WeakSet, init=False)

    @contextmanager
    def committing(self, database: str) -> Iterator[None]:
        """Make a commit in a database a point at which the clinic may crash, before and after it.

        Raises:
            Crash: the clinic crashes here, or has crashed before.
        """
        process, commits = self.process, self.commits
        # Of two threads that commit at once, one takes the crash. The commit itself is outside of the lock: it may wait
        # for a lock of the database, which the other one holds.
        with commits.lock:
            process.check()
            moment = commits.pending.crash_at_commit(starts=process.is_starting)
            if moment == "before":
                commits.story.add(f"The clinic crashed before it committed ({database}).")
                raise process.crash()
        yield
        commits.made += 1
        if moment == "after":
            with commits.lock:
                process.check()
                commits.story.add(f"The clinic crashed after it committed ({database}).")
                raise process.crash()

    def belong_to_thread(self) -> None:
        """Let these be the databases of the current thread, and of those that it starts."""
        vars(threading.current_thread())[_OWNER] = self

    def close(self) -> None:
        """Close all connections, as the end of a process does: what is not committed is rolled back."""
        for connection, close in list(self.connections.items()):
            with suppress(Exception):
                close(connection)
        # Its connections are closed already, and what closing them again would do is up to the driver.
        for engine in list(self.engines):
            engine.dispose(close=False)
        django = sys.modules.get("django.db")
        if django is not None and sys.modules["django.conf"].settings.configured:
            for wrapper in django.connections.all(initialized_only=True):
                # What a wrapper knows about its transaction ends with the process, also where it has no connection.
                if wrapper.connection is None or wrapper.connection in self.connections:
                    del django.connections[wrapper.alias]


# An attribute of the thread: a weak dictionary would keep every thread for ever that its own process refers to.
_OWNER = "_databases_of_clinic"


def databases_of_thread() -> OpenDatabases | None:
    """Return the databases of the process that the current thread belongs to; None outside of a simulation."""
    return getattr(threading.current_thread(), _OWNER, None)


def adopt(thread: threading.Thread) -> None:
    """Let a thread that starts belong to the process of the current one."""
    if (databases := databases_of_thread()) is not None:
        vars(thread)[_OWNER] = databases


def leave_thread() -> None:
    """Let the current thread belong to no process any more."""
    vars(threading.current_thread()).pop(_OWNER, None)


_POSITIONAL = ("timeout", "detect_types", "isolation_level", "check_same_thread", "factory", "cached_statements", "uri")
"""The parameters of ``sqlite3.connect`` after the database, which are positional, too, before Python 3.15."""


def opening(connect: Callable[..., sqlite3.Connection], *values: Any, **named: Any) -> sqlite3.Connection:
    """Open a connection as ``sqlite3.connect`` does; one of a clinic reports its commits."""
    if databases_of_thread() is None:
        return connect(*values, **named)
    named |= zip(_POSITIONAL, values[1:], strict=False)
    factory = _observed(_ObservedConnection, named.pop("factory", sqlite3.Connection))
    return connect(*values[:1], factory=factory, **named)


@functools.cache
def _observed(observed: type, factory: Any) -> Any:
    """Return a factory whose objects are observed, below what a class of the user overrides."""
    if not isinstance(factory, type) or issubclass(observed, factory):
        return observed if isinstance(factory, type) else factory
    return type(factory.__name__, (factory, observed), {})


class _ObservedConnection(sqlite3.Connection):
    """A connection of sqlite3. The end of its process can close it from another thread, so it checks threads itself."""

    def __init__(self, database: Any, *, check_same_thread: bool = True, **named: Any) -> None:
        databases = databases_of_thread()
        assert databases is not None
        self._databases = databases
        self._name = PureWindowsPath(os.fsdecode(database).partition("?")[0]).name  # it knows both separators
        self._thread = threading.get_ident() if check_same_thread else None
        databases.process.check()
        super().__init__(database, check_same_thread=False, **named)
        databases.connections[self] = _close_sqlite

    def __setattr__(self, name: str, value: Any) -> None:
        # In CPython, both commit a transaction that is open.
        ends = (name, value) in (("isolation_level", None), ("autocommit", True))
        with self._commit() if ends else nullcontext():
            super().__setattr__(name, value)

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        self._check()
        return super().cursor(_observed(_ObservedCursor, factory))

    # The shortcuts of sqlite3 make their cursors in C, which would not be observed.
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
        # autocommit is new in Python 3.12; -1 is sqlite3.LEGACY_TRANSACTION_CONTROL, as every connection had it before.
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
        level = connection.isolation_level
        if getattr(connection, "autocommit", -1) == -1:
            connection.isolation_level = None  # commits, as executescript does first, and no statement begins one
        try:
            # One by one, because each of them may commit, and the clinic may crash in between.
            for statement in _statements(script):
                _ObservedCursor.execute(self, statement)
        finally:
            if connection.isolation_level != level:
                connection.isolation_level = level
        return self


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
    # Another thread may be within a statement of this connection.
    connection.interrupt()
    sqlite3.Connection.close(connection)
