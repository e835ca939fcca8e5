"""The outbox: the public class."""

import threading
from datetime import timedelta
from typing import Literal

from sqlalchemy import URL, Engine

from followup._annotations import REQUESTS_PER_MINUTE
from followup._call.options import checked_deadline
from followup._client import FollowUp
from followup._frames import clears_frames, clears_frames_of
from followup._results.errors import ConfigurationError
from followup._store.database import Dialect
from followup._store.schema import DEAD, WAITING
from followup._store.store import Store, checked_age
from followup.outbox import recording, upkeep
from followup.outbox.events import NewEvent, Recorded, checked_event
from followup.outbox.recording import AsyncRecordingConnection, RecordingConnection, Steps
from followup.outbox.relay import Relay
from followup.outbox.tables import SCHEMA
from followup.outbox.upkeep import DeadEvent, DrainReport, FailingEvent, OutboxStatus
from followup.resources.event_batches import EventInput


@clears_frames_of
class Outbox(Store):
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

    _schema = SCHEMA

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
        super().__init__(database, name)
        if isinstance(requests_per_minute, bool) or not isinstance(requests_per_minute, int) or requests_per_minute < 1:
            raise ConfigurationError("requests_per_minute must be a whole number, 1 or more")
        if on_rejected not in ("hold", "skip"):
            raise ConfigurationError('on_rejected must be "hold" or "skip"')
        self._requests_per_minute = requests_per_minute
        self._on_rejected = on_rejected
        self._has_recorded = False

    def record(self, connection: RecordingConnection, event: NewEvent | EventInput, subject: str | None = None) -> str:
        """Store an event in the transaction of a connection: it is sent if and only if that transaction commits.

        Recording an id that was recorded before changes nothing. If this fails, your transaction can go on, except
        where SQLite itself has rolled it back, because its disk is full, for example; the error then says so.

        Args:
            connection: a SQLAlchemy ``Connection`` or ``Session``, a ``sqlite3.Connection``, a ``psycopg.Connection``,
                or a connection of Django.
            event: the event. If it has no id, one is generated; its ``occurred_at`` is by default the current time.
            subject: events of one subject are sent in the order in which they were recorded. By default
                ``appointment:`` and the external id of the appointment, else ``patient:phone:`` and the digits of the
                patient's phone, ``patient:dni:``, ``patient:externalId:`` or ``patient:id:``, else the event's own id.

        Returns:
            The id of the event.

        Raises:
            ValueError: the event or the subject is invalid, and the message names the field; or the connection is in
                autocommit mode without a transaction.
            TypeError: the connection is of another kind.
            ConfigurationError: the tables are missing in its database, or another release made them.
        """
        recorded = checked_event(event, subject, self._clock.now())
        recording.record_on(connection, lambda dialect: self._recording(recorded, dialect))
        return recorded.id

    async def record_async(
        self, connection: AsyncRecordingConnection, event: NewEvent | EventInput, subject: str | None = None
    ) -> str:
        """Store an event in the transaction of an asynchronous connection, as ``record`` does.

        Args:
            connection: a SQLAlchemy ``AsyncConnection`` or ``AsyncSession``, or a ``psycopg.AsyncConnection``.
            event: the event. If it has no id, one is generated; its ``occurred_at`` is by default the current time.
            subject: events of one subject are sent in the order in which they were recorded; see ``record``.

        Returns:
            The id of the event.

        Raises:
            ValueError, TypeError, ConfigurationError: as ``record`` does.
        """
        recorded = checked_event(event, subject, self._clock.now())
        await recording.record_on_async(connection, lambda dialect: self._recording(recorded, dialect))
        return recorded.id

    def _recording(self, event: Recorded, dialect: Dialect) -> Steps:
        yield from recording.steps(self.name, event, dialect, self._clock, check_version=not self._has_recorded)
        self._has_recorded = True

    def drain(self, client: FollowUp, deadline: float | None = None) -> DrainReport:
        """Send the events that are due, until none is.

        Any number of processes and threads may drain at the same time. It also ends when calls keep
        failing; the next drain continues.

        Args:
            client: the client to send with. Its retries are not used, because the outbox retries.
            deadline: seconds after which it ends; the call in flight then ends as well. None for no limit.

        Returns:
            What was sent, what failed, and what remains.

        Raises:
            AuthenticationError, PermissionDeniedError: the service rejects the API key. The events wait for the next
                drain.
            ConfigurationError: the tables are missing, or another release made them.
        """
        seconds = checked_deadline(deadline)
        report = DrainReport()
        self._check_tables()
        self._relay(client).work(report, seconds, None)
        report.remaining = self._remaining()
        return report

    def _remaining(self) -> int:
        with self._checked_transaction() as connection:
            return upkeep.remaining(connection, self.name)

    def run(self, client: FollowUp, stop: threading.Event | None = None) -> None:
        """Drain repeatedly, until ``stop`` is set or the process ends.

        Errors are logged, and the work goes on: an API key that is rejected, a service that does not respond, a
        database that is restarted. When ``stop`` is set, the call in flight ends first.

        Args:
            client: the client to send with.
            stop: set it to end the work, for example from a signal handler.

        Raises:
            ConfigurationError: the tables are missing, or another release made them.
        """
        relay = self._relay(client)
        for _ in relay.rounds(stop or threading.Event(), self._check_tables, raise_denied=False):
            pass

    @clears_frames
    def status(self) -> OutboxStatus:
        """Return how many events wait, are in flight, held, dead and sent, and the age of the oldest that waits."""
        with self._checked_transaction() as connection:
            return upkeep.status(connection, self.name, self._clock.milliseconds(connection))

    @clears_frames
    def dead(self) -> list[DeadEvent]:
        """Return the events that the service rejected, each with the reason, in the order of recording."""
        with self._checked_transaction() as connection:
            return upkeep.dead(connection, self.name)

    @clears_frames
    def failing(self) -> list[FailingEvent]:
        """Return the events whose last call failed, each with the reason, in the order of recording."""
        with self._checked_transaction() as connection:
            return upkeep.failing(connection, self.name)

    def retry(self, event_id: str | None = None) -> int:
        """Let dead events be sent again, under their ids.

        Args:
            event_id: id of a dead event; None for all of them.

        Returns:
            The number of events.

        Raises:
            ValueError: no dead event has this id.
        """
        with self._checked_transaction() as connection:
            return upkeep.retry(connection, self.name, event_id)

    def discard(self, event_id: str, *, waiting: bool = False) -> None:
        """Give up a dead event, so that the later events of its subject are sent.

        Args:
            event_id: id of a dead event.
            waiting: also give up an event that waits, such as one that fails again and again. The service may have
                stored it. An event that is being sent now cannot be given up.

        Raises:
            ValueError: no dead event has this id; with ``waiting``, no dead or waiting one.
            TypeError: the id is no string; there is no way to discard all of them at once.
        """
        if not isinstance(event_id, str):
            raise TypeError(f"event_id must be the id of a dead event, not {type(event_id).__name__}")
        states = (DEAD, WAITING) if waiting else (DEAD,)
        with self._checked_transaction() as connection:
            upkeep.discard(connection, self.name, event_id, states, self._clock.milliseconds(connection))

    def purge(self, *, older_than: timedelta) -> int:
        """Remove old events that were sent or discarded, with the personal data in them.

        An id that is recorded again after it has been purged is sent again; the service then reports a duplicate.

        Args:
            older_than: time since an event was accepted or discarded, 0 or more.

        Returns:
            The number of events.

        Raises:
            ValueError: ``older_than`` is no timedelta of 0 or more.
        """
        age = checked_age(older_than)
        total = 0
        while True:
            with self._checked_transaction() as connection:
                count = upkeep.purge_some(connection, self.name, age, self._clock.milliseconds(connection))
            total += count
            if not count:
                return total

    def _relay(self, client: FollowUp) -> Relay:
        if not isinstance(client, FollowUp):
            raise TypeError(f"client must be a FollowUp, not {type(client).__name__}")
        self._report()
        return Relay(
            self._database,
            self.name,
            client,
            self._clock,
            requests_per_minute=self._requests_per_minute,
            holds=self._on_rejected == "hold",
        )
