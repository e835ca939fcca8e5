"""The outbox: the public class, and its relay, which claims events, sends and settles them, until nothing is due.

A relay may be killed at any moment. Before the claim has committed, nothing has happened. After it, the events belong
to the relay until their lease ends, and then another one sends them again under the same ids, which has no effect on
those that the service had accepted. Each call ends before its lease does, and only the holder of a lease can settle its
events, so a relay that was frozen meanwhile changes nothing.
"""

import functools
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from sqlalchemy import URL, Connection, Engine

from followup import EventInput, FollowUp
from followup._api_rules import REQUESTS_PER_MINUTE
from followup._call.options import checked_deadline
from followup._privacy.frames import clears_frames_of
from followup._results import errors
from followup._store.cipher import Cipher, UnreadableRows
from followup._store.clock import StoreTime, time_of
from followup._store.failures import reason_of
from followup._store.schema import DEAD, WAITING
from followup.outbox import claims, recording, verdicts
from followup.outbox.events import LARGEST_BATCH, SENT, NewEvent, Recorded, as_input, checked_event
from followup.outbox.recording import AsyncRecordingConnection, RecordingConnection
from followup.outbox.upkeep import DrainReport, RecordedEvents
from followup.resources.event_batches import larger_batch


@clears_frames_of
class Outbox(RecordedEvents):
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
        cipher: Cipher | None = None,
    ) -> None:
        """Create an outbox. Nothing is connected yet.

        Args:
            database: a SQLAlchemy URL or Engine, for SQLite or PostgreSQL.
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
            raise errors.ConfigurationError("requests_per_minute must be a whole number, 1 or more")
        if on_rejected not in ("hold", "skip"):
            raise errors.ConfigurationError('on_rejected must be "hold" or "skip"')
        self._requests_per_minute = requests_per_minute
        self._on_rejected = on_rejected
        self._has_recorded = False
        self._has_renewed = False
        self._largest_batch = LARGEST_BATCH  # that the service can finish in time, as far as is known

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
                autocommit mode without a transaction, or to another database than that of the outbox.
            TypeError: the connection is of another kind.
            ConfigurationError: the tables are missing in its database, or another release made them; or they are
                encrypted under a key that the cipher does not have.
        """
        recorded = checked_event(event, subject, self._clock.now())
        recording.record_on(connection, self._storing(recorded))
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
        await recording.record_on_async(connection, self._storing(recorded))
        self._has_recorded = True
        return recorded.id

    def _storing(self, event: Recorded) -> recording.Recording:
        check = not self._has_recorded
        storing = functools.partial(
            recording.store,
            database=self._database,
            cipher=self._cipher,
            event=event,
            clock=self._clock,
            check_version=check,
        )
        return recording.Recording(storing, self._comparison)

    def _record_all(self, connection: Connection, events: Sequence[Recorded]) -> None:
        """Store events as ``record`` does, on a connection of this outbox's own database whose tables were checked."""
        statement = recording.insertion(self.name, self._database.dialect, self._clock)
        connection.execute(statement, [recording.columns_of(each, self._cipher, self._hashed) for each in events])

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

    def _relay(self, client: FollowUp) -> "Relay":
        if not isinstance(client, FollowUp):
            raise TypeError(f"client must be a FollowUp, not {type(client).__name__}")
        return Relay(self, client)


logger: logging.Logger = logging.getLogger("followup.outbox")

_LEASE_FACTOR = 1.25
_LEASE_MARGIN = 5.0
"""A lease is longer than its call by a quarter of the call and this many seconds, to store the results in time."""

LONGEST_CALL = (claims.LONGEST_LEASE - _LEASE_MARGIN) / _LEASE_FACTOR
"""Seconds of a call. Fewer if the client has a shorter timeout."""

_MOST_FAILURES = 3
"""Calls that may fail in a row before a drain ends: the service cannot be reached now."""

_RAISED = (errors.AuthenticationError, errors.PermissionDeniedError, errors.ConfigurationError)
"""Errors that a retry does not fix."""


