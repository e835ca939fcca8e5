"""What is done with stored events besides sending them: status, dead events, the removal of old ones, an update."""

from collections.abc import Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, func, select, update

from followup._store.clock import datetime_of, seconds_since
from followup._store.locks import LOCKS, take_lock
from followup.outbox.claims import lock_name
from followup.outbox.events import as_input, renewed_subject
from followup.outbox.reports import DeadEvent, FailingEvent, OutboxStatus
from followup.outbox.tables import DEAD, DISCARDED, EVENTS, IN_FLIGHT, OLDER_SUBJECTS, SENT, WAITING

_PURGED_AT_ONCE = 1000
"""Events that one transaction removes, so that it does not lock the database for long."""

_RENEWED_AT_ONCE = 100
"""Events that are in memory at once."""


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
    return [
        DeadEvent(
            id=row["event_id"],
            event=as_input(row["event"]),
            subject=row["subject"],
            error=row["error"] or "",
            attempts=row["attempts"],
            recorded_at=datetime_of(row["recorded_at"]),
            died_at=datetime_of(row["finished_at"]),
        )
        for row in connection.execute(query).mappings()
    ]


def failing(connection: Connection, name: str) -> list[FailingEvent]:
    """Return the events that wait for a retry, in the order in which they were recorded."""
    query = (
        select(EVENTS)
        .where(EVENTS.c.name == name, EVENTS.c.state == WAITING, EVENTS.c.error.is_not(None))
        .order_by(EVENTS.c.seq)
    )
    return [
        FailingEvent(
            id=row["event_id"],
            event=as_input(row["event"]),
            subject=row["subject"],
            error=row["error"],
            attempts=row["attempts"],
            recorded_at=datetime_of(row["recorded_at"]),
            next_attempt_at=datetime_of(row["due_at"]),
        )
        for row in connection.execute(query).mappings()
    ]


def retry(connection: Connection, name: str, event_id: str | None) -> int:
    """Let dead events be sent again, and return their number."""
    take_lock(connection, lock_name(name))
    values = {"state": WAITING, "blocks_subject": True, "due_at": 0, "finished_at": None, "error": None}
    return connection.execute(update(EVENTS).where(*_dead(name, event_id)).values(**values)).rowcount


def discard(connection: Connection, name: str, event_id: str, states: Sequence[str], now: int) -> int:
    """Give up the event if it is in one of these states, and return the number of events given up."""
    take_lock(connection, lock_name(name))
    values = {"state": DISCARDED, "blocks_subject": False, "finished_at": now}
    found = (EVENTS.c.name == name, EVENTS.c.event_id == event_id, EVENTS.c.state.in_(states))
    return connection.execute(update(EVENTS).where(*found).values(**values)).rowcount


_ADVICE = MappingProxyType(
    {
        WAITING: "it waits, and is sent when it is due",
        IN_FLIGHT: "a relay is sending it now; try again when it has ended",
        SENT: "the service has accepted it",
        DISCARDED: "it was discarded; record it under a new id to send it",
    }
)
"""What an action on a dead event says of one in another state."""

_WAITING_ADVICE = "it waits; pass waiting=True to give it up, although the service may have stored it"


def advice(connection: Connection, name: str, event_id: str | None, *, discarding: bool = False) -> str:
    """Return the end of the error of an action that has not found this event: the state in which it is."""
    of_event = select(EVENTS.c.state).where(EVENTS.c.name == name, EVENTS.c.event_id == event_id)
    state = connection.execute(of_event).scalar_one_or_none()
    found = _WAITING_ADVICE if discarding and state == WAITING else _ADVICE.get(state or "")
    return "" if found is None else f": {found}"


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


def _dead(name: str, event_id: str | None) -> Sequence[Any]:
    every = (EVENTS.c.name == name, EVENTS.c.state == DEAD)
    return every if event_id is None else (*every, EVENTS.c.event_id == event_id)
