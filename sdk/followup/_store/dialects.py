"""What SQLite, PostgreSQL and MySQL spell differently, their types, and how each locks. MariaDB is taken for a MySQL.

The other modules ask a ``Dialect`` instead of knowing one database from another. Which database a connection is to, and
how the driver of a caller tells that it has begun a transaction, stands where that is asked (``places``,
``outbox.connections``).
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy import ColumnElement, Table, TextClause
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.types import TypeEngine, UserDefinedType

from followup._core.errors import ConfigurationError

_MYSQL = ("mysql", "mariadb")
"""The names of SQLAlchemy."""


class _Utf8(UserDefinedType[str]):
    """Text as its bytes in UTF-8.

    So it is compared byte by byte: MySQL and MariaDB have no collation in common that tells "a" from "a " too. In
    hexadecimal, it passes through connections in latin1 or utf8mb3, and through drivers that cannot pass bytes.
    """

    cache_ok = True

    def __init__(self, length: int) -> None:
        self.length = length

    def get_col_spec(self, **_: object) -> str:
        return f"VARBINARY({self.length})"

    def bind_processor(self, dialect: sa.Dialect) -> Any:  # noqa: ARG002
        return lambda value: value.encode().hex()

    def bind_expression(self, bindvalue: sa.BindParameter[str]) -> ColumnElement[Any]:
        return sa.func.UNHEX(bindvalue)

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:  # noqa: ARG002
        return lambda value: value.decode()


def exact_text(length: int) -> TypeEngine[str]:
    """Return the type of a text of so many characters at most, which may be in an index."""
    return sa.String(length).with_variant(_Utf8(4 * length), *_MYSQL)


def short_bytes(length: int) -> TypeEngine[bytes]:
    """Return the type of so many bytes at most, which may be in an index."""
    return sa.LargeBinary().with_variant(mysql.VARBINARY(length), *_MYSQL)


LONG_TEXT: Final = sa.Text().with_variant(mysql.LONGTEXT(), *_MYSQL)  # its TEXT and BLOB end after 64 KiB
LONG_BYTES: Final = sa.LargeBinary().with_variant(mysql.LONGBLOB(), *_MYSQL)


@attrs.frozen(eq=False, kw_only=True)
class Dialect:
    """A kind of database.

    Attributes:
        name: as SQLAlchemy calls it.
        title: as people call it.
        compiler: compiles statements without a connection, for drivers whose parameters are ``%(name)s``.
        now: the current time of the database, in milliseconds since the epoch.
        is_server: whether it is a server, which several machines share, and which keeps connections. Its tables may be
            in a schema, it never gives the number of a row to another row, and an error may spoil a transaction.
        insert: makes an INSERT that can say what to do in a conflict.
        changed: reads how many rows the last statement has changed; None where UPDATE can return rows.
        find_schema: finds the schema of our tables that a connection uses; None without schemas.
        search_path: uses a schema for the rest of a transaction; None where a connection uses one at a time.
        read_only: asks a server whether it takes no writes, to which the answer is then ``on``.
        table_options: ends a CREATE TABLE, which then has the indexes in it.
        restore: resets the limits below; None where they end with the transaction.
        repeatable: numbers of the errors after which a transaction can be repeated, as a whole.
        done_before: numbers of the errors of a change of tables that was made before.
    """

    name: str
    title: str
    compiler: sa.Dialect
    now: ColumnElement[int]
    is_server: bool
    insert: Callable[[Any], Any]
    lock_of: Callable[[int], TextClause | sa.Insert]
    changed: TextClause | None = None
    find_schema: TextClause | None = None
    search_path: str | None = None
    read_only: TextClause | None = None
    table_options: str = ""
    restore: str | None = None
    repeatable: frozenset[int] = frozenset()
    done_before: frozenset[int] = frozenset()
    idle_limit_sql: str | None = None
    statement_limit_sql: str | None = None

    def insert_if_absent(self, table: Table, **values: Any) -> sa.Insert:
        """Return an INSERT that does nothing if the row, by its unique key, else its primary key, is there already.

        Any other conflict is an error, such as one of numbers from a sequence that is behind the rows.
        """
        unique = (each.columns for each in table.constraints if isinstance(each, sa.UniqueConstraint))
        key = next(unique, table.primary_key.columns)
        inserting: Any = self.insert(table)
        if not isinstance(inserting, mysql.Insert):
            conditional: sa.Insert = inserting.values(**values).on_conflict_do_nothing(index_elements=[*key])
            return conditional
        # Not INSERT IGNORE, which turns errors of the data into warnings, too.
        column = next(iter(key))
        unchanged: ColumnElement[Any] = column
        if table.autoincrement_column is not None:  # a row that has its number, but another key, is an error
            is_same = sa.and_(*(each == values[each.name] for each in key))
            unchanged = sa.func.IF(is_same, column, sa.literal_column("(SELECT 1 UNION SELECT 2)"))
        return inserting.values(**values).on_duplicate_key_update({column.name: unchanged})

    def upsert(self, table: Table, *names: str) -> sa.Insert:
        """Return an INSERT that sets these columns if the row, by its primary key, is there already."""
        inserting: Any = self.insert(table)
        if isinstance(inserting, mysql.Insert):
            return inserting.on_duplicate_key_update({name: inserting.inserted[name] for name in names})
        new = {name: inserting.excluded[name] for name in names}
        updating: sa.Insert = inserting.on_conflict_do_update(index_elements=[*table.primary_key.columns], set_=new)
        return updating

    def create(self, table: Table) -> Iterator[str]:
        """Yield the statements that create a table and its indexes, unless they are there."""
        creating = str(CreateTable(table, if_not_exists=True).compile(dialect=self.compiler)).strip()
        indexes = sorted(table.indexes, key=lambda each: str(each.name))
        if self.table_options:  # MySQL has no CREATE INDEX IF NOT EXISTS
            quote = self.compiler.identifier_preparer.quote
            keys = (f"KEY {each.name} ({', '.join(quote(column.name) for column in each.columns)})" for each in indexes)
            creating = ", \n\t".join([creating.removesuffix(")").rstrip(), *keys]) + f"\n){self.table_options}"
            indexes = []
        yield creating
        for each in indexes:
            yield str(CreateIndex(each, if_not_exists=True).compile(dialect=self.compiler)).strip()

    def lock(self, name: str, schema: str | None) -> TextClause | sa.Insert:
        """Return the statement that waits for a lock, and holds it until the end of the transaction.

        Args:
            name: name of the lock.
            schema: the schema of our tables.
        """
        digest = hashlib.blake2b(f"{schema}\0{name}".encode(), digest_size=8, person=b"followup").digest()
        return self.lock_of(int.from_bytes(digest) >> 1)  # not negative

    def idle_limit(self, seconds: float) -> TextClause | None:
        """Return the statement that lets the server end the transaction once its process is silent for so long.

        The process is frozen then, or behind a broken network. SQLite cannot do so; there, the process has to be ended.
        """
        return self._limit(self.idle_limit_sql, seconds)

    def statement_limit(self, seconds: float) -> TextClause | None:
        """Return the statement that limits all later ones of the transaction to so many seconds."""
        return self._limit(self.statement_limit_sql, seconds)

    def _limit(self, sql: str | None, seconds: float) -> TextClause | None:
        units = {"seconds": math.ceil(seconds), "milliseconds": math.ceil(seconds * 1000)}
        return None if sql is None else sa.text(sql.format(**units))


SQLITE: Final = Dialect(
    name="sqlite",
    title="SQLite",
    compiler=sqlite.dialect(paramstyle="pyformat"),
    # 2440587.5 is the Julian day of the epoch. unixepoch('subsec') came with SQLite 3.42.
    now=sa.literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)", sa.BigInteger),
    is_server=False,
    changed=sa.text("SELECT changes()"),  # RETURNING came with 3.35
    insert=sqlite.insert,
    # It has one lock, that of whoever writes. A transaction that reads first cannot write any more once another process
    # has written. So this writes, though nothing.
    lock_of=lambda _: sa.text("DELETE FROM followup_schema WHERE 0"),
)

POSTGRESQL: Final = Dialect(
    name="postgresql",
    title="PostgreSQL",
    compiler=postgresql.dialect(paramstyle="pyformat"),  # type: ignore[no-untyped-call]
    # clock_timestamp(), because now() is the time at which the transaction began.
    now=sa.literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", sa.BigInteger),
    is_server=True,
    insert=postgresql.insert,
    # to_regclass() follows the search_path of the connection, and is null where that leads to no such table.
    find_schema=sa.text(
        "SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.oid = to_regclass('followup_schema')"
    ),
    search_path="SET LOCAL search_path = {}",
    read_only=sa.text("SHOW transaction_read_only"),
    # Its numbers belong to one database. It leaves no dead version of a row, over which all later claims would pass
    # while a long transaction is open.
    lock_of=lambda number: sa.text(f"SELECT pg_advisory_xact_lock({number})"),
    idle_limit_sql="SET LOCAL idle_in_transaction_session_timeout = {milliseconds}",
    statement_limit_sql="SET LOCAL statement_timeout = {milliseconds}",
)

_LOCKS = sa.table("followup_schema", sa.column("component"), sa.column("version"))


def _lock_of_mysql(number: int) -> sa.Insert:
    # A row, because the server itself unlocks it at the end of the transaction, however that ends. GET_LOCK belongs to
    # the session: whoever is interrupted keeps it in the pool, a proxy may run the next statement in another session,
    # and a cluster does not have it. The INSERT locks the row whether it is there or not; one that is there stays as it
    # is, so that no dead version is left of it.
    locking = mysql.insert(_LOCKS).values(component=f"lock:{number}", version=0)
    return locking.on_duplicate_key_update(version=_LOCKS.c.version)


MYSQL: Final = Dialect(
    name="mysql",
    title="MySQL",
    compiler=mysql.dialect(paramstyle="pyformat"),
    # Of the statement. In UTC, because an hour of the session's time zone may occur twice.
    now=sa.literal_column("(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)", sa.BigInteger),
    is_server=True,
    insert=mysql.insert,
    lock_of=_lock_of_mysql,
    changed=sa.text("SELECT ROW_COUNT()"),
    find_schema=sa.text(
        "SELECT table_schema FROM information_schema.tables "
        "WHERE table_schema = DATABASE() AND table_name = 'followup_schema'"
    ),
    read_only=sa.text("SELECT IF(CONCAT(@@global.read_only) IN ('0', 'OFF'), 'off', 'on')"),
    # DYNAMIC, because a key of 255 characters has 1,020 bytes, and those of COMPACT end at 767.
    table_options=" ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC",
    repeatable=frozenset({1205, 1213}),  # a lock wait that took too long, and a deadlock
    done_before=frozenset({1060, 1061, 1091}),  # a column or index that is there, or that is not there to be dropped
    # Of the session, whose own ones are kept in variables meanwhile. Only MariaDB has one of idle transactions alone.
    idle_limit_sql="SET @followup_idle = IFNULL(@followup_idle, @@wait_timeout), SESSION wait_timeout = {seconds}",
    # MySQL limits the time of SELECTs only, so this limits the waits for locks.
    statement_limit_sql=(
        "SET @followup_wait = IFNULL(@followup_wait, @@innodb_lock_wait_timeout), "
        "SESSION innodb_lock_wait_timeout = {seconds}"
    ),
    restore=(
        "SET SESSION wait_timeout = CAST(IFNULL(@followup_idle, @@wait_timeout) AS UNSIGNED), "
        "SESSION innodb_lock_wait_timeout = CAST(IFNULL(@followup_wait, @@innodb_lock_wait_timeout) AS UNSIGNED), "
        "@followup_idle = NULL, @followup_wait = NULL"
    ),
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {"sqlite": SQLITE, "postgresql": POSTGRESQL, **dict.fromkeys(_MYSQL, MYSQL)}
)


def dialect_of(name: str) -> Dialect:
    """Return a supported dialect.

    Raises:
        ConfigurationError: it is another database.
    """
    if name not in DIALECTS:
        raise ConfigurationError(f"database must be SQLite, PostgreSQL, MySQL or MariaDB, not {name}")
    return DIALECTS[name]
