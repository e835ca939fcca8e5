"""Every kind of connection that an event can be recorded on, opened for a test."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pymysql
import pytest
from psycopg.rows import dict_row
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool
from wrapt import ObjectProxy

from support.databases import engine_of, with_psycopg
from support.django_apps import set_up

Opened = tuple[Any, Callable[[str], Any], Callable[[], Any]]
"""The connection, a function that executes SQL in it, and one that commits. What is not committed is rolled back."""

Open = Callable[[str], AbstractContextManager[Opened]]
OpenAsync = Callable[[str], AbstractAsyncContextManager[Opened]]


def sqlite3_of(url: str, **options: Any) -> "contextlib.closing[sqlite3.Connection]":
    """Return a connection of sqlite3, which closes itself."""
    return contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), **options))


def psycopg_of(url: str, **options: Any) -> "contextlib.closing[psycopg.Connection[Any]]":
    """Return a connection of psycopg, which closes itself."""
    return contextlib.closing(psycopg.connect(url, **options))


@contextmanager
def sqlalchemy_connection(url: str) -> Iterator[Opened]:
    with engine_of(url).connect() as connection:
        yield connection, connection.exec_driver_sql, connection.commit


@contextmanager
def sqlalchemy_session(url: str) -> Iterator[Opened]:
    with Session(engine_of(url)) as session:
        yield session, lambda sql: session.execute(text(sql)), session.commit


@contextmanager
def sqlalchemy_scoped_session(url: str) -> Iterator[Opened]:
    session = scoped_session(sessionmaker(engine_of(url)))  # as that of Flask-SQLAlchemy
    try:
        yield session, lambda sql: session.execute(text(sql)), session.commit
    finally:
        session.remove()


@contextmanager
def sqlite_connection(url: str) -> Iterator[Opened]:
    with sqlite3_of(url) as connection:
        yield connection, connection.execute, connection.commit


@contextmanager
def sqlite_connection_with_rows_as_dicts(url: str) -> Iterator[Opened]:
    with sqlite3_of(url) as connection:
        connection.row_factory = lambda cursor, row: dict(
            zip((each[0] for each in cursor.description), row, strict=True)
        )
        yield connection, connection.execute, connection.commit


@contextmanager
def sqlite_connection_with_explicit_transactions(url: str) -> Iterator[Opened]:
    with sqlite3_of(url, isolation_level=None) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        yield connection, connection.execute, connection.commit


@contextmanager
def sqlite_connection_of_an_instrumentation(url: str) -> Iterator[Opened]:
    with sqlite3_of(url) as connection:
        yield ObjectProxy(connection), connection.execute, connection.commit


@contextmanager
def psycopg_connection(url: str) -> Iterator[Opened]:
    with psycopg_of(url, row_factory=dict_row) as connection:
        yield connection, connection.execute, connection.commit


@contextmanager
def psycopg_pipeline(url: str) -> Iterator[Opened]:
    with psycopg_connection(url) as (connection, execute, commit), connection.pipeline():
        yield connection, execute, commit


@contextmanager
def psycopg_transaction(url: str) -> Iterator[Opened]:
    with psycopg_of(url, autocommit=True) as connection:
        connection.execute("BEGIN")
        yield connection, connection.execute, connection.commit


def mysql_options(url: str) -> dict[str, Any]:
    """Return the arguments with which PyMySQL and mysqlclient connect."""
    found = make_url(url)
    address = {"host": found.host, "port": found.port, "password": found.password, **found.query}
    return {
        "user": found.username,
        "database": found.database,
        **{key: value for key, value in address.items() if value},
    }


def pymysql_of(url: str, **options: Any) -> "contextlib.closing[pymysql.Connection[Any]]":
    """Return a connection of PyMySQL, which closes itself."""
    return contextlib.closing(pymysql.connect(**mysql_options(url), **options))


@contextmanager
def pymysql_connection(url: str) -> Iterator[Opened]:
    with pymysql_of(url, cursorclass=pymysql.cursors.DictCursor) as connection:
        yield connection, connection.cursor().execute, connection.commit


@contextmanager
def pymysql_transaction(url: str) -> Iterator[Opened]:
    with pymysql_of(url, autocommit=True) as connection:
        connection.begin()
        yield connection, connection.cursor().execute, connection.commit


@contextmanager
def mysqlclient_connection(url: str) -> Iterator[Opened]:
    try:
        import MySQLdb
        import MySQLdb.cursors
    except ImportError:
        pytest.skip("mysqlclient is not installed: apt-get install libmariadb-dev, python -m pip install mysqlclient")
    with contextlib.closing(
        MySQLdb.connect(**mysql_options(url), cursorclass=MySQLdb.cursors.DictCursor)
    ) as connection:
        connection.autocommit(True)
        connection.cursor().execute("BEGIN")
        yield connection, connection.cursor().execute, connection.commit


@contextmanager
def django_connection(url: str) -> Iterator[Opened]:
    with django(url) as connection:
        connection.set_autocommit(False)
        yield connection, lambda sql: connection.cursor().execute(sql), connection.commit


@contextmanager
def django(url: str) -> Iterator[Any]:
    """Open a connection of Django, in autocommit mode."""
    from django.db.utils import ConnectionHandler

    set_up()
    connection = ConnectionHandler({"default": django_database(url)})["default"]
    try:
        yield connection
    finally:
        connection.close()


def django_database(url: str) -> dict[str, Any]:
    """Return the settings of Django for a database."""
    if url.startswith("sqlite"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    if url.startswith("mysql"):
        found = mysql_options(url)
        named = {key.upper(): found.pop(key) for key in ("user", "password", "host", "port") if key in found}
        return {"ENGINE": "django.db.backends.mysql", "NAME": found.pop("database"), "OPTIONS": found, **named}
    parts = psycopg.conninfo.conninfo_to_dict(url)
    options = {"options": parts["options"]}
    settings = {"NAME": parts["dbname"], "USER": parts["user"], "HOST": parts["host"], "OPTIONS": options}
    return {"ENGINE": "django.db.backends.postgresql", **settings}


@asynccontextmanager
async def async_connection(url: str) -> AsyncIterator[Opened]:
    async with async_engine(url).connect() as connection:
        yield connection, connection.exec_driver_sql, connection.commit


@asynccontextmanager
async def async_session(url: str) -> AsyncIterator[Opened]:
    async with AsyncSession(async_engine(url)) as session:
        yield session, lambda sql: session.execute(text(sql)), session.commit


@asynccontextmanager
async def async_asyncpg(url: str) -> AsyncIterator[Opened]:
    pytest.importorskip("asyncpg")
    found = make_url(url).set(drivername="postgresql+asyncpg")
    settings = {"search_path": str(found.query["options"]).removeprefix("-csearch_path=")}
    found = found.difference_update_query(["options"])
    engine = create_async_engine(found, poolclass=NullPool, connect_args={"server_settings": settings})
    async with engine.connect() as connection:
        yield connection, connection.exec_driver_sql, connection.commit


@asynccontextmanager
async def async_asyncmy(url: str) -> AsyncIterator[Opened]:
    pytest.importorskip("asyncmy")
    engine = create_async_engine(make_url(url).set(drivername="mysql+asyncmy"), poolclass=NullPool)
    async with engine.connect() as connection:
        yield connection, connection.exec_driver_sql, connection.commit


@asynccontextmanager
async def async_psycopg(url: str) -> AsyncIterator[Opened]:
    connection = await psycopg.AsyncConnection.connect(url, row_factory=dict_row)
    try:
        yield connection, connection.execute, connection.commit
    finally:
        await connection.close()


def async_engine(url: str, **options: Any) -> Any:
    """Return an AsyncEngine that keeps no connections."""
    url = with_psycopg(url).replace("sqlite:", "sqlite+aiosqlite:", 1).replace("+pymysql:", "+aiomysql:", 1)
    return create_async_engine(url, poolclass=NullPool, **options)


def on_kinds(
    argument: str, *, every: Any = (), sqlite: Any = (), postgresql: Any = (), mysql: Any = ()
) -> pytest.MarkDecorator:
    """Return a decorator that passes each kind of connection to a test, and its database as ``database_url``."""
    kinds = {"sqlite": sqlite, "postgresql": postgresql, "mysql": mysql}
    pairs = [
        *((kind, database) for kind in every for database in kinds),
        *((kind, database) for database, own in kinds.items() for kind in own),
    ]
    ids = [f"{kind.__name__}-{database}" for kind, database in pairs]
    return pytest.mark.parametrize((argument, "database_url"), pairs, ids=ids, indirect=["database_url"])


each_kind = on_kinds(
    "opened",
    every=[sqlalchemy_connection, sqlalchemy_session, sqlalchemy_scoped_session, django_connection],
    sqlite=[
        sqlite_connection,
        sqlite_connection_with_rows_as_dicts,
        sqlite_connection_with_explicit_transactions,
        sqlite_connection_of_an_instrumentation,
    ],
    postgresql=[psycopg_connection, psycopg_transaction, psycopg_pipeline],
    mysql=[pymysql_connection, pymysql_transaction, mysqlclient_connection],
)
each_async_kind = on_kinds(
    "opened", every=[async_connection, async_session], postgresql=[async_psycopg, async_asyncpg], mysql=[async_asyncmy]
)
