"""A SQLite or PostgreSQL database, from a SQLAlchemy URL or Engine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from followup._errors import ConfigurationError

Dialect = Literal["sqlite", "postgresql"]

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgresql")

_BUSY_TIMEOUT = 30.0
"""Seconds to wait for a lock of SQLite that another process holds."""

_VALID = 'must be a SQLAlchemy URL such as "sqlite:///clinic.db" or "postgresql://host/clinic", or an Engine'
_DEFAULT_DRIVERS = MappingProxyType({"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"})
_PACKAGES = MappingProxyType({"psycopg": "followup[postgres]"})


class Database:
    """A database and the connections to it, which may be used by several threads, and after a fork.

    Attributes:
        engine: the user's Engine, or one made from the user's URL.
        dialect: ``sqlite`` or ``postgresql``.
    """

    def __init__(self, source: str | URL | Engine) -> None:
        """Check the URL or Engine. Nothing is connected yet.

        Raises:
            ConfigurationError: it is for another database, or its driver is not installed.
        """
        self._is_own = not isinstance(source, Engine)
        self.engine = source if isinstance(source, Engine) else _engine_of(source)
        self.dialect = checked_dialect(self.engine.dialect.name)
        if self.engine.dialect.is_async:
            raise ConfigurationError("database must be a synchronous Engine; an AsyncEngine has one as sync_engine")
        # A user's Engine may have another default, which would make a statement see less than the lock protects.
        options = {"isolation_level": "READ COMMITTED"} if self.dialect == "postgresql" else {}
        self._transactions = self.engine.execution_options(**options)
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"Database({self.engine.url.render_as_string(hide_password=True)!r})"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a connection and begin a transaction, which commits at the end of the with block."""
        if self._process != os.getpid():
            # Connections that were open at a fork belong to the parent, which still uses them.
            self.engine.dispose(close=False)
            self._process = os.getpid()
        with self._transactions.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close the connections, unless the Engine is the user's own."""
        if self._is_own:
            self.engine.dispose()


def checked_dialect(name: str) -> Dialect:
    """Return the name of a supported dialect.

    Raises:
        ConfigurationError: it is another database.
    """
    for dialect in DIALECTS:
        if name == dialect:
            return dialect
    raise ConfigurationError(f"database must be SQLite or PostgreSQL, not {name}")


def _engine_of(source: object) -> Engine:
    if not isinstance(source, (str, URL)):
        raise ConfigurationError(f"database {_VALID}, not {type(source).__name__}")
    try:
        url = make_url(source)
    except ArgumentError:
        raise ConfigurationError(f"database {_VALID}") from None  # the message does not show it: it may have a password
    url = url.set(drivername=_DEFAULT_DRIVERS.get(url.drivername, url.drivername))
    dialect = checked_dialect(url.get_backend_name())
    options: dict[str, Any] = {"pool_pre_ping": True}
    if dialect == "sqlite":
        _check_is_a_file(url)
        # Opening a file is cheap, and open connections would be in the way of a fork, or of replacing the file.
        options = {"poolclass": NullPool}
        if url.get_driver_name() == "pysqlite":
            options["connect_args"] = {"timeout": _BUSY_TIMEOUT}
    try:
        engine = create_engine(url, **options)
    except NoSuchModuleError:
        raise ConfigurationError(f"database names a driver that SQLAlchemy does not know: {url.drivername}") from None
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(error.name or "", error.name)
        raise ConfigurationError(f"database needs a driver: python -m pip install '{package}'") from None
    if engine.dialect.is_async:
        backend = "sqlite:///" if dialect == "sqlite" else "postgresql://"
        raise ConfigurationError(f"database names an asynchronous driver, {url.drivername}: use {backend}…")
    return engine


def _check_is_a_file(url: URL) -> None:
    name = url.database or ""
    if name in ("", ":memory:") or name.startswith("file::memory:") or url.query.get("mode") == "memory":
        raise ConfigurationError(
            "database is in memory, so it ends with its connection: name a file, or pass the Engine of your program"
        )
