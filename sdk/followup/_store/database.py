"""A SQLite, PostgreSQL, MySQL or MariaDB database, from a SQLAlchemy URL or Engine, and the connections to it."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from followup._core.errors import ConfigurationError
from followup._core.plain import surroundings
from followup._store.dialects import Dialect, dialect_of
from followup._store.execution import ReadOnlyError, is_read_only, is_useless, number_of, tables_in
from followup._version import installation

_BUSY_TIMEOUT = 30.0
"""Seconds to wait for a lock of SQLite that another process holds."""

_POOL_TIMEOUT = 3.0
"""Seconds to wait for a free connection to a server, if other threads use all of them."""

_TRIES = 3
"""How often work is begun that the database undoes because of other transactions."""

T = TypeVar("T")

_LIBPQ_OPTIONS = MappingProxyType(
    {
        "connect_timeout": 5,  # seconds; without a limit, a host that is down takes minutes
        # A host that vanishes without closing its connections is noticed when it has not acknowledged data for so many
        # milliseconds, or while we wait for its response, within a minute. The defaults are a quarter of an hour, and
        # hours.
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "client_encoding": "utf8",  # whatever a role or a database in SQL_ASCII would have
    }
)
"""Options of connections to PostgreSQL, unless the URL has others."""

_PYMYSQL_OPTIONS = MappingProxyType(
    {
        "connect_timeout": 5,
        "init_command": "SET sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",  # else values may be cut silently
    }
)
"""Options of connections to MySQL, unless the URL has others."""

_VALID = 'must be a SQLAlchemy URL such as "sqlite:////srv/clinic.db" or "postgresql://host/clinic", or an Engine'
_DEFAULT_DRIVERS = MappingProxyType(
    {
        "postgresql": "postgresql+psycopg",
        "postgres": "postgresql+psycopg",
        "mysql": "mysql+pymysql",
        "mariadb": "mysql+pymysql",
    }
)
_EXTRAS = MappingProxyType({"psycopg": "postgres", "pymysql": "mysql"})


class Database:
    """A database and the connections to it, which may be used by several threads, and after a fork.

    Attributes:
        engine: the user's Engine, or one made from the user's URL.
        dialect: which kind of database it is.
        schema: the schema of our tables on a server; None as long as they were not found.
        file: the SQLite file of a URL.
        driver: the driver's connection of the latest transaction, if the database may be in memory.
    """

    schema: str | None
    driver: object = None

    def __init__(self, source: str | sa.URL | Engine) -> None:
        """Check the URL or Engine. Nothing is connected yet.

        Raises:
            ConfigurationError: it is for another database, or its driver is not installed.
        """
        self._is_own = not isinstance(source, Engine)
        self.engine: Engine = source if isinstance(source, Engine) else _engine_of(source)
        self.dialect: Dialect = dialect_of(self.engine.dialect.name)
        if self.engine.dialect.is_async:
            raise ConfigurationError(f"database has an asynchronous driver, {self.engine.dialect.driver}: use another")
        # A user's Engine may have another default, which would make a statement see less than the lock protects.
        options = {"isolation_level": "READ COMMITTED"} if self.dialect.is_server else {}
        self._transactions: Engine = self.engine.execution_options(**options)
        self.use_schema(None)
        self._process = os.getpid()
        self.file: Path | None = _file_of(self.engine) if self._is_own else None
        if self.file is not None:
            event.listen(self.engine, "do_connect", self._open_existing_file)

    def __repr__(self) -> str:
        # The query may have a password, too.
        return f"Database({self.engine.url.set(query={}).render_as_string(hide_password=True)!r})"

    @property
    def shown(self) -> str:
        """The file of the database, or its server and name, without connecting."""
        return shown_of(self.engine.url)

    def use_schema(self, schema: str | None) -> None:
        """Let all later transactions use our tables in a schema."""
        self.schema = schema
        self._of_ours = self._transactions.execution_options(**tables_in(schema))

    def find_tables(self, connection: Connection) -> None:
        """Find the schema of our tables on a server, for this transaction and all later ones."""
        if self.dialect.find_schema is not None:
            self.use_schema(connection.scalar(self.dialect.find_schema))
            connection.execution_options(**tables_in(self.schema))

    @contextmanager
    def transaction(self, longest_wait: float | None = None, *, of_user: bool = False) -> Iterator[Connection]:
        """Open a connection and begin a transaction, which commits at the end of the with block.

        Args:
            longest_wait: seconds, at most, that a statement or the commit waits for other processes; by default as long
                as the Engine says.
            of_user: whether it is for tables of the user; otherwise it is for ours, in their schema.
        """
        if self._process != os.getpid():
            # Connections that were open at a fork belong to the parent, which still uses them.
            self.engine.dispose(close=False)
            self._process = os.getpid()
        engine = self._transactions if of_user else self._of_ours
        with engine.connect() as connection, ExitStack() as settings:
            # The settings are undone after the transaction has ended, and before the connection goes back to the pool.
            driver: Any = connection.connection.driver_connection
            if self.dialect.is_server:
                settings.enter_context(unprepared(driver))
                settings.callback(_restore, connection, self.dialect.restore)
            elif longest_wait is not None:
                settings.enter_context(_waiting_at_most(driver, longest_wait))
            if not self.dialect.is_server and self.file is None:
                self.driver = driver
            try:
                with connection.begin():
                    limit = None if longest_wait is None else self.dialect.statement_limit(longest_wait)
                    if limit is not None:
                        connection.execute(limit)
                    yield connection
            except Exception as error:
                self._drop_if_useless(connection, error)
                raise

    def repeat(self, work: Callable[[], T]) -> T:
        """Do work in a transaction, and return its result; again where MySQL has undone it, as in a deadlock."""
        for _ in range(_TRIES - 1):
            try:
                return work()
            except DBAPIError as error:
                if number_of(error) not in self.dialect.repeatable:
                    raise
        return work()

    def _drop_if_useless(self, connection: Connection, error: Exception) -> None:
        """Close the connection after an error that it would have again, where the pool takes it for a good one."""
        if is_useless(error) and not connection.closed:
            connection.invalidate()
        if is_read_only(error):
            self.engine.dispose()  # the others in the pool are to the same server

    def check_writable(self, connection: Connection) -> None:
        """Check that the server takes writes, where nothing was found to do: what is due may be at another one.

        Raises:
            ReadOnlyError: it is read-only.
        """
        if self.dialect.read_only is not None and connection.scalar(self.dialect.read_only) == "on":
            raise ReadOnlyError(
                "the server is read-only, as after a failover, or the address of the database is that of a replica"
            )

    def _open_existing_file(self, _: object, __: object, arguments: list[Any], options: dict[str, Any]) -> None:
        """Connect to a file that exists, where SQLite would create an empty one."""
        if self.file is not None:
            # Older versions of SQLAlchemy pass the same list each time, with what it was set to before.
            arguments[0] = f"{self.file.as_uri()}?mode=rw"
            options["uri"] = True

    def create_file(self) -> None:
        """Create the SQLite file of a URL if it does not exist. Only this does; a misspelt path stays an error."""
        if self.file is not None:
            with suppress(OSError):  # connecting then fails in the same way, with an error of SQLAlchemy
                self.file.touch(mode=0o660)  # before the umask; others may not read it

    def check_file(self, component: str) -> None:
        """Check that the SQLite file of a URL exists, if its folder does, which may be mounted later.

        Args:
            component: ``outbox`` or ``inbox``, whose tables it should have.

        Raises:
            ConfigurationError: it does not.
        """
        if self.file is not None and not self.file.exists() and self.file.parent.is_dir():
            raise ConfigurationError(
                f"database is the file {self.file}, which does not exist: check the path, or call "
                f"{component}.create_tables() once"
            )

    def close(self) -> None:
        """Close the connections, unless the Engine is the user's own."""
        if self._is_own:
            self.engine.dispose()


