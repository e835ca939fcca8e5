"""The tables of a component, and their version."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Column, Index, Integer, MetaData, Table, inspect, update

from followup import ConfigurationError
from followup._store.database import Database
from followup._store.schema import VERSIONS, Schema

pytestmark = pytest.mark.on_all

THINGS = Table("followup_things", MetaData(), Column("id", Integer, primary_key=True), Column("size", Integer))
Index("followup_things_by_size", THINGS.c.size)
OTHERS = Table("followup_others", MetaData(), Column("id", Integer, primary_key=True))

MIGRATIONS = {
    2: ["DROP INDEX IF EXISTS followup_things_by_colour"],
    3: ["CREATE INDEX IF NOT EXISTS followup_things_by_size ON followup_things (size)"],
}
MIGRATIONS_OF_MYSQL = {
    2: ["ALTER TABLE followup_things COMMENT = 'of version 2'"],
    3: ["CREATE INDEX followup_things_by_size ON followup_things (size)"],
}
SCHEMA = Schema("outbox", 3, [THINGS, OTHERS], MIGRATIONS)


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    database = Database(database_url)
    database.create_file()
    if database.dialect.name == "mysql":
        for version, statements in MIGRATIONS_OF_MYSQL.items():
            monkeypatch.setitem(MIGRATIONS, version, statements)
    yield database
    database.close()


def test_creating_is_idempotent(database: Database) -> None:
    SCHEMA.create(database)
    with database.transaction() as connection:
        connection.execute(THINGS.insert(), [{"size": 3}])
    SCHEMA.create(database)
    with database.transaction() as connection:
        SCHEMA.check(connection)
        assert connection.execute(THINGS.select()).all() == [(1, 3)]


def test_the_ddl_creates_the_same_tables(database: Database) -> None:
    for _ in range(2):
        with database.transaction() as connection:
            for statement in SCHEMA.ddl(database.dialect).split(";\n")[:-1]:
                connection.exec_driver_sql(statement)
    with database.transaction() as connection:
        SCHEMA.check(connection)
        connection.execute(THINGS.insert(), [{"size": 3}])


def test_two_processes_may_create_at_the_same_time(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(SCHEMA.create, [database] * 8))


def test_creating_existing_tables_waits_for_no_transaction_on_them(database: Database) -> None:
    SCHEMA.create(database)
    creating = threading.Thread(target=SCHEMA.create, args=(database,), daemon=True)
    with database.transaction() as connection:
        connection.execute(THINGS.insert(), [{"size": 3}])
        creating.start()
        creating.join(timeout=60)
        waits = creating.is_alive()
    creating.join()
    assert not waits


def test_creating_adds_a_table_that_is_missing(database: Database) -> None:
    SCHEMA.create(database)
    for table in (THINGS, OTHERS):
        with database.transaction() as connection:
            table.drop(connection)
        SCHEMA.create(database)
        with database.transaction() as connection:
            connection.execute(table.insert(), [{"id": 3}])


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (None, r"has no tables of the outbox: call outbox\.create_tables\(\) once, or run the SQL of outbox\.ddl\(\)"),
        (0, "version 0, and this release of followup knows version 3 only: install"),
        (4, "version 4, and this release of followup knows version 3 only: install"),
    ],
)
def test_another_version_names_what_to_do(database: Database, found: int | None, advice: str) -> None:
    if found is not None:
        SCHEMA.create(database)
        with database.transaction() as connection:
            connection.execute(update(VERSIONS).values(version=found))
        with pytest.raises(ConfigurationError, match=advice):
            SCHEMA.create(database)
    with pytest.raises(ConfigurationError, match=advice), database.transaction() as connection:
        SCHEMA.check(connection)


@pytest.mark.parametrize("found", [1, 2])
@pytest.mark.parametrize("by_hand", [False, True])
def test_tables_of_an_earlier_version_are_brought_up_to_date(database: Database, found: int, by_hand: bool) -> None:
    SCHEMA.create(database)
    with database.transaction() as connection:
        connection.execute(update(VERSIONS).values(version=found))
        connection.execute(THINGS.insert(), [{"size": 3}])
        next(iter(THINGS.indexes)).drop(connection)
    advice = (
        rf"needs version 3: call outbox\.create_tables\(\) once, or run the SQL of outbox\.ddl\(from_version={found}\)"
    )
    with pytest.raises(ConfigurationError, match=advice), database.transaction() as connection:
        SCHEMA.check(connection)
    if by_hand:
        with database.transaction() as connection:
            for statement in SCHEMA.ddl(database.dialect, from_version=found).split(";\n")[:-1]:
                connection.exec_driver_sql(statement)
    else:
        SCHEMA.create(database)
    with database.transaction() as connection:
        SCHEMA.check(connection)
        indexes = inspect(connection).get_indexes("followup_things")
        assert [each["name"] for each in indexes] == ["followup_things_by_size"]
        assert connection.execute(THINGS.select()).all() == [(1, 3)]
    assert SCHEMA.ddl(database.dialect, from_version=3) == ""
