"""What is done with recorded events besides sending them: status, dead events, and the removal of old ones."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import attrs
from sqlalchemy import ColumnElement, Connection, RowMapping, case, delete, func, select

from followup._store.erasure import PersonalData
from followup._store.import_state import forget
from followup._store.leases import datetime_of
from followup._store.person import Person
from followup._store.schema import DEAD, IN_FLIGHT, WAITING, from_ascii
from followup._store.store import milliseconds_of
from followup.outbox.events import DISCARDED, EVENTS, RATES, SCHEMA, SENT, as_input, hash_subjects
from followup.resources.event_batches import EventInput


@attrs.define(kw_only=True)
class DrainReport:
    """What a drain did.

    Attributes:
        sent: events that the service accepted, duplicates not included.
        duplicates: events that the service had accepted before, such as those of a relay that was killed.
        failed: times that an event was not accepted and waits for a retry.
        rejected: events that are dead now.
        remaining: events that still wait, for a retry too, or are in flight; those that a dead event holds and dead
            ones are not among them.
    """

    sent: int = 0
    duplicates: int = 0
    failed: int = 0
    rejected: int = 0
    remaining: int = 0


@attrs.frozen(kw_only=True)
class OutboxStatus:
    """The number of events of an outbox in each state.

    Attributes:
        waiting: events that will be sent, now or after a backoff, or after an earlier event of their subject.
        in_flight: events that a relay is sending.
        held: events that wait until a dead event of their subject is retried or discarded.
        dead: events that the service rejected.
        sent: events that the service accepted and that have not been purged.
        oldest_waiting_seconds: age of the oldest event that waits, is held or is in flight; None if there is none.
    """

    waiting: int
    in_flight: int
    held: int
    dead: int
    sent: int
    oldest_waiting_seconds: float | None


@attrs.frozen(kw_only=True)
class _ListedEvent:
    id: str
    event: EventInput = attrs.field(repr=False)
    subject: str = attrs.field(repr=False)
    error: str = attrs.field(repr=False)
    attempts: int
    recorded_at: datetime


@attrs.frozen(kw_only=True)
class DeadEvent(_ListedEvent):
    """An event that the service rejected. ``repr`` shows neither its data nor its subject.

    Attributes:
        id: id of the event.
        event: the event as it was sent.
        subject: the subject, which may contain a phone or a document.
        error: the reason for the rejection.
        attempts: number of times that it was sent.
        recorded_at: time at which it was recorded, in UTC.
        died_at: time at which it was rejected, in UTC.
    """

    died_at: datetime


@attrs.frozen(kw_only=True)
class FailingEvent(_ListedEvent):
    """An event that was sent, not accepted, and waits for a retry. ``repr`` shows neither its data nor its subject.

    Attributes:
        id: id of the event.
        event: the event as it is sent.
        subject: the subject, which may contain a phone or a document. Later events of it wait.
        error: the reason for the latest failure.
        attempts: number of times that it was sent.
        recorded_at: time at which it was recorded, in UTC.
        next_attempt_at: time from which it is sent again, in UTC.
    """

    next_attempt_at: datetime


class RecordedEvents(PersonalData):
    """The recorded events of an outbox, and what a person does with them."""

    _schema = SCHEMA
    _events = EVENTS
    _encrypted = ("event", "error", "subject")
    _adopt = staticmethod(hash_subjects)
    _given_up = DISCARDED
    _content, _about, _stored_at = "event", "subject", "recorded_at"
    _emptied = MappingProxyType({"event": "", "subject": "", "blocks_subject": False})
    _is_there = EVENTS.c.event != ""
    _retried = MappingProxyType(
        {"state": WAITING, "blocks_subject": True, "due_at": 0, "finished_at": None, "error": None}
    )
    _discarded = MappingProxyType({"state": DISCARDED, "blocks_subject": False})

    def status(self) -> OutboxStatus:
        """Return how many events wait, are in flight, held, dead and sent, and the age of the oldest that waits."""
        with self._checked_transaction() as connection:
            number = self._count(connection)
            held = self._held(connection) if DEAD in number else 0
            return OutboxStatus(
                waiting=number.get(WAITING, 0) - held,
                held=held,
                **{state: number.get(state, 0) for state in (IN_FLIGHT, DEAD, SENT)},
                oldest_waiting_seconds=self._age_of_oldest(connection, EVENTS.c.recorded_at),
            )

    def _remaining(self) -> int:
        """Return the number of events that a drain leaves to the next: those that wait or are in flight."""
        with self._checked_transaction() as connection:
            number = self._count(connection, EVENTS.c.state.in_((WAITING, IN_FLIGHT, DEAD)))
            held = self._held(connection) if number.pop(DEAD, 0) else 0
            return sum(number.values()) - held

    def _held(self, connection: Connection) -> int:
        """Count the events that wait behind a dead one, in one pass over the events that are not finished."""
        is_dead = case((EVENTS.c.state == DEAD, 1), else_=0)
        is_behind = func.max(is_dead).over(partition_by=EVENTS.c.subject, order_by=EVENTS.c.seq).label("is_behind")
        of_name = (EVENTS.c.name == self.name, EVENTS.c.blocks_subject)
        unfinished = select(EVENTS.c.state, is_behind).where(*of_name).subquery()
        held = (unfinished.c.state == WAITING, unfinished.c.is_behind == 1)
        return connection.execute(select(func.count()).select_from(unfinished).where(*held)).scalar_one()

    def dead(self) -> list[DeadEvent]:
        """Return the events that the service rejected, each with the reason, in the order of recording."""
        found = self._shown(EVENTS.c.state == DEAD)
        return [DeadEvent(died_at=datetime_of(row["finished_at"]), **shown) for row, shown in found]

    def failing(self) -> list[FailingEvent]:
        """Return the events whose last call failed, each with the reason, in the order of recording."""
        found = self._shown(EVENTS.c.state == WAITING, EVENTS.c.error.is_not(None))
        return [FailingEvent(next_attempt_at=datetime_of(row["due_at"]), **shown) for row, shown in found]

    def _shown(self, *conditions: ColumnElement[bool]) -> Iterator[tuple[RowMapping, dict[str, Any]]]:
        """Yield the rows of events, in the order of recording, and what a dead event and a failing one both show."""
        with self._checked_transaction() as connection:
            query = select(EVENTS).where(EVENTS.c.name == self.name, *conditions).order_by(EVENTS.c.seq)
            for row in connection.execute(query).mappings():
                yield (
                    row,
                    {
                        "id": row["event_id"],
                        "event": as_input(self._cipher.decrypt(row["event"], row["event_id"])),
                        "subject": from_ascii(row["subject"]),
                        "error": self._cipher.reason_in(row),
                        "attempts": row["attempts"],
                        "recorded_at": datetime_of(row["recorded_at"]),
                    },
                )

    def retry(self, event_id: str | None = None) -> int:
        """Let dead events be sent again, under their ids.

        Args:
            event_id: id of a dead event; None for all of them.

        Returns:
            The number of events.

        Raises:
            ValueError: no dead event has this id.
        """
        return self._change(event_id, [DEAD], self._retried)

    def discard(self, event_id: str, *, waiting: bool = False) -> None:
        """Discard a dead event, so that the later events of its subject are sent.

        Args:
            event_id: id of a dead event.
            waiting: also discard an event that waits, such as one that fails again and again. The service may have
                stored it. An event that is being sent now cannot be discarded.

        Raises:
            ValueError: no dead event has this id; with ``waiting``, no dead or waiting one.
            TypeError: the id is no string; there is no way to discard all of them at once.
        """
        if event_id is None:
            raise TypeError("event_id must be the id of a dead event, not None")
        values = {**self._discarded, "finished_at": self._clock.sql(self._database.dialect)}
        hints = {WAITING: "; pass waiting=True to give it up, although the service may have stored it"}
        self._change(event_id, [DEAD, WAITING] if waiting else [DEAD], values, hints=hints)

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
        age = milliseconds_of(older_than)
        old = EVENTS.c.finished_at < self._clock.sql(self._database.dialect) - age
        return self._change_in_steps(delete(EVENTS), EVENTS.c.state.in_((SENT, DISCARDED)), old)

    def clear(self) -> int:
        """Remove all events of this outbox's name, also those that wait, and what it knows about its request rate.

        It is for tests, such as between two that use one database. Outboxes of other names keep theirs. What an import
        has recorded stays known to it.

        Returns:
            The number of events.
        """
        return self._clear(RATES)

    def _forget(self, connection: Connection, person: Person) -> None:
        forget(connection, self.name, person, self._cipher)
