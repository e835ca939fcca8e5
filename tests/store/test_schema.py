"""The tables of a component, and their version."""

import threading

import pytest
from sqlalchemy import Column, Index, Integer, MetaData, Table, update

from followup import ConfigurationError
from followup._store.database import Database
from followup._store.schema import VERSIONS, Schema

THINGS = Table("followup_things", MetaData(), Column("id", Integer, primary_key=True), Column("size", Integer))
Index("followup_things_by_size", THINGS.c.size)

SCHEMA = Schema("outbox", 2, [THINGS])


def test_creating_is_idempotent(database_url: str) -> None:
    database = Database(database_url)
    SCHEMA.create(database)
    with database.transaction() as connection:
        connection.execute(THINGS.insert(), [{"size": 3}])
    SCHEMA.create(database)
    with database.transaction() as connection:
        SCHEMA.check(connection)
        assert connection.execute(THINGS.select()).all() == [(1, 3)]
    database.close()


def test_the_ddl_creates_the_same_tables(database_url: str) -> None:
    database = Database(database_url)
    database.create_file()
    for _ in range(2):
        with database.transaction() as connection:
            for statement in SCHEMA.ddl(database.dialect).split(";\n")[:-1]:
                connection.exec_driver_sql(statement)
    with database.transaction() as connection:
        SCHEMA.check(connection)
        connection.execute(THINGS.insert(), [{"size": 3}])
    database.close()


def test_two_processes_may_create_at_the_same_time(database_url: str) -> None:
    database = Database(database_url)
    failures: list[Exception] = []

    def create() -> None:
        try:
            SCHEMA.create(database)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    database.close()


def test_creating_existing_tables_waits_for_no_transaction_on_them(database_url: str) -> None:
    database = Database(database_url)
    SCHEMA.create(database)
    creating = threading.Thread(target=SCHEMA.create, args=(database,), daemon=True)
    with database.transaction() as connection:
        connection.execute(THINGS.insert(), [{"size": 3}])
        creating.start()
        creating.join(timeout=60)
        waits = creating.is_alive()
    creating.join()
    assert not waits
    database.close()


def test_creating_adds_a_table_that_is_missing(database_url: str) -> None:
    database = Database(database_url)
    SCHEMA.create(database)
    with database.transaction() as connection:
        THINGS.drop(connection)
    SCHEMA.create(database)
    with database.transaction() as connection:
        connection.execute(THINGS.insert(), [{"size": 3}])
    database.close()


def test_two_components_share_a_database(database_url: str) -> None:
    database = Database(database_url)
    other = Schema("inbox", 7, [])
    SCHEMA.create(database)
    other.create(database)
    with database.transaction() as connection:
        SCHEMA.check(connection)
        other.check(connection)
    database.close()


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (None, "has no tables of the outbox: call create_tables"),
        (1, "version 1, and this release of followup needs version 2: run the SQL of 'followup outbox ddl'"),
        (3, "version 3, and this release of followup knows version 2 only: install"),
    ],
)
def test_another_version_names_what_to_do(database_url: str, found: int | None, advice: str) -> None:
    database = Database(database_url)
    database.create_file()
    if found is not None:
        SCHEMA.create(database)
        with database.transaction() as connection:
            connection.execute(update(VERSIONS).values(version=found))
        with pytest.raises(ConfigurationError, match=advice):
            SCHEMA.create(database)
    with pytest.raises(ConfigurationError, match=advice), database.transaction() as connection:
        SCHEMA.check(connection)
    database.close()