class Relay:
    """Sends the events of an outbox with one client.

    Args:
        outbox: the outbox, whose tables were checked.
        client: a synchronous client. Its retries are not used: each attempt is reserved in the request rate.
    """

    def __init__(self, outbox: Outbox, client: FollowUp) -> None:
        self._outbox = outbox
        self._client = client
        self.clock: StoreTime = time_of(client, outbox._clock)
        limits = (LONGEST_CALL, client._options.attempt_seconds, client._options.deadline)
        self._call_seconds = min(each for each in limits if each is not None)
        self._lease_seconds = self._call_seconds * _LEASE_FACTOR + _LEASE_MARGIN
        self._failures = 0
        self.unreadable: UnreadableRows = UnreadableRows(outbox._cipher)

    def work(self, report: DrainReport, deadline: float | None, stop: threading.Event) -> None:
        """Send events until none is due, the time is up, the service cannot be reached, or ``stop`` is set.

        Args:
            report: counts what happens, also if an error is raised.
            deadline: seconds; None for no limit.
            stop: ends the work after the call that is in flight.

        Raises:
            AuthenticationError, PermissionDeniedError: the service rejects the API key. The events wait again.
        """
        if not self._outbox._has_renewed:
            self._outbox._renew_subjects()
            self._outbox._has_renewed = True
        self._failures = 0
        ends = None if deadline is None else self.clock.monotonic() + deadline
        self.unreadable.begin(self.clock.monotonic())
        while self._failures < _MOST_FAILURES and not stop.is_set() and not self.unreadable.are_too_many:
            left = None if ends is None else ends - self.clock.monotonic()
            if left is not None and left <= 0:
                return
            with self._outbox._database.transaction() as connection:
                now = self.clock.milliseconds(connection)
                found = claims.find_due(connection, self._outbox.name, now, self.unreadable)
                if found is None:
                    self._outbox._database.check_writable(connection)
                    return
            began = self.clock.monotonic()
            claimed = self._claim(found)
            if isinstance(claimed, claims.Wait):
                self.clock.wait(claimed.seconds if left is None else min(claimed.seconds, left), stop)
            elif claimed is not None:  # otherwise leases have ended, or other relays have these events
                self._send(claimed, report, began, left)

    def _claim(self, found: Sequence[int]) -> verdicts.Claim | claims.Wait | None:
        with self._outbox._locked_transaction(self.clock) as (connection, now):
            return claims.claim(
                connection,
                self._outbox.name,
                now,
                found,
                requests_per_minute=self._outbox._requests_per_minute,
                largest=self._outbox._largest_batch,
                lease_seconds=self._lease_seconds,
                unreadable=self.unreadable,
            )

    def _send(self, claimed: verdicts.Claim, report: DrainReport, began: float, left: float | None) -> None:
        slack = (self._lease_seconds - self._call_seconds) / 2
        if self.clock.monotonic() - began > slack:
            # This process was frozen. A call that begins now could outlive its lease.
            self._settle(claimed, verdicts.at_once(claimed, "a relay was frozen"), was_made=False)
            return
        seconds = self._call_seconds if left is None else min(self._call_seconds, left)
        raised: BaseException | None = None
        try:
            client = self._client.with_options(max_retries=0, deadline=seconds)
            events = [as_input(each.text) for each in claimed.events]
            # Not a key of the events: another claim of them may have others beside them, and the key of a call that
            # succeeded would replay its response.
            batch = client.events.create(events, idempotency_key=claimed.lease_token)
            settlement = verdicts.of_results(claimed, batch.results)
        except errors.FollowUpError as error:
            is_cut_off = isinstance(error, errors.APITimeoutError) and seconds < self._call_seconds
            deadline = "the deadline of the drain was over"
            late = verdicts.cut_off(claimed, deadline, is_late=True) if is_cut_off else None
            settlement = late or verdicts.of_error(claimed, error)
            raised = error if isinstance(error, _RAISED) else None
        except Exception as error:  # noqa: BLE001 - raised below
            # The error of one event, such as one that is nested too deeply, must not hold up the others for ever.
            settlement, raised = verdicts.apart(claimed, reason_of(error)), error
        except BaseException as error:  # noqa: BLE001 - raised below
            settlement, raised = verdicts.cut_off(claimed, "the call was interrupted"), error
        try:
            self._finish(claimed, settlement, report, is_logged=raised is None)
            if raised is not None:
                raise raised
        finally:
            del raised  # its traceback refers to this frame

    def _finish(
        self, claimed: verdicts.Claim, settlement: verdicts.Settlement, report: DrainReport, *, is_logged: bool
    ) -> None:
        """Store the outcome of a call, count it, and say so in the log."""
        if settlement.service is not None:
            self._failures = 0 if settlement.service == "works" else self._failures + 1
        if settlement.is_late:
            self._outbox._largest_batch = settlement.batch_limit or 1
        elif settlement.service == "works":
            self._outbox._largest_batch = larger_batch(self._outbox._largest_batch)
        states = Counter(verdict.state for verdict in settlement.verdicts.values())
        if self._settle(claimed, settlement):
            report.sent += states[SENT] - settlement.duplicates
            report.duplicates += settlement.duplicates
            report.rejected += states[DEAD]
            report.failed += states[WAITING] if settlement.counts_as_attempt else 0
        if is_logged:
            # A failed event is retried for ever, and holds its subject: whoever reads the log has to learn of it.
            level = logging.INFO if states[SENT] == states.total() else logging.WARNING
            logger.log(level, "outbox %s: %s", self._outbox.name, settlement.text)

    def _settle(self, claimed: verdicts.Claim, settlement: verdicts.Settlement, *, was_made: bool = True) -> bool:
        """Store the outcome of a claim, and return whether it still was this process's to store."""
        name, token = self._outbox.name, claimed.lease_token
        with self._outbox._locked_transaction(self.clock) as (connection, now):
            claims.end_call(connection, name, now, token, settlement, was_made=was_made)
            holds = self._outbox._on_rejected == "hold"
            is_ours = claims.settle(connection, self._outbox._cipher, now, token, settlement, holds=holds)
        if not is_ours:
            logger.warning("outbox %s: a lease ended before its results were stored; they are ignored", name)
        return is_ours
