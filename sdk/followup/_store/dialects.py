"""What SQLite and PostgreSQL spell differently, and how each locks.

The other modules ask a ``Dialect`` instead of knowing one database from another. Which database a connection is to, and
how the driver of a caller tells that it has begun a transaction, stands where that is asked (``places``,
``outbox.connections``).
"""

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy import ColumnElement, Table, TextClause
from sqlalchemy.dialects import postgresql, sqlite

from followup._core.results.errors import ConfigurationError


@attrs.frozen(eq=False, kw_only=True)
class Dialect:
    """A kind of database.

    Attributes:
        name: as SQLAlchemy calls it.
        title: as people call it.
        compiler: compiles statements without a connection.
        now: the current time of the database, in milliseconds since the epoch.
        is_server: whether it is a server, which several machines share, and which keeps connections. Its tables may be
            in a schema, it never gives the number of a row to another row, and an error spoils a transaction.
        returns_rows: whether INSERT and UPDATE can return rows in every version of it.
        insert: makes an INSERT that can say what to do in a conflict.
        pyformat: compiles statements for drivers whose parameters are ``%(name)s``.
        find_schema: finds the schema of our tables by the ``search_path`` of a connection; None without schemas.
        read_only: asks a server whether it takes no writes, to which the answer is then ``on``.
    """

    name: str
    title: str
    compiler: sa.Dialect
    now: ColumnElement[int]
    is_server: bool
    returns_rows: bool
    insert: Callable[[Table], Any]
    pyformat: sa.Dialect
    find_schema: TextClause | None = None
    read_only: TextClause | None = None
    lock_sql: str
    idle_limit_sql: str | None = None
    statement_limit_sql: str | None = None

    def insert_if_absent(self, table: Table, **values: Any) -> sa.Insert:
        """Return an INSERT that does nothing if the row, by its unique key, else its primary key, is there already.

        Any other conflict is an error, such as one of numbers from a sequence that is behind the rows.
        """
        unique = (each.columns for each in table.constraints if isinstance(each, sa.UniqueConstraint))
        key = next(unique, table.primary_key.columns)
        inserting: sa.Insert = self.insert(table).values(**values).on_conflict_do_nothing(index_elements=[*key])
        return inserting

    def lock(self, name: str, schema: str | None) -> TextClause:
        """Return the statement that waits for a lock, and holds it until the end of the transaction.

        Args:
            name: name of the lock.
            schema: the schema of our tables.
        """
        digest = hashlib.blake2b(f"{schema}\0{name}".encode(), digest_size=8, person=b"followup").digest()
        return sa.text(self.lock_sql.format(number=int.from_bytes(digest) >> 1))  # not negative

    def idle_limit(self, seconds: float) -> TextClause | None:
        """Return the statement that lets the server end the transaction once its process is silent for so long.

        The process is frozen then, or behind a broken network. SQLite cannot do so; there, the process has to be ended.
        """
        return None if self.idle_limit_sql is None else sa.text(self.idle_limit_sql.format(round(seconds * 1000)))

    def statement_limit(self, seconds: float) -> TextClause | None:
        """Return the statement that limits all later ones of the transaction to so many seconds."""
        return (
            None
            if self.statement_limit_sql is None
            else sa.text(self.statement_limit_sql.format(round(seconds * 1000)))
        )


SQLITE: Final = Dialect(
    name="sqlite",
    title="SQLite",
    compiler=sqlite.dialect(),
    now=sa.literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)", sa.BigInteger),
    is_server=False,
    returns_rows=False,  # RETURNING came with 3.35
    insert=sqlite.insert,
    pyformat=sqlite.dialect(paramstyle="pyformat"),
    # It has one lock, that of whoever writes. A transaction that reads first cannot write any more once another process
    # has written. So this writes, though nothing.
    lock_sql="DELETE FROM followup_schema WHERE 0",
)

POSTGRESQL: Final = Dialect(
    name="postgresql",
    title="PostgreSQL",
    compiler=postgresql.dialect(),  # type: ignore[no-untyped-call]
    # clock_timestamp(), because now() is the time at which the transaction began.
    now=sa.literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", sa.BigInteger),
    is_server=True,
    returns_rows=True,
    insert=postgresql.insert,
    pyformat=postgresql.dialect(paramstyle="pyformat"),  # type: ignore[no-untyped-call]
    find_schema=sa.text(
        "SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.oid = to_regclass('followup_schema')"
    ),
    read_only=sa.text("SHOW transaction_read_only"),
    # Its numbers belong to one database. It leaves no dead version of a row, over which all later claims would pass
    # while a long transaction is open.
    lock_sql="SELECT pg_advisory_xact_lock({number})",
    idle_limit_sql="SET LOCAL idle_in_transaction_session_timeout = {}",
    statement_limit_sql="SET LOCAL statement_timeout = {}",
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({each.name: each for each in (SQLITE, POSTGRESQL)})


def dialect_of(name: str) -> Dialect:
    """Return a supported dialect.

    Raises:
        ConfigurationError: it is another database.
    """
    if name not in DIALECTS:
        titles = " or ".join(each.title for each in DIALECTS.values())
        raise ConfigurationError(f"database must be {titles}, not {name}")
    return DIALECTS[name]
