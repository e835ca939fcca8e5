"""Connections of sqlite3 that report their commits, those inside of scripts and of autocommit included."""

import functools
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from followup_mockserver.simulation.commits import IMPLICIT_BEGIN, commits, databases_of_thread, first_word

_PARAMETERS = (
    *("database", "timeout", "detect_types", "isolation_level"),
    *("check_same_thread", "factory", "cached_statements", "uri"),
)
"""The parameters of ``sqlite3.connect`` that may be positional."""


def connecting(connect: Callable[..., sqlite3.Connection], *values: Any, **named: Any) -> sqlite3.Connection:
    """Open a connection as ``sqlite3.connect`` does; one of a clinic reports its commits."""
    databases = databases_of_thread()
    if databases is None or len(values) > len(_PARAMETERS):
        return connect(*values, **named)
    arguments = dict(zip(_PARAMETERS, values, strict=False)) | named
    factory = arguments.pop("factory", sqlite3.Connection)
    return connect(arguments.pop("database"), factory=_observed(_ObservedConnection, factory), **arguments)


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
        level = connection.isolation_level
        if getattr(connection, "autocommit", -1) == -1:
            connection.isolation_level = None  # commits, as executescript does first, and no statement begins one
        try:
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
    connection.interrupt()
    sqlite3.Connection.close(connection)
