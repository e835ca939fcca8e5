"""What an Outbox and an Inbox are both: tables of one name in a database."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar

import attrs
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from followup._frames import clears_frames
from followup._redaction import redacted
from followup._results.errors import ConfigurationError
from followup._store.clock import DEFAULT_TIME, StoreTime
from followup._store.database import Database
from followup._store.problems import reason_of
from followup._store.schema import Schema
from followup._store.texts import checked_text
from followup._telemetry.stores import Backlog, store_telemetry

UNFINISHED = ("waiting", "in_flight", "held", "dead", "unhandled")
"""The states of the events that a program or a person still has to do something about."""

logger = logging.getLogger("followup")


class Store:
    """The base class of Outbox and Inbox.

    The version of the tables is checked before they are first used, and never again once it was right: a process that
    runs while another release changes the tables has to be restarted.
    """

    _schema: ClassVar[Schema]

    def __init__(self, database: str | URL | Engine, name: str) -> None:
        try:
            self.name = checked_text(name, "name")
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        self._database = Database(database)
        self._clock: StoreTime = DEFAULT_TIME
        self._telemetry = store_telemetry()
        self._is_version_checked = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database!r}, name={self.name!r})"

    def close(self) -> None:
        """Close the connections that were opened for this object. Those of your own Engine stay open."""
        self._telemetry.stop_reporting(self._backlog)  # which would open them again
        self._database.close()

    def ddl(self, from_version: int | None = None) -> str:
        """Return the SQL that creates the tables, for your own migrations. It can be run again.

        Args:
            from_version: version of the tables that are there, for the SQL that brings them up to date instead.

        Raises:
            ValueError: there is no such version.
        """
        return self._schema.ddl(self._database.dialect, from_version)

    @clears_frames
    def create_tables(self) -> None:
        """Create the tables that do not exist yet, and bring those of an earlier release up to date.

        It can be called again.

        Raises:
            ConfigurationError: the tables exist, made by a later release.
        """
        self._schema.create(self._database)

    def status(self) -> Any:
        """Return how many events there are, by what is next for them."""
        raise NotImplementedError

    def _backlog(self) -> Backlog | None:
        """Return how far this store is behind; None, with a line in the log, if its database cannot be read now."""
        try:
            numbers = attrs.asdict(self.status())
        except (SQLAlchemyError, ConfigurationError) as error:
            logger.warning("%s %s: its backlog is unknown: %s", type(self).__name__, self.name, reason_of(error))
            return None
        return Backlog(
            numbers["oldest_waiting_seconds"], {each: numbers[each] for each in UNFINISHED if each in numbers}
        )

    def _check_tables(self, longest_wait: float | None = None) -> None:
        """Check the version of the tables, unless it was right already.

        Raises:
            ConfigurationError: they are missing, or have another version.
        """
        if not self._is_version_checked:
            self._database.check_file(self._schema.component)
            with self._database.transaction(longest_wait) as connection:
                self._schema.check(connection)
            self._is_version_checked = True

    @contextmanager
    def _checked_transaction(self, longest_wait: float | None = None) -> Iterator[Connection]:
        """Begin a transaction on tables that exist and have the right version."""
        self._check_tables(longest_wait)
        with self._database.transaction(longest_wait) as connection:
            yield connection


def checked_age(older_than: object) -> timedelta:
    """Check the age of what a purge removes.

    Raises:
        ValueError: it is not a timedelta of 0 or more.
    """
    if not isinstance(older_than, timedelta) or older_than < timedelta(0):
        raise ValueError("older_than must be a timedelta of 0 or more, such as timedelta(days=30)")
    return older_than


def checked_count(count: int, event_id: str | None, states: str, advice: str = "") -> int:
    """Check that an action on one event has found it, and return the number of events.

    Args:
        count: number of events that the action found.
        event_id: the one event; None for an action on all.
        states: the states that the action is for, such as ``dead``.
        advice: the end of the error: the state of the event, and what to do.

    Raises:
        ValueError: there is no such event.
    """
    if event_id is not None and count == 0:
        raise ValueError(f"no {states} event has the id {redacted(str(event_id), max_length=64)!r}{advice}")
    return count
