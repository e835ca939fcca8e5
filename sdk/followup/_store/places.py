"""Which database a connection is to, compared with that of a store, and in which schema the tables are.

What is recorded in another database than that of the relay is never sent. URLs cannot be compared: one database has
many, by links, sockets, poolers and host names. So both databases are asked.
"""

import logging
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from weakref import WeakSet

import attrs
from sqlalchemy import Engine, TextClause, text

from followup._store.database import Database
from followup._store.dialects import MYSQL, SQLITE, Dialect
from followup._store.execution import Execution, Parameters, Rows, Statement, reason_of, run, savepoint

_FILES = text("PRAGMA database_list")
_SERVER = text(
    "SELECT current_database(), current_setting('port'), host(inet_server_addr()), CASE WHEN NOT pg_is_in_recovery() "
    "THEN CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) * 1000000 AS BIGINT) END"
)
# MySQL has server_uuid, MariaDB server_uid.
_VARIABLES = text(
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
    "('server_uuid', 'server_uid', 'hostname', 'port', 'datadir', 'group_replication_group_name')"
)
_CLUSTER = text("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_state_uuid'")


@attrs.frozen
class Place:
    """A database, as it describes itself.

    Attributes:
        name: the file of SQLite, empty for a database in memory; the name of a database on a server.
        server: the port of a server, and when it was started, each None if it is not known. That of a standby does not
            count, because it may take over. The address is not among them, because a server has several. Of MySQL, what
            identifies the server or its cluster, each of whose servers may take over.
        shown: what a person recognizes it by.
    """

    name: str
    server: tuple[str | None, int | None] = (None, None)
    shown: str = ""

    def is_same(self, other: "Place") -> bool:
        """Return whether both are one database; two in memory are not known to be."""
        if self.server == other.server == (None, None):
            # The other one may be a link to this one, and may be gone by now.
            with suppress(OSError):
                return bool(self.name) and (self.name == other.name or Path(self.name).samefile(other.name))
            return False
        known = [each for each in zip(self.server, other.server, strict=True) if None not in each]
        return self.name == other.name and all(mine == theirs for mine, theirs in known)


async def place_of(execute: Execution) -> Place:
    """Ask a database what it is."""
    if not execute.dialect.is_server:
        file = next(path for _, name, path in await execute(_FILES) if name == "main")
        return Place(file, shown=file or "a database in memory")
    if execute.dialect is MYSQL:
        return await _place_of_mysql(execute)
    ((name, port, host, started),) = await execute(_SERVER)
    server = f"server {host}:{port}" if host else f"server at port {port}"
    return Place(name, (port, started), f"the database {name} of the PostgreSQL {server}")


async def _place_of_mysql(execute: Execution) -> Place:
    ((name,),) = await execute(text("SELECT DATABASE()"))
    known: dict[str, str] = {each[0]: each[1] for each in await execute(_VARIABLES)}
    clusters = [known.get("group_replication_group_name"), *(each[1] for each in await execute(_CLUSTER))]
    server = "; ".join(filter(None, clusters)) or "; ".join(map(str, sorted(known.items())))
    shown = f"the database {name} of the MySQL server {known['hostname']} with the data in {known['datadir']}"
    return Place(name or "", (server, None), shown)


async def schema_on(execute: Execution, database: Database) -> str | None:
    """Return the schema of a store's tables, for a connection of the user's; None if it finds none, or in SQLite.

    It is the one in which the store has found them. Before, the connection finds them by its ``search_path`` or, if
    that is set to a schema without them for this transaction alone, by the one of its session.
    """
    find_schema, search_path = execute.dialect.find_schema, execute.dialect.search_path
    if database.schema is not None or find_schema is None:
        return database.schema
    rows = await execute(find_schema)
    if not rows and search_path is not None:
        async with savepoint(execute, is_kept=False):  # then the user's search_path holds again
            await execute(text(search_path.format("DEFAULT")))
            rows = await execute(find_schema)
        if rows:
            database.use_schema(rows[0][0])
    return rows[0][0] if rows else None


