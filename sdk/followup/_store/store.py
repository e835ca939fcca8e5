"""What an Outbox and an Inbox are both: tables of one name in a database."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
from sqlalchemy import URL, Connection, Engine, Table, select
from sqlalchemy.exc import SQLAlchemyError

from followup import _telemetry
from followup._frames import clears_frames
from followup._redaction import redacted
from followup._results.errors import ConfigurationError
from followup._store.clock import StoreTime
from followup._store.database import Database, reason_of
from followup._store.schema import Schema, checked_text

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
        self._clock = StoreTime()
        self._is_measured = _telemetry.is_on()
        self._is_version_checked = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database!r}, name={self.name!r})"

    def close(self) -> None:
        """Close the connections that were opened for this object. Those of your own Engine stay open."""
        if self._is_measured:
            from followup._telemetry.stores import stop_reporting

            stop_reporting(self)  # which would open them again
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

    def _report(self) -> None:
        """Let the metrics of this process show how far this store is behind, from now on."""
        if self._is_measured:
            from followup._telemetry.stores import report

            report(self._schema.component, self)

    def _known_status(self) -> Mapping[str, Any] | None:
        """Return the status as a dict; None, with a line in the log, if the database cannot be read now."""
        try:
            return attrs.asdict(self.status())
        except (SQLAlchemyError, ConfigurationError) as error:
            logger.warning("%s %s: its backlog is unknown: %s", type(self).__name__, self.name, reason_of(error))
            return None

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


def check_found(
    connection: Connection,
    events: Table,
    name: str,
    event_id: str | None,
    count: int,
    states: str,
    hints: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Check that an action on one event has found it, and return the number of events.

    Args:
        connection: a connection in the transaction of the action.
        events: the table.
        name: name of the outbox or inbox.
        event_id: the one event; None for an action on all.
        count: number of events that the action found.
        states: the states that the action is for, such as ``dead``.
        hints: what else the error says, by the state of the event.

    Raises:
        ValueError: there is no such event; the message says in which state it is.
    """
    if event_id is None or count:
        return count
    of_event = select(events.c.state).where(events.c.name == name, events.c.event_id == event_id)
    state = connection.execute(of_event).scalar_one_or_none()
    shown = redacted(str(event_id), max_length=64)
    found = f": its state is {state}{hints.get(state, '')}" if state else ""
    raise ValueError(f"no {states} event has the id {shown!r}{found}")
