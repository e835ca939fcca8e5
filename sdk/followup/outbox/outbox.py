"""The outbox: the public class."""

import threading
from collections.abc import Iterator, Sequence
from typing import Literal

from sqlalchemy import URL, Connection, Engine

from followup import EventInput, FollowUp
from followup._core.api_rules import REQUESTS_PER_MINUTE
from followup._core.call.options import checked_deadline
from followup._core.errors import AuthenticationError, ConfigurationError, PermissionDeniedError
from followup._core.tracebacks import clears_frames_of
from followup._store.cipher import Cipher, UnreadableRows, unhashed
from followup._store.execution import Execution, advice_on, execute_many, is_missing_table, savepoint
from followup._store.places import schema_on
from followup.outbox.connections import (
    AsyncRecordingConnection,
    Recording,
    RecordingConnection,
    record_on,
    record_on_async,
)
from followup.outbox.events import SCHEMA, NewEvent, Recorded, checked_event, columns_of, hash_subjects, insertion
from followup.outbox.relay import Limits, Relay
from followup.outbox.upkeep import DrainReport, RecordedEvents


@clears_frames_of
class Outbox(RecordedEvents):
    """Events in your own database, which a relay sends until the service has accepted them.

    ``record`` stores an event in your transaction, so that it exists exactly if your own write does. A relay sends it
    later, under the same id whatever crashes, and in order with the other events of its subject.

    One Outbox may be used by many threads, and after a fork.

    Example::

        outbox = Outbox("sqlite:////var/lib/clinic/clinic.db")
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
        cipher: Cipher | None = None,
    ) -> None:
        """Create an outbox. Nothing is connected yet.

        Args:
            database: a SQLAlchemy URL or Engine, for SQLite, PostgreSQL, MySQL or MariaDB.
            name: keeps several organizations in one database apart: each has its own events, order and request rate.
            requests_per_minute: maximum number of calls in any 60 s by all relays of this outbox. Use the same number
                in all of them; leave room for other programs that use the same key.
            on_rejected: what an event that the service rejected means for the later events of its subject: ``hold``
                lets them wait until it is retried or discarded, ``skip`` lets them go on.
            cipher: encrypts what is stored, such as a ``Fernet`` of the package ``cryptography``. Events and errors are
                encrypted, and subjects are stored as salted hashes. None stores all of it in clear.

        Raises:
            ConfigurationError: an argument is invalid, or for another database; the message names it.
        """
        super().__init__(database, name, cipher)
        if isinstance(requests_per_minute, bool) or not isinstance(requests_per_minute, int) or requests_per_minute < 1:
            raise ConfigurationError("requests_per_minute must be a whole number, 1 or more")
        if on_rejected not in ("hold", "skip"):
            raise ConfigurationError('on_rejected must be "hold" or "skip"')
        self._limits = Limits(requests_per_minute, holds=on_rejected == "hold")
        self._has_recorded = False

    def record(self, connection: RecordingConnection, event: NewEvent | EventInput, subject: str | None = None) -> str:
        """Store an event in the transaction of a connection: it is sent if and only if that transaction commits.

        Recording an id that was recorded before changes nothing. If this fails, your transaction can go on, except
        where the database itself has rolled it back: SQLite because its disk is full, for example, or MySQL after a
        deadlock. The error or its notes then say so.

        Args:
            connection: a SQLAlchemy ``Connection`` or ``Session``, a ``sqlite3.Connection``, a ``psycopg.Connection``,
                or a connection of PyMySQL, mysqlclient or Django.
            event: the event. If it has no id, one is generated; its ``occurred_at`` is by default the current time.
            subject: events of one subject are sent in the order in which they were recorded. By default
                ``appointment:`` and the external id of the appointment, else ``patient:phone:`` and the digits of the
                patient's phone, ``patient:dni:``, ``patient:externalId:`` or ``patient:id:``, else the event's own id.

        Returns:
            The id of the event.

        Raises:
            ValueError: the event or the subject is invalid, and the message names the field; or the connection is in
                autocommit mode without a transaction, or to another database than that of the outbox.
            TypeError: the connection is of another kind.
            ConfigurationError: the tables are missing in its database, or another release made them; or they are
                encrypted under a key that the cipher does not have.
        """
        recorded = checked_event(event, subject, self._clock.now())
        record_on(connection, self._storing(recorded))
        self._has_recorded = True
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
        await record_on_async(connection, self._storing(recorded))
        self._has_recorded = True
        return recorded.id

    def _storing(self, event: Recorded) -> Recording:
        return Recording(lambda execute: self._store(execute, event), self._comparison)

    async def _store(self, execute: Execution, event: Recorded) -> None:
        """Store an event in the transaction of a caller, unless its id is there already.

        Raises:
            ConfigurationError: the tables are missing, or have another version, or are encrypted under another cipher.
        """
        # Once for each process: whoever changes the tables has to restart it.
        checks_tables = not self._has_recorded
        try:
            async with savepoint(execute):
                execute = execute.within(await schema_on(execute, self._database))
                if checks_tables:
                    await self._check_version_on(execute)
                # With a cipher, each time: a salt that this transaction has stored may roll back with it.
                is_asked = self._cipher.is_on or checks_tables
                hashed = await self._cipher.hash_on(execute, hash_subjects) if is_asked else unhashed
                statement = insertion(self.name, execute.dialect, self._clock.sql(execute.dialect))
                await execute(statement, columns_of(event, self._cipher, hashed))
        except Exception as error:
            if (advice := advice_on(error)) is not None:
                error.add_note(advice)
            if not checks_tables:  # they were right, but perhaps in another database than that of this connection
                async with savepoint(execute):
                    await self._check_version_on(execute)
            raise

    async def _check_version_on(self, execute: Execution) -> None:
        try:
            rows = await execute(SCHEMA.version_query)
        except Exception as error:
            if not is_missing_table(error):
                raise
            rows = []
        SCHEMA.check_version(rows[0][0] if rows else None, self._database.shown)

    def _record_all(self, connection: Connection, events: Sequence[Recorded]) -> None:
        """Store events as ``record`` does, on a connection of this outbox's own database whose tables were checked."""
        dialect = self._database.dialect
        statement = insertion(self.name, dialect, self._clock.sql(dialect))
        execute_many(connection, statement, (columns_of(each, self._cipher, self._hashed) for each in events))

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
            ConfigurationError: the tables are missing, or another release made them; or an event cannot be decrypted,
                which the message names. It stays as it is, and all others were sent.
        """
        seconds = checked_deadline(deadline)
        report = DrainReport()
        self._check_tables()
        relay = self._relay(client)
        relay.work(report, seconds, threading.Event())
        # At the end, so that an event which cannot be decrypted holds up no other.
        relay.unreadable.check()
        report.remaining = self._remaining()
        return report

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
        for _ in self._sending(client, DrainReport(), stop or threading.Event()):
            pass

    def _sending(
        self, client: FollowUp, report: DrainReport, stop: threading.Event, *raised: type[Exception]
    ) -> Iterator[UnreadableRows]:
        """Drain repeatedly as ``run`` does, but raise these errors.

        It yields after each round, which the report counts, with the events that cannot be decrypted.
        """
        relay = self._relay(client)
        for _ in self._rounds(lambda: relay.work(report, None, stop), stop, relay.clock, *raised):
            yield relay.unreadable

    def _send(self, client: FollowUp, stop: threading.Event, *, until_empty: bool) -> str:
        """Do the work of a command: drain until ``stop`` is set, or no event waits; return what was done in words.

        Raises:
            AuthenticationError, PermissionDeniedError: the service rejects the API key.
        """
        report = DrainReport()
        for unreadable in self._sending(client, report, stop, AuthenticationError, PermissionDeniedError):
            if until_empty:
                unreadable.check()  # such an event waits for ever
                if not self._remaining():
                    break
        return f"{report.sent} sent, {report.duplicates} duplicates, {report.rejected} rejected"

    def _relay(self, client: FollowUp) -> Relay:
        if not isinstance(client, FollowUp):
            raise TypeError(f"client must be a FollowUp, not {type(client).__name__}")
        return Relay(self, self._limits, client)