class Comparison:
    """Compares the database of a store with those of connections.

    A connection is asked once, and one of sqlite3 each time, which is cheap.

    Args:
        database: the database of the store.
        component: ``outbox`` or ``inbox``.
    """

    def __init__(self, database: Database, component: str) -> None:
        self._database = database
        self._component = component
        self._own: Place | None = None
        self._same: WeakSet[Any] = WeakSet()
        self._is_unknown = False
        self._is_marked = False
        self._marker = secrets.token_hex(16)

    def is_of(self, engine: Engine) -> bool:
        """Return whether this Engine has the connections of the store, so that there is nothing to compare."""
        is_ours = engine.pool is self._database.engine.pool
        if is_ours and self._database.dialect.find_schema is not None and self._database.schema is None:
            self.ask()  # the caller's search_path may lead to the tables of another store
        return is_ours

    def is_asked(self) -> bool:
        """Return whether nothing has to be connected for ``check``."""
        return self._own is not None or self._is_unknown or not self._database.dialect.is_server

    def ask(self) -> Place | None:
        """Return the place of the store, which is asked once; None if it cannot be reached now."""
        # Once, and not again after a failure: each record would wait for a server that does not respond.
        if self._own is None and not self._is_unknown:
            try:
                self._own = self._asked()
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller's own database works
                self._is_unknown = True
                logging.getLogger(f"followup.{self._component}").warning(
                    "the %s cannot tell whether connections are to its own database, %s, which it cannot reach: %s",
                    self._component,
                    self._database.shown,
                    reason_of(error),
                )
        return self._own

    def _asked(self) -> Place:
        if self._database.file is not None:
            return Place(str(self._database.file), shown=str(self._database.file))
        with _new_connection(self._database.engine) as connection:
            execute = _executing(connection.cursor(), self._database.dialect)
            if execute.dialect.find_schema is not None and (found := run(execute(execute.dialect.find_schema))):
                # The callers' connections may find others first, of another store.
                self._database.use_schema(found[0][0])
            return run(place_of(execute))

    async def check(self, driver: Any, execute: Execution) -> None:
        """Check that a connection is to the database of the store.

        Args:
            driver: the connection of its driver.
            execute: executes a statement on it.

        Raises:
            ValueError: it is to another one; the message names both.
        """
        if isinstance(driver, sqlite3.Connection):
            execute = _executing(sqlite3.Cursor(driver), SQLITE)  # past the user's own counters and logs of statements
        elif driver in self._same:
            return
        own = self.ask()
        if own is None:
            return
        theirs = await place_of(execute)
        if execute.dialect is self._database.dialect:
            if own.is_same(theirs) or await self._is_same_memory(own, theirs, driver, execute):
                with suppress(TypeError):  # one of sqlite3 cannot be remembered
                    self._same.add(driver)
                return
            # The name of a server may lead to another one since.
            self._own = None
            own = self.ask()
            if own is None or own.is_same(theirs):
                return
        other = " of another connection" if not execute.dialect.is_server else " on another server"
        kind = "" if own.shown != theirs.shown else other
        raise ValueError(
            f"connection is not to the database of the {self._component}: it is to {theirs.shown}{kind}, and the "
            f"{self._component} is in {own.shown}"
        )

    async def _is_same_memory(self, own: Place, theirs: Place, driver: Any, execute: Execution) -> bool:
        """Return whether two databases in memory are one, because they share a connection or a cache."""
        if own.name or theirs.name:
            return False
        if driver is self._database.driver:
            return True
        # What one of them commits, the other one sees.
        if not self._is_marked:
            with _new_connection(self._database.engine) as connection:
                if connection is driver or connection.in_transaction:
                    return True  # the Engine's creator returns one that it has; while that is in use, nobody can know
                try:
                    connection.execute(f"INSERT INTO followup_schema VALUES ('{self._marker}', 0)")  # noqa: S608
                    connection.commit()
                except sqlite3.OperationalError as error:
                    return "locked" in str(error)  # in all likelihood by the caller's own transaction
            self._is_marked = True
        found: Rows = []
        with suppress(Exception):  # it has no such table
            found = await execute(text(f"SELECT 1 FROM followup_schema WHERE component = '{self._marker}'"))  # noqa: S608
        return bool(found)


@contextmanager
def _new_connection(engine: Engine) -> Iterator[Any]:
    """Yield a connection of the driver that is not of the Engine's pool, all of whose connections may be in use.

    It is closed, unless the Engine's creator returns one that it has.
    """
    connection = _detached(engine)
    if engine.dialect.name == SQLITE.name:
        another = _detached(engine)
        if another is connection:
            yield connection
            return
        another.close()
    with closing(connection):
        yield connection


def _detached(engine: Engine) -> Any:
    # If it went back to a pool, it would be rolled back, and with it what others do on it.
    fairy = engine.pool.recreate().connect()
    connection = fairy.dbapi_connection
    fairy.detach()
    return connection


def _executing(cursor: Any, dialect: Dialect) -> Execution:
    async def execute(statement: Statement, _: Parameters, __: str | None) -> Rows:
        cursor.execute(cast("TextClause", statement).text)  # to compile it takes longer than to execute it
        rows: Rows = cursor.fetchall() if cursor.description else []
        return rows

    return Execution(execute, dialect)
