"""Claims events that are due, and settles them after the call.

All claims of an outbox are made one after another, under one short lock. The service accepts ten calls a second, so
this costs nothing, and it is what keeps the order: an event is due only if no earlier event of its subject is still to
be accepted, and every earlier claim is visible to this one. SKIP LOCKED would lose that order.

However many events wait, a relay holds the lock only for those of one call: it looks for them before, without the lock,
and once it has the lock it takes those that still are due.

A claim takes a call from the request rate of all relays of the outbox, whose state is one row: when the next call may
begin. After a short burst, calls are spread evenly over the minute, so that no more than ``requests_per_minute`` begin
in any 60 seconds.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select, update

from followup._core.time import new_uuid
from followup._store import leases
from followup._store.cipher import RowCipher, UnreadableRows
from followup._store.dialects import dialect_of
from followup._store.schema import DEAD, IN_FLIGHT, WAITING
from followup.outbox.events import EVENTS, LARGEST_BATCH, RATES
from followup.outbox.verdicts import LONGEST_WAIT, Claim, ClaimedEvent, Settlement

LONGEST_LEASE = 30.0
"""Seconds, at most, that events are claimed."""

ABANDONED = "the attempt was not settled in time: its relay was killed or frozen, or lost the database"


def find_due(connection: Connection, name: str, now: int, unreadable: UnreadableRows) -> Sequence[int] | None:
    """Look for the events of the next call, without the lock, so that an idle relay writes nothing.

    Returns:
        Their rows, for ``claim``; none if only leases have ended; None if there is nothing to claim.
    """
    found = _find_free(connection, name, now, unreadable)
    over = select(EVENTS.c.seq).where(leases.is_over(EVENTS, name, now, LONGEST_LEASE)).limit(1)
    return found if found or connection.execute(over).first() is not None else None


def claim(
    connection: Connection,
    now: int,
    found: Sequence[int],
    unreadable: UnreadableRows,
    requests_per_minute: int,
    largest: int,
    lease_seconds: float,
) -> Claim | float | None:
    """Claim the events of the next call.

    Args:
        connection: a connection in a transaction that holds the lock, so that every statement sees what the previous
            holder committed.
        now: the current time, read under the lock.
        found: the rows that ``find_due`` has found.
        unreadable: takes the events that cannot be decrypted, and that stay as they are.
        requests_per_minute: maximum number of calls in any 60 s.
        largest: maximum number of events.
        lease_seconds: how long the events belong to this process.

    Returns:
        The claim; the seconds to wait if the request rate allows no call yet; None if no event is due any more.
    """
    name = unreadable.name
    leases.end_leases(connection, EVENTS, name, now, LONGEST_LEASE, ABANDONED)
    # Asked again under the lock, because another relay may have claimed some of them since.
    still_free = select(EVENTS).where(EVENTS.c.seq.in_(found), _are_free(name, now, unreadable))
    rows = connection.execute(still_free.order_by(EVENTS.c.seq)).all()
    texts = {row.seq: text for row in rows if (text := unreadable.read(row, row.event)) is not None}
    rows = [row for row in rows if row.seq in texts]
    if not rows:
        return None
    # Only now, so that no call is reserved for which there is no event.
    if wait := _reserve(connection, name, requests_per_minute, now):
        return wait / 1000
    token, ends_at = new_uuid().hex, now + leases.in_milliseconds(lease_seconds)
    # The largest batch from the beginning that is within the limits of all of its events.
    limits = itertools.accumulate((row.batch_limit for row in rows), min, initial=largest)
    batch = rows[: max(1, sum(size <= limit for size, limit in enumerate(limits)) - 1)]
    connection.execute(
        update(EVENTS)
        .where(EVENTS.c.seq.in_([row.seq for row in batch]))
        .values(state=IN_FLIGHT, lease_token=token, lease_ends_at=ends_at, attempts=EVENTS.c.attempts + 1)
    )
    return Claim(token, [ClaimedEvent(row.event_id, texts[row.seq], row.attempts + 1) for row in batch])


def settle(
    connection: Connection, cipher: RowCipher, now: int, lease_token: str, settlement: Settlement, *, holds: bool
) -> bool:
    """Store what became of the events of a claim, unless the lease has ended and another process has them.

    Args:
        connection: a connection in a transaction that holds the lock.
        cipher: the cipher of the outbox.
        now: the current time.
        lease_token: the token of the claim.
        settlement: what became of the events.
        holds: whether a rejected event blocks the later events of its subject.

    Returns:
        Whether the events were still claimed under this token.
    """
    name = cipher.name
    ours = select(EVENTS.c.seq).where(EVENTS.c.name == name, EVENTS.c.lease_token == lease_token).limit(1)
    if connection.execute(ours).first() is None:
        return False
    one = (
        update(EVENTS)
        .where(EVENTS.c.name == name, EVENTS.c.event_id == bindparam("id"), EVENTS.c.lease_token == lease_token)
        .values(
            state=bindparam("becomes"),
            blocks_subject=bindparam("blocks"),
            due_at=bindparam("due"),
            finished_at=bindparam("finished"),
            error=bindparam("reason"),
            attempts=EVENTS.c.attempts - (0 if settlement.counts_as_attempt else 1),
            batch_limit=EVENTS.c.batch_limit if settlement.batch_limit is None else settlement.batch_limit,
            **leases.RELEASED,
        )
    )
    rows = [
        {
            "id": event_id,
            "becomes": verdict.state,
            "blocks": verdict.state == WAITING or (verdict.state == DEAD and holds),
            "due": now + verdict.wait,
            "finished": None if verdict.state == WAITING else now,
            "reason": cipher.reason(verdict.reason),
        }
        for event_id, verdict in settlement.verdicts.items()
    ]
    if rows:
        connection.execute(one, rows)
    return True


def _are_free(name: str, now: int, unreadable: UnreadableRows) -> ColumnElement[bool]:
    """Return the condition that an event may be sent now: it is due, and no earlier one of its subject is in the way.

    As SQL::

        name = :name AND state = 'waiting' AND (due_at <= :now OR due_at > :latest) AND seq = (
            SELECT min(first.seq) FROM followup_outbox AS first
            WHERE first.name = :name AND first.blocks_subject AND first.subject = followup_outbox.subject
        )

    With NOT EXISTS, PostgreSQL would join a new table, about which it knows nothing, with itself. So it looks into the
    index ``followup_outbox_by_order``, once for each event.
    """
    first = EVENTS.alias("first")
    of_subject = (first.c.name == name, first.c.blocks_subject, first.c.subject == EVENTS.c.subject)
    is_first = EVENTS.c.seq == select(func.min(first.c.seq)).where(*of_subject).scalar_subquery()
    is_due = leases.is_due(EVENTS.c, now, LONGEST_WAIT)
    return and_(EVENTS.c.name == name, EVENTS.c.state == WAITING, is_due, is_first, unreadable.are_not(EVENTS.c.seq))


_LOOKED_AT = 500
"""Events that are due, of which each is asked whether it is the first of its subject."""


def _find_free(connection: Connection, name: str, now: int, unreadable: UnreadableRows) -> Sequence[int]:
    """Return the rows of the first events that may be sent now, in the order in which they were recorded."""
    is_due = (leases.is_due(EVENTS.c, now, LONGEST_WAIT), unreadable.are_not(EVENTS.c.seq))
    due = select(EVENTS.c.seq).where(EVENTS.c.name == name, EVENTS.c.state == WAITING, *is_due)
    looked_at = connection.execute(due.order_by(EVENTS.c.seq).limit(_LOOKED_AT)).scalars().all()
    if not looked_at:
        return []
    free = select(EVENTS.c.seq).where(_are_free(name, now, unreadable), EVENTS.c.seq <= looked_at[-1])
    found = connection.execute(free.order_by(EVENTS.c.seq).limit(LARGEST_BATCH)).scalars().all()
    if len(looked_at) < _LOOKED_AT or len(found) == LARGEST_BATCH:
        return found
    # Most of these wait for others of their subjects, and so may many thousands more. Asking each of them takes
    # seconds, so look in one pass at the first event of each subject.
    head = func.min(EVENTS.c.seq).over(partition_by=EVENTS.c.subject, order_by=EVENTS.c.seq).label("head")
    unfinished = select(EVENTS.c.seq, EVENTS.c.state, EVENTS.c.due_at, head)
    each = unfinished.where(EVENTS.c.name == name, EVENTS.c.blocks_subject).subquery().c
    is_due = (leases.is_due(each, now, LONGEST_WAIT), unreadable.are_not(each.seq))
    heads = select(each.seq).where(each.seq == each.head, each.state == WAITING, *is_due)
    return connection.execute(heads.order_by(each.seq).limit(LARGEST_BATCH)).scalars().all()


_BURST_SHARE = 10
"""``requests_per_minute`` divided by this is the number of calls that may begin at once."""

_TOLERATED_FAILURES = 2
"""Calls that may fail one after another before all relays pause: the network drops single calls."""

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
"""Seconds."""

_LONGEST_RETRY_AFTER = 3600.0
"""Seconds. A longer ``Retry-After`` is most likely a mistake, and must not stop the outbox for days."""


def _reserve(connection: Connection, name: str, requests_per_minute: int, now: int) -> int:
    """Reserve a call that begins now.

    Returns:
        0 if the call is reserved; otherwise the milliseconds to wait before the next try.
    """
    rate = connection.execute(select(RATES).where(RATES.c.name == name)).one_or_none()
    if rate is None:
        values = {"name": name, "next_call_at": 0, "moved_at": 0, "failures_in_a_row": 0}
        connection.execute(dialect_of(connection.dialect.name).insert_if_absent(RATES, **values))
        return _reserve(connection, name, requests_per_minute, now)
    next_call_at = _next_call_at(rate, now)
    if next_call_at > now:
        if rate.moved_at > now:
            # Otherwise it would stay as far ahead until the clock has caught up.
            _move(connection, name, now, next_call_at)
        return next_call_at - now
    # After a burst the other calls of the minute are so far apart that all of them together are as many as allowed.
    burst = max(1, requests_per_minute // _BURST_SHARE) - 1
    between = math.ceil(60_000 / (requests_per_minute - burst))
    _move(connection, name, now, max(next_call_at, now - burst * between) + between)
    return 0


def _next_call_at(rate: Any, now: int) -> int:
    """Return when the next call may begin, which stays as far ahead as it was if the clock was set back since."""
    next_call_at: int = rate.next_call_at - max(0, rate.moved_at - now)
    return next_call_at


def _move(connection: Connection, name: str, now: int, next_call_at: int, **values: int) -> None:
    moved = {"next_call_at": next_call_at, "moved_at": now, **values}
    connection.execute(update(RATES).where(RATES.c.name == name).values(moved))


def note_health(connection: Connection, name: str, now: int, settlement: Settlement) -> None:
    """Record whether the service works; let all relays pause after a ``Retry-After``, or after several failures."""
    if settlement.service is None:
        return
    rate = connection.execute(select(RATES).where(RATES.c.name == name)).one_or_none()
    failures = rate.failures_in_a_row + 1 if settlement.service == "fails" and rate is not None else 0
    if rate is None or failures == rate.failures_in_a_row:
        return  # removed since by ``clear``; or it works still
    pauses = failures - _TOLERATED_FAILURES
    seconds = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(pauses - 1, 10)) if pauses > 0 else 0.0
    if settlement.retry_after is not None:
        seconds = min(settlement.retry_after, _LONGEST_RETRY_AFTER)
    next_call_at = max(_next_call_at(rate, now), now + math.ceil(seconds * 1000))
    _move(connection, name, now, next_call_at, failures_in_a_row=failures)