@contextmanager
def unprepared(driver: Any) -> Iterator[None]:
    """Let psycopg prepare no statement meanwhile: behind a pooler, the next one may run in another session."""
    threshold = getattr(driver, "prepare_threshold", None)
    if threshold is None:
        yield
        return
    driver.prepare_threshold = None
    try:
        yield
    finally:
        driver.prepare_threshold = threshold


def _restore(connection: Connection, sql: str | None) -> None:
    """Reset what limits a session of MySQL has got, for its next transaction, which may be of the user."""
    if sql is None or connection.closed or connection.invalidated:
        return
    try:
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(sql)
    except Exception:  # noqa: BLE001 - whatever it is, the transaction has ended before
        connection.invalidate()


@contextmanager
def _waiting_at_most(driver: Any, seconds: float) -> Iterator[None]:
    """Let a connection of SQLite wait for a lock no longer than this; afterwards as long as before."""
    (before,) = driver.execute("PRAGMA busy_timeout").fetchone()  # SQLAlchemy would begin a transaction
    driver.execute(f"PRAGMA busy_timeout = {min(before, round(seconds * 1000))}")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA busy_timeout = {before}")


def _file_of(engine: Engine) -> Path | None:
    """Return the file of SQLite's standard driver; None for a URI of SQLite, which says itself whether to create it."""
    name = engine.url.database or ""
    is_path = engine.dialect.driver == "pysqlite" and not name.startswith("file:")
    return Path(name).absolute() if is_path else None


