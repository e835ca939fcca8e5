"""Looks after the events of an inbox: counts them, lists dead ones, tries them again, and purges done ones."""

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Literal, get_args

import attrs
from sqlalchemy import Connection, func, select, update

from followup._codec.decode import decode
from followup._store.clock import StoreTime, datetime_of, seconds_since
from followup._store.schema import DEAD, IN_FLIGHT, WAITING
from followup._store.store import check_found
from followup.inbox.tables import DONE, EVENTS, UNHANDLED
from followup.webhooks import WebhookEvent

FinishedState = Literal["done", "dead", "unhandled"]

FINISHED_STATES: tuple[str, ...] = get_args(FinishedState)


@attrs.frozen
class InboxStatus:
    """The number of events of an inbox in each state.

    Attributes:
        waiting: events that will be handled, for the first time or again.
        in_flight: events that a process is handling.
        dead: events whose handler failed ``max_attempts`` times; ``retry`` tries them again.
        unhandled: events whose type had no handler; ``retry`` takes them too.
        done: events whose work is done, without those that were purged.
        oldest_waiting_seconds: age of the oldest event that waits or is in flight; None if there is none.
    """

    waiting: int
    in_flight: int
    dead: int
    unhandled: int
    done: int
    oldest_waiting_seconds: float | None


@attrs.frozen
class DeadEvent:
    """An event that was given up after its last attempt. ``repr`` shows neither its data nor its error.

    Attributes:
        event: the event.
        error: the exception of the last attempt. Its text may have personal data.
        attempts: number of attempts.
        received_at: time at which it arrived.
    """

    event: WebhookEvent
    error: str = attrs.field(repr=False)
    attempts: int
    received_at: datetime


def status(connection: Connection, name: str, clock: StoreTime) -> InboxStatus:
    """Count the events."""
    now = clock.milliseconds(connection)
    rows = connection.execute(
        select(EVENTS.c.state, func.count(), func.min(EVENTS.c.received_at))
        .where(EVENTS.c.name == name, EVENTS.c.body.is_not(None))
        .group_by(EVENTS.c.state)
    )
    found = {state: (count, oldest) for state, count, oldest in rows}
    counts = {state: found.get(state, (0, None))[0] for state in (WAITING, IN_FLIGHT, DEAD, UNHANDLED, DONE)}
    oldest = [found[state][1] for state in (WAITING, IN_FLIGHT) if state in found]
    return InboxStatus(**counts, oldest_waiting_seconds=seconds_since(min(oldest, default=None), now))


def dead(connection: Connection, name: str) -> list[DeadEvent]:
    """Return the dead events, oldest first."""
    rows = connection.execute(
        select(EVENTS)
        .where(EVENTS.c.name == name, EVENTS.c.state == DEAD, EVENTS.c.body.is_not(None))
        .order_by(EVENTS.c.occurred_at, EVENTS.c.seq)
    )
    return [
        DeadEvent(
            event=decode(WebhookEvent, json.loads(bytes(row.body))),
            error=row.error,
            attempts=row.attempts,
            received_at=datetime_of(row.received_at),
        )
        for row in rows
    ]


def retry(connection: Connection, name: str, event_id: str | None) -> int:
    """Let dead and unhandled events wait again; return how many these are.

    Raises:
        ValueError: no such event has this id.
    """
    chosen = update(EVENTS).where(
        EVENTS.c.name == name, EVENTS.c.state.in_([DEAD, UNHANDLED]), EVENTS.c.body.is_not(None)
    )
    if event_id is not None:
        chosen = chosen.where(EVENTS.c.event_id == event_id)
    count = connection.execute(chosen.values(state=WAITING, attempts=0, due_at=0, finished_at=None)).rowcount
    hints: dict[str, str] = dict.fromkeys((DEAD, UNHANDLED), ", but its content was purged")
    return check_found(connection, EVENTS, name, event_id, count, "dead or unhandled", hints)


def purge(
    connection: Connection, name: str, clock: StoreTime, older_than: timedelta, states: Collection[FinishedState]
) -> int:
    """Remove the content of finished events; return how many these are."""
    until = max(0, clock.milliseconds(connection) - older_than // timedelta(milliseconds=1))
    purging = update(EVENTS).where(
        EVENTS.c.name == name,
        EVENTS.c.state.in_(states),
        EVENTS.c.finished_at <= until,
        EVENTS.c.body.is_not(None),
    )
    return connection.execute(purging.values(body=None, error=None)).rowcount
