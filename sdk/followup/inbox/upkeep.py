"""Looks after the events of an inbox: counts them, lists dead ones, tries them again, and purges done ones."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal, get_args

import attrs
from sqlalchemy import select, update

from followup._core.codec.decode import decode
from followup._store.erasure import PersonalData
from followup._store.leases import datetime_of
from followup._store.schema import DEAD, IN_FLIGHT, WAITING
from followup._store.store import milliseconds_of
from followup.inbox.arrivals import CURSORS, DONE, EVENTS, SCHEMA, UNHANDLED
from followup.resources.webhook_event import WebhookEvent

FinishedState = Literal["done", "dead", "unhandled"]

FINISHED_STATES: tuple[str, ...] = get_args(FinishedState)


@attrs.define(kw_only=True)
class DrainReport:
    """What a call of ``drain`` did.

    Attributes:
        done: number of events whose handler's transaction committed.
        failed: number of attempts that failed; their events are tried again.
        dead: number of events that failed for the last time.
        unhandled: number of events for which there was no handler.
        remaining: number of events that wait, for a retry too, or are in flight.
    """

    done: int = 0
    failed: int = 0
    dead: int = 0
    unhandled: int = 0
    remaining: int = 0


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


class ReceivedEvents(PersonalData):
    """The received events of an inbox, and what a person does with them."""

    _schema = SCHEMA
    _events = EVENTS
    _encrypted = ("body", "error")
    _given_up = DEAD
    _content, _about, _stored_at = "body", "ref", "received_at"
    _emptied = MappingProxyType({"body": None, "ref": ""})
    _is_there = EVENTS.c.body.is_not(None)
    _retried = MappingProxyType({"state": WAITING, "attempts": 0, "due_at": 0, "finished_at": None})

    def status(self) -> InboxStatus:
        """Return how many events wait, are in flight, dead, unhandled and done, and how long the oldest has waited."""
        with self._checked_transaction() as connection:
            number = self._count(connection, EVENTS.c.body.is_not(None))
            counts = {state: number.get(state, 0) for state in (WAITING, IN_FLIGHT, DEAD, UNHANDLED, DONE)}
            age = self._age_of_oldest(connection, EVENTS.c.received_at)
            return InboxStatus(**counts, oldest_waiting_seconds=age)

    def dead(self) -> list[DeadEvent]:
        """Return the dead events, oldest first, with their errors, which may contain personal data."""
        query = select(EVENTS).where(EVENTS.c.name == self.name, EVENTS.c.state == DEAD, EVENTS.c.body.is_not(None))
        with self._checked_transaction() as connection:
            return [
                DeadEvent(
                    event=decode(WebhookEvent, json.loads(self._cipher.decrypt(bytes(row["body"]), row["event_id"]))),
                    error=self._cipher.reason_in(row),
                    attempts=row["attempts"],
                    received_at=datetime_of(row["received_at"]),
                )
                for row in connection.execute(query.order_by(EVENTS.c.occurred_at, EVENTS.c.seq)).mappings()
            ]

    def _done(self) -> Sequence[str]:
        """Return the ids of the events whose work is done."""
        query = select(EVENTS.c.event_id).where(EVENTS.c.name == self.name, EVENTS.c.state == DONE)
        with self._checked_transaction() as connection:
            return connection.execute(query.order_by(EVENTS.c.seq)).scalars().all()

    def retry(self, event_id: str | None = None) -> int:
        """Let dead and unhandled events be handled again, from their first attempt.

        Args:
            event_id: one event; by default all of them.

        Returns:
            The number of events.

        Raises:
            ValueError: the event is neither dead nor unhandled, or there is none with this id.
        """
        hints: dict[str, str] = dict.fromkeys((DEAD, UNHANDLED), ", but its content was purged")
        return self._change(event_id, [DEAD, UNHANDLED], self._retried, EVENTS.c.body.is_not(None), hints=hints)

    def purge(self, *, older_than: timedelta, states: Collection[FinishedState] = frozenset({"done"})) -> int:
        """Remove the content of events that were finished long ago: their bodies and errors.

        The ids remain, so that a delivery that is repeated later is not handled again.

        Args:
            older_than: age, counted from the end of the last attempt.
            states: ``done``, ``dead`` or ``unhandled``; a dead or unhandled event that is purged cannot be retried.

        Returns:
            The number of events.

        Raises:
            ValueError: an argument is invalid.
        """
        age = milliseconds_of(older_than)
        if isinstance(states, str) or not states or not set(states) <= set(FINISHED_STATES):
            raise ValueError(f"states must contain one or more of {', '.join(FINISHED_STATES)}")
        old = EVENTS.c.finished_at <= self._clock.sql(self._database.dialect) - age
        is_there = (EVENTS.c.state.in_(states), EVENTS.c.body.is_not(None))
        return self._change_in_steps(update(EVENTS).values(body=None, error=None), *is_there, old)

    def clear(self) -> int:
        """Remove all events of this inbox's name with their ids, also those that wait, and how far it has caught up.

        It is for tests, such as between two that use one database. Inboxes of other names keep theirs. An event that
        arrives again afterwards is handled again.

        Returns:
            The number of events.
        """
        return self._clear(CURSORS)

    def _remaining(self) -> int:
        """Return the number of events that wait, for a retry too, or are in flight."""
        with self._checked_transaction() as connection:
            return sum(self._count(connection, EVENTS.c.state.in_((WAITING, IN_FLIGHT))).values())
