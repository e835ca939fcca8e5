"""What people and monitors do with an outbox: its status, its dead events, and the removal of old ones."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, exists, func, select, update

from followup._store.clock import datetime_of, seconds_since
from followup._store.locks import take_lock
from followup.outbox.claims import lock_name
from followup.outbox.events import as_input
from followup.outbox.reports import DeadEvent, FailingEvent, OutboxStatus
from followup.outbox.tables import DEAD, DISCARDED, EVENTS, IN_FLIGHT, SENT, WAITING

_PURGED_AT_ONCE = 1000
"""Events that one transaction removes, so that it does not lock the database for long."""


def status(connection: Connection, name: str, now: int) -> OutboxStatus:
    """Return how many events there are, by what is next for them."""
    counts = select(EVENTS.c.state, func.count(), func.min(EVENTS.c.recorded_at)).where(EVENTS.c.name == name)
    found = {state: (count, oldest) for state, count, oldest in connection.execute(counts.group_by(EVENTS.c.state))}
    held = connection.execute(select(func.count()).select_from(EVENTS).where(*_held(name))).scalar_one()
    oldest = [found[state][1] for state in (WAITING, IN_FLIGHT) if state in found]
    number = {state: count for state, (count, _) in found.items()}
    return OutboxStatus(
        waiting=number.get(WAITING, 0) - held,
        in_flight=number.get(IN_FLIGHT, 0),
        held=held,
        dead=number.get(DEAD, 0),
        sent=number.get(SENT, 0),
        oldest_waiting_seconds=seconds_since(min(oldest, default=None), now),
    )


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


def _held(name: str) -> Sequence[Any]:
    dead = EVENTS.alias("dead")
    return (
        EVENTS.c.name == name,
        EVENTS.c.state == WAITING,
        exists().where(
            dead.c.name == EVENTS.c.name,
            dead.c.subject == EVENTS.c.subject,
            dead.c.blocks_subject,
            dead.c.seq < EVENTS.c.seq,
            dead.c.state == DEAD,
        ),
    )


def _dead(name: str, event_id: str | None) -> Sequence[Any]:
    every = (EVENTS.c.name == name, EVENTS.c.state == DEAD)
    return every if event_id is None else (*every, EVENTS.c.event_id == event_id)
