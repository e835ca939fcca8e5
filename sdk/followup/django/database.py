"""The database of an alias of ``DATABASES``, on connections of its own that Django opens as it opens its own.

None of them stays open after a transaction, except while a relay or a worker runs: PostgreSQL can drop a test's
database only once nobody is connected to it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import sqlalchemy as sa
from django.apps import apps
from django.conf import settings
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from followup._store.database import Database
from followup._store.dialects import dialect_of

_DRIVERS = {"sqlite3": "pysqlite", "MySQLdb": "mysqldb"}
"""The drivers that SQLAlchemy calls otherwise than Python does."""


class DjangoDatabase(Database):
    """The database of an alias."""

    def __init__(self, alias: str) -> None:
        """Describe the database. Nothing is connected yet.

        Raises:
            ConfigurationError: it is none that is supported.
        """
        connection = connections[alias]
        dialect_of(connection.vendor)
        module = connection.Database.__name__.partition(".")[0]
        driver = f"{connection.vendor}+{_DRIVERS.get(module, module)}"
        place = connection.settings_dict
        name = None if _is_in_memory(connection) else str(place["NAME"])
        engine = sa.create_engine(
            sa.URL.create(driver, host=place["HOST"] or None, database=name),
            creator=partial(_open, alias),
            # As many as there are threads, each closed when it comes back, unless a worker runs.
            poolclass=QueuePool,
            max_overflow=-1,
            pool_pre_ping=True,
            hide_parameters=True,
        )
        super().__init__(engine)
        self._is_kept_open = False
        event.listen(engine, "checkin", self._close_unless_kept)

    def _close_unless_kept(self, _: object, entry: Any) -> None:
        if not self._is_kept_open:
            entry.invalidate()

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Let transactions share connections meanwhile."""
        self._is_kept_open = True
        try:
            yield
        finally:
            self._is_kept_open = False
            self.engine.dispose()


def check_of_tests(alias: str) -> None:
    """Check that a test does not use the database that the project had before its tests began.

    Raises:
        ImproperlyConfigured: it would; the message names both.
    """
    place = connections[alias].settings_dict
    of_project, of_tests = apps.get_app_config("followup_django").databases.get(alias), place["TEST"]["NAME"]
    is_test = hasattr(mail, "outbox") and "testserver" in settings.ALLOWED_HOSTS
    if is_test and str(place["NAME"]) == of_project and of_project not in ("", str(of_tests)):
        raise ImproperlyConfigured(
            f"a test would use {of_project}, the database of the project, and not {of_tests or 'one of its own'}: "
            f"let it use {alias!r}, with TestCase, TransactionTestCase or a fixture of pytest-django"
        )


def _is_in_memory(connection: Any) -> bool:
    return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())


def _open(alias: str) -> Any:
    """Return a new connection of the driver, as Django opens it with the settings of now, in no autocommit mode."""
    check_of_tests(alias)
    # A copy, because Django's own belongs to a thread, and may be in a transaction of the user's.
    connection = connections[alias].copy()
    connection.settings_dict["OPTIONS"].pop("pool", None)  # it would have to go back
    try:
        connection.ensure_connection()  # which tests that may not use a database let fail
        # As SQLAlchemy expects it of a driver; Django commits each statement by default.
        connection.set_autocommit(False)
    except Error as error:
        raise (error.__cause__ or error) from None
    if _is_in_memory(connection) and connections[alias].in_atomic_block:
        _check_is_readable(connection)
    return connection.connection


def _check_is_readable(connection: Any) -> None:
    """Check that nobody has written to our tables in a transaction: in memory, others cannot even read them then."""
    try:
        connection.connection.execute("SELECT 1 FROM followup_outbox, followup_inbox LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            return
        connection.connection.close()  # close() of Django closes no connection to a database in memory
        raise RuntimeError(
            "the transaction of this test has written to the tables of followup, which in memory nobody else can "
            "read: use TransactionTestCase, transactional_db or followup_django"
        ) from None