def shown_of(url: sa.URL) -> str:
    """Return the file of a database, or its server and name, without a password."""
    if url.get_backend_name() == "sqlite":
        is_memory = url.database in (None, "", ":memory:")
        return "a database in memory" if is_memory else str(Path(str(url.database)).absolute())
    is_wrong = url.render_as_string().count("@") > 1  # an unquoted @ in a password, whose rest is then in the host
    title = dialect_of(url.get_backend_name()).title
    return title if is_wrong else "/".join(filter(None, (url.host, url.database))) or title


def _engine_of(source: object) -> Engine:
    if not isinstance(source, (str, sa.URL)):
        raise ConfigurationError(f"database {_VALID}, not {type(source).__name__}")
    if isinstance(source, str) and (problem := surroundings(source)):
        raise ConfigurationError(f"database {problem}")
    url: sa.URL | None = None
    try:
        url = sa.make_url(source)
        # An @ in a password ends it, and the rest is taken for the host, which errors show.
        is_valid = url.get_backend_name() == "sqlite" or "@" not in f"{url.host}{url.database}"
    except (ArgumentError, ValueError):  # ValueError: of the port, which is a password in a URL without a host
        is_valid = False
    if url is None or not is_valid:
        # Without the URL, which may have a password, in the message and in the frames.
        raise ConfigurationError(f"database {_VALID}; @ and / in its password are written %40 and %2F")
    url = url.set(drivername=_DEFAULT_DRIVERS.get(url.drivername, url.drivername))
    dialect = dialect_of(url.get_backend_name())
    connect_args: dict[str, Any] = {}
    # A server may have ended an idle connection, which SQLAlchemy replaces after a ping that fails.
    options: dict[str, Any] = {"pool_pre_ping": True, "pool_timeout": _POOL_TIMEOUT, "connect_args": connect_args}
    if url.get_driver_name() in ("psycopg", "psycopg2"):
        connect_args.update((name, each) for name, each in _LIBPQ_OPTIONS.items() if name not in url.query)
    if url.get_driver_name() == "psycopg":
        connect_args["prepare_threshold"] = None  # as in ``unprepared``; a URL can only say it as text
    if url.get_driver_name() == "pymysql":
        connect_args.update((name, each) for name, each in _PYMYSQL_OPTIONS.items() if name not in url.query)
    if not dialect.is_server:
        _check_is_a_file(url)
        # Opening a file is cheap, and open connections would be in the way of a fork, or of replacing the file.
        options = {"poolclass": NullPool}
        if url.get_driver_name() == "pysqlite":
            options["connect_args"] = {"timeout": _BUSY_TIMEOUT}
    try:
        # Without the values, which are personal data, in logs of statements and in errors.
        engine = sa.create_engine(url, hide_parameters=True, **options)
    except NoSuchModuleError:
        raise ConfigurationError(f"database names a driver that SQLAlchemy does not know: {url.drivername}") from None
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(str(error.name))
        command = f"python -m pip install {error.name}" if extra is None else installation(extra)
        raise ConfigurationError(f"database needs a driver: {command}") from None
    if url.get_driver_name() == "pymysql":
        event.listen(engine, "connect", _notice_vanished_hosts)
    return engine


def _notice_vanished_hosts(driver: Any, _: object) -> None:
    """Set for PyMySQL what libpq has options for."""
    found = getattr(driver, "_sock", None)
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    values = {"TCP_USER_TIMEOUT": 10_000, "TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
    for name, value in values.items():
        if hasattr(socket, name):  # not every system has each of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _check_is_a_file(url: sa.URL) -> None:
    name = url.database or ""
    if name in ("", ":memory:") or name.startswith("file::memory:") or url.query.get("mode") == "memory":
        raise ConfigurationError(
            "database is in memory, so it ends with its connection: name a file, or pass the Engine of your program"
        )
