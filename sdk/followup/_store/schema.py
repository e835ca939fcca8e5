"""The tables of a component, outbox or inbox: what both have, their DDL, and the version that says who made them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from followup._core.errors import ConfigurationError
from followup._store.database import Database, shown_of
from followup._store.dialects import LONG_TEXT, MYSQL, POSTGRESQL, Dialect, exact_text
from followup._store.execution import has_table, number_of

WAITING: Final = "waiting"
"""The event is worked on once it is due and no earlier event of its subject or ref comes first."""

IN_FLIGHT: Final = "in_flight"
"""A process has claimed the event until its lease ends."""

DEAD: Final = "dead"
"""The event was given up: the service rejected it, or its handler failed too often."""

LONGEST_TEXT = 255
"""Characters of a text that is part of an index, which limits its length."""

LONGEST_REASON = 10_000
"""Characters of a reason that are stored."""


def checked_text(value: object, path: str) -> str:
    """Check a text that is a key in the tables.

    Raises:
        ValueError: it is not a string of 1 to 255 characters, or has a character that PostgreSQL cannot store.
    """
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
        raise ValueError(f"{path} must be a string of 1 to {LONGEST_TEXT} characters")
    if "\0" in value:
        raise ValueError(f"{path} must not contain the character U+0000")
    if not value.isascii() and value != value.encode(errors="ignore").decode():
        raise ValueError(f"{path} is not valid Unicode: it contains a lone surrogate")
    return value


_ESCAPED: Final = "json:"


def as_ascii(text: str) -> str:
    """Return a text in ASCII, which every encoding of a database has; most texts stay as they are."""
    return text if text.isascii() and not text.startswith(_ESCAPED) else _ESCAPED + json.dumps(text)


def from_ascii(stored: str) -> str:
    """Return the text of which ``as_ascii`` has returned this."""
    return str(json.loads(stored.removeprefix(_ESCAPED))) if stored.startswith(_ESCAPED) else stored


def event_table(name: str, *own: sa.Column[Any]) -> sa.Table:
    """Return the table of a component's events, with columns of its own besides those of every claim.

    The names of columns that end in ``_at`` are milliseconds since the epoch.
    """
    return sa.Table(
        name,
        sa.MetaData(),
        # The order in which events were stored.
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("name", exact_text(LONGEST_TEXT), nullable=False),
        sa.Column("event_id", exact_text(LONGEST_TEXT), nullable=False),
        *own,
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("lease_token", sa.String(32)),
        sa.Column("lease_ends_at", sa.BigInteger),
        sa.Column("error", LONG_TEXT),
        sa.UniqueConstraint("name", "event_id", name=f"{name}_event_id"),
        sqlite_autoincrement=True,  # otherwise it gives the number of a row that was removed to another one
    )


VERSIONS = sa.Table(
    "followup_schema",
    sa.MetaData(),
    sa.Column("component", sa.String(32), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

SALTS = sa.Table(
    "followup_salts",
    sa.MetaData(),
    sa.Column("component", sa.String(32), primary_key=True),
    sa.Column("name", exact_text(LONGEST_TEXT), primary_key=True),
    # Of the hashes of subjects, encrypted.
    sa.Column("salt", LONG_TEXT, nullable=False),
)


@contextmanager
def _alone(connection: sa.Connection, dialect: Dialect) -> Iterator[None]:
    """Let two processes create the tables one after the other, since they would fail otherwise."""
    if dialect is POSTGRESQL:
        connection.execute(dialect.lock("creation", None))
    if dialect is not MYSQL:
        yield
        return
    # A lock of the transaction would end with the first statement that commits.
    connection.exec_driver_sql(f"SELECT GET_LOCK({_CREATION}, 60)")
    try:
        yield
    finally:
        with suppress(SQLAlchemyError):  # the session is lost, and the lock with it
            connection.exec_driver_sql(f"SELECT RELEASE_LOCK({_CREATION})")


# 64 characters at most, the longest name of such a lock.
_CREATION = "CONCAT('followup ', LEFT(DATABASE(), 55))"


@attrs.frozen
class Schema:
    """The tables of a component.

    Attributes:
        component: ``outbox`` or ``inbox``.
        version: version of its tables, from 1; a release that changes them has a higher one.
        tables: its own tables, besides the one that all components share.
        migrations: by version, the statements that make its tables from those of the version before. Each can be run
            again, because SQLite and MySQL commit it by itself; in MySQL, it may say that it was run before.
    """

    component: str
    version: int
    tables: Sequence[sa.Table]
    migrations: Mapping[int, Sequence[str]] = attrs.field(factory=dict)

    def lock_of(self, name: str) -> str:
        """Return the name of the lock of all claims of the outbox or inbox with this name."""
        return f"{self.component}:{name}"

    def ddl(self, dialect: Dialect, from_version: int | None = None) -> str:
        """Return the SQL that makes the tables, each statement ending with a semicolon. It can be run again.

        Args:
            dialect: the database.
            from_version: version of the tables that are there; None if there are none.

        Raises:
            ValueError: there is no such version.
        """
        if from_version is None:
            statements = self._statements(dialect)
        elif isinstance(from_version, bool) or from_version not in range(1, self.version + 1):
            raise ValueError(f"from_version must be a version of the {self.component}'s tables, 1 to {self.version}")
        else:
            statements = self._changes(from_version)
        return "".join(f"{statement};\n" for statement in statements)

    def create(self, database: Database) -> None:
        """Create the tables that do not exist yet, and bring those of an earlier version up to date.

        Raises:
            ConfigurationError: the tables exist, with a version that this release does not know.
        """
        database.create_file()
        with database.transaction() as connection, _alone(connection, database.dialect):
            database.find_tables(connection)
            if database.schema is not None and database.dialect.search_path is not None:
                # All components share tables, which may be in another schema than the one for new tables.
                quoted = connection.dialect.identifier_preparer.quote(database.schema)
                connection.execute(sa.text(database.dialect.search_path.format(quoted)))
            found = self.found_version(connection)
            if found is not None:
                for statement in self._changes(found):
                    try:
                        connection.exec_driver_sql(statement)
                    except DBAPIError as error:
                        if number_of(error) not in database.dialect.done_before:
                            raise
                self.check(connection)
                if all(has_table(connection, table) for table in self.tables):
                    return  # the statements would wait for every transaction on the tables, and could deadlock with it
            for statement in self._statements(database.dialect):
                connection.exec_driver_sql(statement)
            database.find_tables(connection)

    def found_version(self, connection: sa.Connection) -> int | None:
        """Return the version of the tables in a database; None if there are none."""
        if not has_table(connection, VERSIONS):
            return None
        version: int | None = connection.execute(self.version_query).scalar_one_or_none()
        return version

    def check(self, connection: sa.Connection) -> None:
        """Check that the tables exist and have the version of this release.

        Raises:
            ConfigurationError: they do not; the message says what to do.
        """
        self.check_version(self.found_version(connection), shown_of(connection.engine.url))

    def check_version(self, found: int | None, place: str) -> None:
        """Check the version found in a database, of which a person knows the place; None if there is none.

        Raises:
            ConfigurationError: it is not that of this release.
        """
        if found == self.version:
            return
        create = f"call {self.component}.create_tables() once, or run the SQL of {self.component}.ddl"
        if found is None:
            raise ConfigurationError(f"the database has no tables of the {self.component}: {create}(). It is {place}")
        versions = f"the {self.component}'s tables have version {found}, and this release of followup"
        if 1 <= found < self.version:
            raise ConfigurationError(f"{versions} needs version {self.version}: {create}(from_version={found})")
        newer = "install the release that made them, or a later one"
        raise ConfigurationError(f"{versions} knows version {self.version} only: {newer}")

    @property
    def version_query(self) -> sa.Select[Any]:
        """Reads the version."""
        return sa.select(VERSIONS.c.version).where(VERSIONS.c.component == self.component)

    def _changes(self, found: int) -> Iterator[str]:
        for version in range(max(found, 1) + 1, self.version + 1):
            yield from self.migrations[version]
            yield (
                f"UPDATE {VERSIONS.name} SET version = {version} "  # noqa: S608 - constants
                f"WHERE component = '{self.component}' AND version = {version - 1}"
            )

    def _statements(self, dialect: Dialect) -> Iterator[str]:
        for table in (VERSIONS, *self.tables):
            yield from dialect.create(table)
        version = dialect.insert_if_absent(VERSIONS, component=self.component, version=self.version)
        # With its values in it, because SQL in a file has no parameters.
        yield str(version.compile(dialect=dialect.compiler, compile_kwargs={"literal_binds": True})).strip()
