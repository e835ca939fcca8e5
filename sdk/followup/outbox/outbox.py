"""The outbox: the public class."""

from typing import Literal

from sqlalchemy import URL, Engine

from followup._annotations import REQUESTS_PER_MINUTE
from followup._errors import ConfigurationError
from followup._store.clock import DATABASE_TIME, StoreTime
from followup._store.database import Database, Dialect
from followup._store.texts import checked_text
from followup.outbox.connections import (
    AsyncRecordingConnection,
    RecordingConnection,
    record_on,
    record_on_async,
)
from followup.outbox.events import NewEvent, Recorded, checked_event
from followup.outbox.recording import Steps, recording
from followup.outbox.tables import SCHEMA
from followup.resources.event_batches import EventInput


class Outbox:
    """Events in your own database, which a relay sends until the service has accepted them.

    ``record`` stores an event in your transaction, so that it exists exactly if your own write does. A relay sends it
    later, under the same id whatever crashes, and in order with the other events of its subject.

    One Outbox may be used by many threads, and after a fork.

    Example::

        outbox = Outbox("sqlite:///clinic.db")
        outbox.create_tables()

        with engine.begin() as connection:
            connection.execute(book_the_appointment)
            outbox.record(connection, inbound.appointment_created(...))
    """

    def __init__(
        self,
        database: str | URL | Engine,
        *,
        name: str = "default",
        requests_per_minute: int = REQUESTS_PER_MINUTE,
        on_rejected: Literal["hold", "skip"] = "hold",
    ) -> None:
        """Create an outbox. Nothing is connected yet.

        Args:
            database: a SQLAlchemy URL or Engine, for SQLite or PostgreSQL.
            name: keeps several organizations in one database apart: each has its own events, order and request rate.
            requests_per_minute: maximum number of calls in any 60 s by all relays of this outbox. Use the same number
                in all of them; leave room for other programs that use the same key.
            on_rejected: what an event that the service rejected means for the later events of its subject: ``hold``
                lets them wait until it is retried or discarded, ``skip`` lets them go on.

        Raises:
            ConfigurationError: an argument is invalid, or for another database; the message names it.
        """
        try:
            self.name = checked_text(name, "name")
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        if isinstance(requests_per_minute, bool) or not isinstance(requests_per_minute, int) or requests_per_minute < 1:
            raise ConfigurationError("requests_per_minute must be a whole number, 1 or more")
        if on_rejected not in ("hold", "skip"):
            raise ConfigurationError('on_rejected must be "hold" or "skip"')
        self._requests_per_minute = requests_per_minute
        self._on_rejected = on_rejected
        self._database = Database(database)
        self._clock: StoreTime = DATABASE_TIME
        self._is_version_checked = False

    def __repr__(self) -> str:
        return f"Outbox({self._database!r}, name={self.name!r})"

    def close(self) -> None:
        """Close the connections that this Outbox opened. Those of your own Engine stay open."""
        self._database.close()

    def ddl(self) -> str:
        """Return the SQL that creates the tables, for your own migrations. It can be run again."""
        return SCHEMA.ddl(self._database.dialect)

    def create_tables(self) -> None:
        """Create the tables that do not exist yet. It can be called again.

        Raises:
            ConfigurationError: the tables exist, made by another release that needs others.
        """
        SCHEMA.create(self._database)

    def record(self, connection: RecordingConnection, event: NewEvent | EventInput, subject: str | None = None) -> str:
        """Store an event in the transaction of a connection: it is sent if and only if that transaction commits.

        Recording an id that was recorded before changes nothing. Whatever fails here, the transaction can go on.

        Args:
            connection: a SQLAlchemy ``Connection`` or ``Session``, a ``sqlite3.Connection``, a ``psycopg.Connection``,
                or a connection of Django.
            event: the event; an id is made if it has none, and ``occurred_at`` is now if it says nothing else.
            subject: events of one subject are sent in the order in which they were recorded. By default
                ``appointment:`` and the external id of the appointment, else ``patient:`` and the patient's phone
                (digits only), document or id, else the event's own id.

        Returns:
            The id of the event.

        Raises:
            ValueError: the event or the subject is invalid, and the message names the field; or the connection is in
                autocommit mode without a transaction.
            TypeError: the connection is of another kind.
            ConfigurationError: the tables are missing in its database, or another release made them.
        """
        recorded = checked_event(event, subject, self._clock.now())
        record_on(connection, lambda dialect: self._recording(recorded, dialect))
        return recorded.id

    async def record_async(
        self, connection: AsyncRecordingConnection, event: NewEvent | EventInput, subject: str | None = None
    ) -> str:
        """Store an event in the transaction of an asynchronous connection, as ``record`` does.

        Args:
            connection: a SQLAlchemy ``AsyncConnection`` or ``AsyncSession``, or a ``psycopg.AsyncConnection``.
            event: the event; an id is made if it has none, and ``occurred_at`` is now if it says nothing else.
            subject: events of one subject are sent in the order in which they were recorded; see ``record``.

        Returns:
            The id of the event.

        Raises:
            ValueError, TypeError, ConfigurationError: as ``record`` does.
        """
        recorded = checked_event(event, subject, self._clock.now())
        await record_on_async(connection, lambda dialect: self._recording(recorded, dialect))
        return recorded.id

    def _recording(self, event: Recorded, dialect: Dialect) -> Steps:
        yield from recording(self.name, event, dialect, self._clock, check_version=not self._is_version_checked)
        self._is_version_checked = True
