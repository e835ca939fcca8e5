"""The database of a store: what may be passed, transactions, forks, and the clock."""

import subprocess
import sys
import time

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from support.databases import engine_of
from support.forks import in_a_child

from followup import ConfigurationError
from followup._store.database import Database
from followup._store.leases import StoreTime, take_lock
from followup._store.schema import VERSIONS, Schema

pytestmark = pytest.mark.on_all

NOTHING = Schema("outbox", 1, [])


@pytest.mark.parametrize(
    ("scheme", "name", "driver"),
    [
        *((scheme, "postgresql", "psycopg") for scheme in ("postgresql", "postgres", "postgresql+psycopg")),
        *((scheme, "mysql", "pymysql") for scheme in ("mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql")),
    ],
)
def test_a_url_without_a_driver_means_the_one_of_the_extra(scheme: str, name: str, driver: str) -> None:
    database = Database(f"{scheme}://me@db.example/clinic")
    assert (database.dialect.name, database.engine.dialect.driver) == (name, driver)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("oracle://db.example/clinic", "must be SQLite, PostgreSQL, MySQL or MariaDB, not oracle"),
        ("mysql+asyncmy://db.example/clinic", "asynchronous driver"),
        ("clinic.db", "must be a SQLAlchemy URL"),
        ("sqlite:///clinic.db\n", "begins or ends with white space or a line break"),
        ("sqlite://", "is in memory"),
        ("sqlite:///:memory:", "is in memory"),
        ("sqlite:///file:clinic?mode=memory&uri=true", "is in memory"),
        ("sqlite+aiosqlite:///clinic.db", "asynchronous driver"),
        ("postgresql+nosuch://db.example/clinic", "does not know"),
        (None, "must be a SQLAlchemy URL"),
        (3, "not int"),
    ],
)
def test_another_database_is_a_configuration_error(url: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^database .*{reason}"):
        Database(url)


def test_an_async_engine_is_a_configuration_error(sqlite_url: str) -> None:
    engine = create_async_engine(sqlite_url.replace("sqlite:", "sqlite+aiosqlite:"))
    with pytest.raises(ConfigurationError, match=r"^database .*not AsyncEngine"):
        Database(engine)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"^database has an asynchronous driver"):
        Database(engine.sync_engine)


@pytest.mark.parametrize(
    ("scheme", "driver", "extra"), [("postgresql", "psycopg", "postgres"), ("mysql", "pymysql", "mysql")]
)
def test_a_missing_driver_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, driver: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(ConfigurationError, match=rf"the extra followup\[{extra}\]"):
        Database(f"{scheme}://db.example/clinic")


def test_a_transaction_rolls_back_as_a_whole(database_url: str) -> None:
    database = Database(database_url)
    NOTHING.create(database)

    def fail() -> None:
        with database.transaction() as connection:
            take_lock(connection, "a")
            connection.execute(VERSIONS.insert(), {"component": "inbox", "version": 1})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.transaction() as connection:
        assert len(connection.execute(VERSIONS.select()).all()) == 1
    database.close()


@pytest.mark.parametrize("database_url", ["postgresql", "mysql"], indirect=True)
def test_an_engine_of_a_server_in_autocommit_mode_still_has_transactions(database_url: str) -> None:
    engine = create_engine(engine_of(database_url).url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    test_a_transaction_rolls_back_as_a_whole(engine)  # type: ignore[arg-type]


def test_an_engine_of_sqlite_in_autocommit_mode_is_a_configuration_error(sqlite_url: str) -> None:
    engine = create_engine(sqlite_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    NOTHING.create(Database(sqlite_url))
    with pytest.raises(ConfigurationError, match="autocommit"), Database(engine).transaction() as connection:
        take_lock(connection, "a")


@pytest.mark.parametrize(
    ("database_url", "query"),
    [("postgresql", "SELECT pg_backend_pid()"), ("mysql", "SELECT CONNECTION_ID()")],
    indirect=["database_url"],
)
@pytest.mark.parametrize("is_of_the_user", [False, True])
def test_a_connection_is_not_shared_with_a_forked_process(database_url: str, query: str, is_of_the_user: bool) -> None:
    engine = create_engine(engine_of(database_url).url)
    database = Database(engine if is_of_the_user else database_url)

    def backend() -> int:
        with database.transaction() as connection:
            pid: int = connection.exec_driver_sql(query).scalar_one()
            return pid

    ours = backend()
    assert in_a_child(backend) != ours
    assert backend() == ours
    database.close()
    engine.dispose()


def test_the_clock_is_that_of_the_database_in_milliseconds(database_url: str) -> None:
    database = Database(database_url)
    database.create_file()
    with database.transaction() as connection:
        before = time.time() * 1000
        found = [StoreTime().milliseconds(connection) for _ in range(100)]
        after = time.time() * 1000
    assert before - 2 <= found[0] <= found[-1] <= after + 2
    database.close()


@pytest.mark.parametrize(
    ("database_url", "pause"),
    [("postgresql", "SELECT pg_sleep(0.05)"), ("mysql", "SELECT SLEEP(0.05)")],
    indirect=["database_url"],
)
def test_the_clock_runs_on_within_a_transaction(database_url: str, pause: str) -> None:
    database = Database(database_url)
    with database.transaction() as connection:
        connection.exec_driver_sql("SELECT 1")
        first = StoreTime().milliseconds(connection)
        connection.exec_driver_sql(pause)
        assert StoreTime().milliseconds(connection) >= first + 50
    database.close()


def test_importing_the_package_imports_no_database_layer() -> None:
    code = "import followup, followup._for_mockserver, sys; followup.FollowUp; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.call([sys.executable, "-c", code]) == 0
