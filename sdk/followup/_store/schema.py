"""The tables of a component, outbox or inbox: their DDL, and the version that says which release made them."""

from collections.abc import Iterator, Sequence

import attrs
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from followup._errors import ConfigurationError
from followup._store import locks
from followup._store.database import Database
from followup._store.statements import insert_if_absent

metadata = MetaData()

VERSIONS = Table(
    "followup_schema",
    metadata,
    Column("component", String(32), primary_key=True),
    Column("version", Integer, nullable=False),
)

_CREATION_LOCK = 0x666F6C6C  # any number that no other program is likely to use

_DIALECTS: dict[str, Dialect] = {
    "postgresql": postgresql.dialect(),  # type: ignore[no-untyped-call]
    "sqlite": sqlite.dialect(),
}


@attrs.frozen
class Schema:
    """The tables of a component.

    Attributes:
        component: ``outbox`` or ``inbox``.
        version: version of its tables; a release that changes them has a higher one.
        tables: its own tables, besides the two that all components share.
    """

    component: str
    version: int
    tables: Sequence[Table]

    def ddl(self, dialect: str) -> str:
        """Return the SQL that creates the tables, each statement ending with a semicolon. It can be run again."""
        return "".join(f"{statement};\n" for statement in self._statements(dialect))

    def create(self, database: Database) -> None:
        """Create the tables that do not exist yet.

        Raises:
            ConfigurationError: the tables exist, with another version.
        """
        database.create_file()
        with database.transaction() as connection:
            if database.dialect == "postgresql":
                # Two processes that create the same table at the same time would fail otherwise.
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
            inspector = inspect(connection)
            if inspector.has_table(VERSIONS.name) and self.found_version(connection) is not None:
                self.check(connection)
                if all(inspector.has_table(table.name) for table in self.tables):
                    return  # the statements would wait for every transaction on the tables, and could deadlock with it
            for statement in self._statements(database.dialect):
                connection.exec_driver_sql(statement)

    def found_version(self, connection: Connection) -> int | None:
        """Return the version of the component's tables in the database; None if it has not been created."""
        return connection.execute(
            select(VERSIONS.c.version).where(VERSIONS.c.component == self.component)
        ).scalar_one_or_none()

    def check(self, connection: Connection) -> None:
        """Check that the tables exist and have the version of this release.

        Raises:
            ConfigurationError: they do not; the message says what to do.
        """
        found = self.found_version(connection) if inspect(connection).has_table(VERSIONS.name) else None
        self.check_version(found)

    def check_version(self, found: int | None) -> None:
        """Check the version found in a database; None if there is none.

        Raises:
            ConfigurationError: it is not that of this release.
        """
        if found == self.version:
            return
        ddl = f"followup {self.component} ddl"
        if found is None:
            raise ConfigurationError(
                f"the database has no tables of the {self.component}: call create_tables() once, or run the SQL of "
                f"{ddl!r}"
            )
        if found < self.version:
            raise ConfigurationError(
                f"the {self.component}'s tables have version {found}, and this release of followup needs version "
                f"{self.version}: run the SQL of {ddl!r}"
            )
        raise ConfigurationError(
            f"the {self.component}'s tables have version {found}, and this release of followup knows version "
            f"{self.version} only: install the release that made them, or a later one"
        )

    def version_query(self) -> str:
        """Return the SQL that reads the version, for a connection that is not SQLAlchemy's."""
        return f"SELECT version FROM {VERSIONS.name} WHERE component = '{self.component}'"  # noqa: S608 - a constant

    def _statements(self, dialect: str) -> Iterator[str]:
        compiler = _DIALECTS[dialect]
        for table in (VERSIONS, locks.LOCKS, *self.tables):
            yield str(CreateTable(table, if_not_exists=True).compile(dialect=compiler)).strip()
            for index in sorted(table.indexes, key=lambda each: str(each.name)):
                yield str(CreateIndex(index, if_not_exists=True).compile(dialect=compiler)).strip()
        version = insert_if_absent(VERSIONS, dialect, component=self.component, version=self.version)
        yield str(version.compile(dialect=compiler, compile_kwargs={"literal_binds": True})).strip()
