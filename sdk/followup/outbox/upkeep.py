"""What is done with stored events besides sending them: status, dead events, the removal of old ones, an update."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
from sqlalchemy import Connection, RowMapping, bindparam, case, delete, func, select, update

from followup._store.clock import datetime_of, seconds_since
from followup._store.leases import take_lock
from followup._store.schema import DEAD, IN_FLIGHT, LOCKS, WAITING
from followup._store.store import check_found
from followup.outbox.claims import lock_name
from followup.outbox.events import as_input, renewed_subject
from followup.outbox.tables import DISCARDED, EVENTS, OLDER_SUBJECTS, SENT
from followup.resources.event_batches import EventInput

_PURGED_AT_ONCE = 1000
"""Events that one transaction removes, so that it does not lock the database for long."""

_RENEWED_AT_ONCE = 100
"""Events that are in memory at once."""


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
class DeadEvent:
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

    id: str
    event: EventInput = attrs.field(repr=False)
    subject: str = attrs.field(repr=False)
    error: str = attrs.field(repr=False)
    attempts: int
    recorded_at: datetime
    died_at: datetime


@attrs.frozen(kw_only=True)
class FailingEvent:
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

    id: str
    event: EventInput = attrs.field(repr=False)
    subject: str = attrs.field(repr=False)
    error: str = attrs.field(repr=False)
    attempts: int
    recorded_at: datetime
    next_attempt_at: datetime


def status(connection: Connection, name: str, now: int) -> OutboxStatus:
    """Return how many events there are, by what is next for them."""
    number = _count(connection, name, (WAITING, IN_FLIGHT, DEAD, SENT))
    held = _held(connection, name) if DEAD in number else 0
    oldest = select(func.min(EVENTS.c.recorded_at)).where(
        EVENTS.c.name == name, EVENTS.c.state.in_((WAITING, IN_FLIGHT))
    )
    return OutboxStatus(
        waiting=number.get(WAITING, 0) - held,
        in_flight=number.get(IN_FLIGHT, 0),
        held=held,
        dead=number.get(DEAD, 0),
        sent=number.get(SENT, 0),
        oldest_waiting_seconds=seconds_since(connection.execute(oldest).scalar_one(), now),
    )


def remaining(connection: Connection, name: str) -> int:
    """Return the number of events that a drain leaves to the next: those that wait or are in flight."""
    number = _count(connection, name, (WAITING, IN_FLIGHT, DEAD))
    held = _held(connection, name) if number.pop(DEAD, 0) else 0
    return sum(number.values()) - held


def dead(connection: Connection, name: str) -> list[DeadEvent]:
    """Return the dead events, in the order in which they were recorded."""
    query = select(EVENTS).where(EVENTS.c.name == name, EVENTS.c.state == DEAD).order_by(EVENTS.c.seq)
    rows = connection.execute(query).mappings()
    return [DeadEvent(died_at=datetime_of(row["finished_at"]), **_shown(row)) for row in rows]


def failing(connection: Connection, name: str) -> list[FailingEvent]:
    """Return the events that wait for a retry, in the order in which they were recorded."""
    is_failing = (EVENTS.c.name == name, EVENTS.c.state == WAITING, EVENTS.c.error.is_not(None))
    rows = connection.execute(select(EVENTS).where(*is_failing).order_by(EVENTS.c.seq)).mappings()
    return [FailingEvent(next_attempt_at=datetime_of(row["due_at"]), **_shown(row)) for row in rows]


def _shown(row: RowMapping) -> dict[str, Any]:
    """Return what a dead event and a failing one both show."""
    return {
        "id": row["event_id"],
        "event": as_input(row["event"]),
        "subject": row["subject"],
        "error": row["error"] or "",
        "attempts": row["attempts"],
        "recorded_at": datetime_of(row["recorded_at"]),
    }


def retry(connection: Connection, name: str, event_id: str | None) -> int:
    """Let dead events be sent again, and return their number.

    Raises:
        ValueError: no dead event has this id.
    """
    take_lock(connection, lock_name(name))
    dead = (
        EVENTS.c.name == name,
        EVENTS.c.state == DEAD,
        *([] if event_id is None else [EVENTS.c.event_id == event_id]),
    )
    values = {"state": WAITING, "blocks_subject": True, "due_at": 0, "finished_at": None, "error": None}
    count = connection.execute(update(EVENTS).where(*dead).values(**values)).rowcount
    return check_found(connection, EVENTS, name, event_id, count, DEAD)


def discard(connection: Connection, name: str, event_id: str, states: Sequence[str], now: int) -> None:
    """Give up the event if it is in one of these states.

    Raises:
        ValueError: it is not.
    """
    take_lock(connection, lock_name(name))
    values = {"state": DISCARDED, "blocks_subject": False, "finished_at": now}
    found = (EVENTS.c.name == name, EVENTS.c.event_id == event_id, EVENTS.c.state.in_(states))
    count = connection.execute(update(EVENTS).where(*found).values(**values)).rowcount
    hints = {WAITING: "; pass waiting=True to give it up, although the service may have stored it"}
    check_found(connection, EVENTS, name, event_id, count, " or ".join(states), hints)


def purge_some(connection: Connection, name: str, older_than: timedelta, now: int) -> int:
    """Remove some of the events that were accepted or given up so long ago, and return their number."""
    take_lock(connection, lock_name(name))
    limit = now - round(older_than / timedelta(milliseconds=1))
    old = (
        select(EVENTS.c.seq)
        .where(EVENTS.c.name == name, EVENTS.c.state.in_((SENT, DISCARDED)), EVENTS.c.finished_at < limit)
        .limit(_PURGED_AT_ONCE)
    )
    return connection.execute(delete(EVENTS).where(EVENTS.c.seq.in_(old))).rowcount


def has_older_subjects(connection: Connection) -> bool:
    """Return whether no relay has renewed the subjects since the tables were brought up to date."""
    return _renewals(connection) == 0


def renew_subjects(connection: Connection) -> None:
    """Give unfinished events of earlier releases the present default subjects, so that later events wait for them.

    It does so for all outboxes of the database, once.
    """
    take_lock(connection, OLDER_SUBJECTS)
    if _renewals(connection) != 1:
        return
    for name in connection.execute(select(EVENTS.c.name).distinct()).scalars().all():
        take_lock(connection, lock_name(name))
    unfinished = select(EVENTS.c.seq, EVENTS.c.event_id, EVENTS.c.event, EVENTS.c.subject).where(
        EVENTS.c.state.in_((WAITING, IN_FLIGHT, DEAD)), EVENTS.c.subject.startswith("patient:")
    )
    one = update(EVENTS).where(EVENTS.c.seq == bindparam("row")).values(subject=bindparam("renewed"))
    last = 0
    while rows := connection.execute(
        unfinished.where(EVENTS.c.seq > last).order_by(EVENTS.c.seq).limit(_RENEWED_AT_ONCE)
    ).all():
        last = rows[-1].seq
        connection.execute(
            one, [{"row": row.seq, "renewed": renewed_subject(row.event_id, row.event, row.subject)} for row in rows]
        )


def _renewals(connection: Connection) -> int | None:
    taken = select(LOCKS.c.times_taken).where(LOCKS.c.name == OLDER_SUBJECTS)
    return connection.execute(taken).scalar_one_or_none()


def _count(connection: Connection, name: str, states: Sequence[str]) -> dict[str, int]:
    """Return the number of events in each of the states that have any."""
    rows = connection.execute(
        select(EVENTS.c.state, func.count())
        .where(EVENTS.c.name == name, EVENTS.c.state.in_(states))
        .group_by(EVENTS.c.state)
    )
    return {row[0]: row[1] for row in rows}


def _held(connection: Connection, name: str) -> int:
    """Count the events that wait behind a dead one, in one pass over the events that are not finished."""
    is_dead = case((EVENTS.c.state == DEAD, 1), else_=0)
    is_behind = func.max(is_dead).over(partition_by=EVENTS.c.subject, order_by=EVENTS.c.seq).label("is_behind")
    unfinished = select(EVENTS.c.state, is_behind).where(EVENTS.c.name == name, EVENTS.c.blocks_subject).subquery()
    held = (unfinished.c.state == WAITING, unfinished.c.is_behind == 1)
    return connection.execute(select(func.count()).select_from(unfinished).where(*held)).scalar_one()
