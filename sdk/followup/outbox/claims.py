"""Claims events that are due, and settles them after the call.

All claims of an outbox are made one after another, under one short lock. The service accepts ten calls a second, so
this costs nothing, and it is what keeps the order: an event is due only if no earlier event of its subject is still to
be accepted, and every earlier claim is visible to this one. SKIP LOCKED would lose that order.

However many events wait, a relay holds the lock only for those of one call: it looks for them before, without the lock,
and once it has the lock it takes those that still are due.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from sqlalchemy import (
    ColumnElement,
    Connection,
    Update,
    and_,
    bindparam,
    func,
    or_,
    select,
    update,
)

from followup._store.clock import StoreTime, current_time
from followup._store.leases import new_token
from followup._store.locks import take_lock
from followup._store.statements import UNSTORABLE, execute_unless_refused
from followup.outbox import governor
from followup.outbox.tables import DEAD, EVENTS, IN_FLIGHT, LARGEST_BATCH, SENT, WAITING

LONGEST_LEASE = 30.0
"""Seconds, at most, that events are claimed."""

LONGEST_WAIT = 300.0
"""Seconds, at most, between two attempts to send an event."""

ABANDONED = "the attempt was not settled in time: its relay was killed or frozen, or lost the database"

_LOOKED_AT = 500
"""Events that are looked at in the order of recording. If too few of them are free, all subjects are."""

logger = logging.getLogger("followup.outbox")


@attrs.frozen
class ClaimedEvent:
    """An event that this process may send.

    Attributes:
        attempts: number of times that it has been sent, this time included.
        trace_context: the trace in which it was recorded, as text.
    """

    id: str
    text: str = attrs.field(repr=False)
    attempts: int
    trace_context: str | None = None


@attrs.frozen
class Claim:
    """The events of one call, claimed until the lease ends."""

    lease_token: str
    events: Sequence[ClaimedEvent]


@attrs.frozen
class Wait:
    """Events are due, but the request rate allows no call yet."""

    seconds: float


@attrs.frozen(kw_only=True)
class Settlement:
    """What becomes of the events of a claim. Those that are not named wait for the rest of their lease.

    Attributes:
        accepted: ids of the events that the service accepted.
        rejected: reasons by id, of the events that it rejected.
        waits: milliseconds until the next attempt by id, of the others.
        errors: reasons by id, of the others.
        batch_limit: the largest batch in which the others may be sent; None if that does not change.
        counts_as_attempt: whether the events were sent.
    """

    accepted: Sequence[str] = ()
    rejected: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    waits: Mapping[str, int] = attrs.field(factory=dict)
    errors: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    batch_limit: int | None = None
    counts_as_attempt: bool = True


def lock_name(name: str) -> str:
    """Return the name of the lock of an outbox."""
    return f"outbox:{name}"


def find_due(connection: Connection, name: str, clock: StoreTime) -> Sequence[int] | None:
    """Look for the events of the next call, without the lock, so that an idle relay writes nothing.

    Returns:
        Their rows, for ``claim``; none if only leases have ended; None if there is nothing to claim.
    """
    now = current_time(connection, clock)
    found = _free_rows(connection, name, now)
    expired = select(EVENTS.c.seq).where(_in_flight(name), or_(_has_ended(now), _ends_too_late(now))).limit(1)
    return found if found or connection.execute(expired).first() is not None else None


def claim(
    connection: Connection,
    name: str,
    clock: StoreTime,
    found: Sequence[int],
    *,
    requests_per_minute: int,
    lease_seconds: float,
) -> Claim | Wait | None:
    """Claim the events of the next call.

    Args:
        connection: a connection in a transaction of its own.
        name: name of the outbox.
        clock: the clock of the outbox.
        found: the rows that ``find_due`` has found.
        requests_per_minute: maximum number of calls in any 60 s.
        lease_seconds: how long the events belong to this process.

    Returns:
        The claim; a wait if the request rate allows no call yet; None if none of the events is due any more.
    """
    take_lock(connection, lock_name(name))
    # From here on every statement sees what the previous holder of the lock committed.
    now = current_time(connection, clock)
    connection.execute(
        update(EVENTS)
        .where(_in_flight(name), _has_ended(now))
        .values(state=WAITING, lease_token=None, lease_ends_at=None, error=ABANDONED)
    )
    # The call may still be in flight, so that its lease goes on, for as long as any lease lasts.
    latest = now + _in_milliseconds(LONGEST_LEASE)
    connection.execute(update(EVENTS).where(_in_flight(name), _ends_too_late(now)).values(lease_ends_at=latest))
    still_due = (
        select(
            EVENTS.c.seq,
            EVENTS.c.subject,
            EVENTS.c.event_id,
            EVENTS.c.event,
            EVENTS.c.attempts,
            EVENTS.c.batch_limit,
            EVENTS.c.trace_context,
        )
        .where(EVENTS.c.seq.in_(found), EVENTS.c.state == WAITING, _is_due_at(EVENTS.c.due_at, now))
        .order_by(EVENTS.c.seq)
    )
    rows = _unblocked(connection, name, connection.execute(still_due).all())
    if not rows:
        return None
    token, ends_at = new_token(), now + _in_milliseconds(lease_seconds)
    wait = governor.reserve(connection, name, requests_per_minute, now, token, ends_at)
    if wait:
        return Wait(wait / 1000)
    batch = rows[: _batch_size(row.batch_limit for row in rows)]
    connection.execute(
        update(EVENTS)
        .where(EVENTS.c.seq.in_([row.seq for row in batch]))
        .values(state=IN_FLIGHT, lease_token=token, lease_ends_at=ends_at, attempts=EVENTS.c.attempts + 1)
    )
    events = [ClaimedEvent(row.event_id, row.event, row.attempts + 1, row.trace_context) for row in batch]
    return Claim(token, events)


def settle(
    connection: Connection, name: str, now: int, lease_token: str, settlement: Settlement, *, holds: bool
) -> bool:
    """Store what became of the events of a claim, unless the lease has ended and another process has them.

    Args:
        connection: a connection in a transaction that holds the lock.
        name: name of the outbox.
        now: the current time.
        lease_token: the token of the claim.
        settlement: what became of the events.
        holds: whether a rejected event blocks the later events of its subject.

    Returns:
        Whether the events were still claimed under this token.
    """
    ours = select(EVENTS.c.seq).where(EVENTS.c.name == name, EVENTS.c.lease_token == lease_token).limit(1)
    if connection.execute(ours).first() is None:
        return False
    one = update(EVENTS).where(
        EVENTS.c.name == name, EVENTS.c.event_id == bindparam("id"), EVENTS.c.lease_token == lease_token
    )
    free = {"lease_token": None, "lease_ends_at": None}
    done = {**free, "finished_at": now}
    if settlement.accepted:
        accepted = one.values(state=SENT, blocks_subject=False, error=None, **done)
        _store_each(connection, accepted, [{"id": each} for each in settlement.accepted])
    if settlement.rejected:
        rejected = one.values(
            state=DEAD, blocks_subject=holds, error=bindparam("reason", type_=EVENTS.c.error.type), **done
        )
        reasons = settlement.rejected.items()
        _store_each(connection, rejected, [{"id": each, "reason": reason} for each, reason in reasons])
    if settlement.waits:
        attempts = EVENTS.c.attempts - (0 if settlement.counts_as_attempt else 1)
        waiting = one.values(
            state=WAITING,
            due_at=bindparam("due"),
            error=bindparam("reason", type_=EVENTS.c.error.type),
            attempts=attempts,
            batch_limit=EVENTS.c.batch_limit if settlement.batch_limit is None else settlement.batch_limit,
            **free,
        )
        parameters = [
            {"id": each, "due": now + wait, "reason": settlement.errors.get(each)}
            for each, wait in settlement.waits.items()
        ]
        _store_each(connection, waiting, parameters)
    return True


def _store_each(connection: Connection, statement: Update, rows: Sequence[dict[str, Any]]) -> None:
    """Execute a statement for each event, so that one which the database rejects stops no other.

    An event whose reason is rejected, as by an encoding that lacks a character, is stored with another reason. One
    that is rejected as such stays claimed until its lease ends.
    """
    if not isinstance(execute_unless_refused(connection, statement, rows), str):
        return
    for row in rows:
        stored = execute_unless_refused(connection, statement, [row])
        if isinstance(stored, str) and row.get("reason"):
            stored = execute_unless_refused(connection, statement, [{**row, "reason": UNSTORABLE}])
        if isinstance(stored, str):
            logger.error("event %s cannot be settled: %s", row["id"], stored)


def _in_flight(name: str) -> ColumnElement[bool]:
    return and_(EVENTS.c.name == name, EVENTS.c.state == IN_FLIGHT)


def _has_ended(now: int) -> ColumnElement[bool]:
    return EVENTS.c.lease_ends_at <= now


def _ends_too_late(now: int) -> ColumnElement[bool]:
    """Return the condition that a lease ends later than any can: it began before the clock was set back."""
    return EVENTS.c.lease_ends_at > now + _in_milliseconds(LONGEST_LEASE)


def _is_due_at(due_at: ColumnElement[int], now: int) -> ColumnElement[bool]:
    """Return the condition that the wait of an event is over, or began before the clock was set back."""
    return or_(due_at <= now, due_at > now + _in_milliseconds(LONGEST_WAIT))


def _in_milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _free_rows(connection: Connection, name: str, now: int) -> Sequence[int]:
    """Return the rows of the first events that may be sent now, in the order in which they were recorded.

    Each statement is one pass in whatever plan a database makes, which may know nothing about a new table.
    """
    due = (EVENTS.c.name == name, EVENTS.c.state == WAITING, _is_due_at(EVENTS.c.due_at, now))
    first = select(EVENTS.c.seq, EVENTS.c.subject).where(*due).order_by(EVENTS.c.seq).limit(_LOOKED_AT)
    rows = connection.execute(first).all()
    found = [row.seq for row in _unblocked(connection, name, rows)]
    if len(rows) < _LOOKED_AT or len(found) >= LARGEST_BATCH:
        return found[:LARGEST_BATCH]
    # Most of these wait for others of their subjects, so look at the first event of each subject.
    head = func.min(EVENTS.c.seq).over(partition_by=EVENTS.c.subject, order_by=EVENTS.c.seq).label("head")
    unfinished = select(EVENTS.c.seq, EVENTS.c.state, EVENTS.c.due_at, head)
    each = unfinished.where(EVENTS.c.name == name, EVENTS.c.blocks_subject).subquery().c
    heads = select(each.seq).where(each.seq == each.head, each.state == WAITING, _is_due_at(each.due_at, now))
    return connection.execute(heads.order_by(each.seq).limit(LARGEST_BATCH)).scalars().all()


def _unblocked(connection: Connection, name: str, rows: Sequence[Any]) -> Sequence[Any]:
    """Return those of the rows whose subjects have no earlier event that is still to be accepted."""
    if not rows:
        return rows
    heads = (
        select(func.min(EVENTS.c.seq))
        .where(
            EVENTS.c.name == name,
            EVENTS.c.blocks_subject,
            EVENTS.c.subject.in_({row.subject for row in rows}),
            EVENTS.c.seq <= rows[-1].seq,
        )
        .group_by(EVENTS.c.subject)
    )
    found = {*connection.execute(heads).scalars()}
    return [row for row in rows if row.seq in found]


def _batch_size(limits: Iterable[int]) -> int:
    """Return the size of the largest batch from the beginning that is within the limits of all of its events."""
    size = 0
    smallest = LARGEST_BATCH
    for limit in limits:
        smallest = min(smallest, limit)
        if size + 1 > smallest:
            break
        size += 1
    return max(size, 1)
