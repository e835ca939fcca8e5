"""Claims an event for a process, and settles it.

Events of one ref are handled one at a time, oldest first. A claim therefore skips each event whose ref has another one
in flight, or an older one that waits. Claims are made under one lock for each inbox, so two processes never decide at
the same time.

A claim is a lease. At its end another process may claim the event again, so whoever settles it has to prove that the
lease is still its own: ``mark_done`` is part of the handler's transaction, and fails after the end.
"""

from typing import Any

import attrs
from sqlalchemy import ColumnElement, Connection, Update, and_, exists, or_, select, tuple_, update

from followup._core.time import new_uuid
from followup._store import leases
from followup._store.cipher import UnreadableRows
from followup._store.dialects import Dialect, dialect_of
from followup._store.execution import Execution, is_missing_table, tables_in
from followup._store.leases import StoreTime
from followup._store.schema import DEAD, IN_FLIGHT, WAITING
from followup.inbox.arrivals import DONE, EVENTS, UNHANDLED

LONGEST_WAIT = 600.0
"""Seconds, at most, between two attempts to handle an event."""

ABANDONED = "the attempt did not end in time: its process was killed, or its handler took longer than handler_timeout"

_ANOTHER_DATABASE = "connection is not to the database of the inbox, so that the event cannot be marked as done with it"
_ALREADY_DONE = "the event is marked as done already, by an earlier call of received.done or by another worker"
_LEASE_ENDED = (
    "the handler took longer than handler_timeout, so that the event is no longer its own: let your transaction roll "
    "back, because another attempt handles the event"
)


@attrs.frozen
class Claim:
    """An event that this process may handle until its lease ends.

    Attributes:
        seq: the row.
        token: proves that the lease is one's own.
        body: the raw body.
        attempt: number of this attempt.
        is_stale: whether a newer event of the same ref is done.
    """

    seq: int
    token: str
    event_id: str
    type: str
    body: bytes = attrs.field(repr=False)
    attempt: int
    is_stale: bool


def is_work_due(connection: Connection, name: str, now: leases.Now, timeout: float, unreadable: UnreadableRows) -> bool:
    """Return whether a claim is worth the lock. An event that waits for an older one of its ref counts too."""
    is_waiting = and_(_is_due(name, now), unreadable.are_not(EVENTS.c.seq))
    is_due = exists().where(or_(is_waiting, leases.is_over(EVENTS, name, now, timeout)))
    return bool(connection.execute(select(is_due)).scalar_one())


def claim_next(
    connection: Connection, name: str, now: int, timeout: float, max_attempts: int, unreadable: UnreadableRows
) -> tuple[Claim | None, int]:
    """Claim the oldest event that may be handled now.

    Args:
        connection: a connection in a transaction that holds the lock, which commits the claim.
        name: name of the inbox.
        now: the current time, read under the lock.
        timeout: seconds until the lease ends, and until any other lease ends at the latest.
        max_attempts: number of attempts after which an abandoned event is dead.
        unreadable: takes the events that cannot be decrypted, and that stay as they are.

    Returns:
        The claim, None if no event is due; and the number of events that have died, whose last attempt was abandoned.
    """
    died = 0
    if connection.execute(select(exists().where(leases.is_over(EVENTS, name, now, timeout)))).scalar_one():
        dying = (EVENTS.c.state == IN_FLIGHT, EVENTS.c.lease_ends_at <= now, EVENTS.c.attempts >= max_attempts)
        dead = {"state": DEAD, "finished_at": now, "error": ABANDONED, **leases.RELEASED}
        died = connection.execute(update(EVENTS).where(EVENTS.c.name == name, *dying).values(dead)).rowcount
        leases.end_leases(connection, EVENTS, name, now, timeout, ABANDONED)
    row, body = _first(connection, name, now, unreadable)
    if body is None:
        return None, died
    is_done = (EVENTS.c.name == name, EVENTS.c.ref == row.ref, EVENTS.c.state == DONE)
    newer_is_done = exists().where(*is_done, EVENTS.c.occurred_at > row.occurred_at)
    claim = Claim(
        seq=row.seq,
        token=new_uuid().hex,
        event_id=row.event_id,
        type=row.type,
        body=body,
        attempt=row.attempts + 1,
        is_stale=bool(connection.execute(select(newer_is_done)).scalar_one()),
    )
    lease = {"lease_token": claim.token, "lease_ends_at": now + leases.in_milliseconds(timeout)}
    # Without a condition on the state, because the lock is held since the row was read.
    claiming = update(EVENTS).where(EVENTS.c.seq == claim.seq)
    connection.execute(claiming.values(state=IN_FLIGHT, attempts=claim.attempt, **lease))
    return claim, died


def _first(connection: Connection, name: str, now: int, unreadable: UnreadableRows) -> tuple[Any, bytes | None]:
    """Return the row of the oldest event that may be handled now and can be decrypted, and its body; None if none."""
    row: Any = None
    body = None
    while body is None and not unreadable.are_too_many:
        due = (_is_due(name, now), ~_is_held(), unreadable.are_not(EVENTS.c.seq))
        oldest = select(EVENTS).where(*due).order_by(EVENTS.c.occurred_at, EVENTS.c.seq).limit(1)
        row = connection.execute(oldest).one_or_none()
        if row is None:
            break
        body = unreadable.read(row, bytes(row.body))
    return row, body


def mark_done(connection: Connection, claim: Claim, clock: StoreTime, schema: str | None) -> bool:
    """Mark an event as done, in the transaction of its handler; return whether the lease was still valid.

    Until this transaction ends, the row is locked (in SQLite, the database), so no other process can claim the event
    between this mark and the commit.
    """
    leases.limit_idle_time(connection, leases.FROZEN_HOLDER_SECONDS)
    marking = _marking_done(claim, clock, dialect_of(connection.dialect.name)).values(leases.RELEASED)
    return connection.execute(marking, execution_options=tables_in(schema)).rowcount == 1


async def mark_done_on(execute: Execution, claim: Claim, clock: StoreTime, seconds: float) -> None:
    """Mark an event as done in a transaction of its handler's own, on whatever connection.

    The token stays in the row: it shows the worker, once the transaction has committed, that this attempt did it.

    Args:
        execute: executes a statement on the connection, in the schema of the inbox.
        claim: the event.
        clock: clock of the inbox.
        seconds: PostgreSQL ends the transaction if it is idle for so long, because claims wait for the lock of its row.
            MySQL has no such limit of a transaction.

    Raises:
        ValueError: the lease is no longer one's own, the event is done already, or the connection has other tables.
    """
    marking = _marking_done(claim, clock, execute.dialect).values(lease_ends_at=None)
    try:
        limit = execute.dialect.idle_limit(seconds)
        if limit is not None and execute.dialect.restore is None:  # else it would outlast the caller's transaction
            await execute(limit)
        if execute.dialect.changed is None:
            is_marked = bool(await execute(marking.returning(EVENTS.c.seq)))
        else:
            await execute(marking)
            is_marked = bool((await execute(execute.dialect.changed))[0][0])
    except Exception as error:
        if is_missing_table(error):
            raise ValueError(_ANOTHER_DATABASE) from None
        raise
    if not is_marked:
        of_event = (EVENTS.c.seq == claim.seq, EVENTS.c.event_id == claim.event_id)
        found = await execute(select(EVENTS.c.state).where(*of_event).with_for_update())  # not of an older snapshot
        if not found:
            raise ValueError(_ANOTHER_DATABASE)
        raise ValueError(_ALREADY_DONE if found[0][0] == DONE else _LEASE_ENDED)


def _marking_done(claim: Claim, clock: StoreTime, dialect: Dialect) -> Update:
    now = clock.sql(dialect)
    valid = update(EVENTS).where(_is_ours(claim), EVENTS.c.lease_ends_at > now)
    return valid.values(state=DONE, finished_at=now, error=None)


def is_marked(connection: Connection, claim: Claim) -> bool:
    """Return whether the handler of this claim has marked its event as done, and committed."""
    marked = exists().where(EVENTS.c.seq == claim.seq, EVENTS.c.state == DONE, EVENTS.c.lease_token == claim.token)
    return bool(connection.execute(select(marked)).scalar_one())


def mark_unhandled(connection: Connection, claim: Claim, clock: StoreTime) -> bool:
    """Keep an event for which there is no handler; return whether the claim was still one's own."""
    now = clock.sql(dialect_of(connection.dialect.name))
    marking = update(EVENTS).where(_is_ours(claim)).values(leases.RELEASED)
    marking = marking.values(state=UNHANDLED, attempts=claim.attempt - 1, finished_at=now)
    return connection.execute(marking).rowcount == 1


def mark_failed(connection: Connection, claim: Claim, clock: StoreTime, error: str, *, is_last: bool) -> int | None:
    """Let an event wait for its next attempt, or die.

    Returns:
        The milliseconds until the next attempt, 0 for a dead event; None if another process has the event by now.
    """
    now = clock.sql(dialect_of(connection.dialect.name))
    wait = 0 if is_last else leases.retry_wait(claim.attempt, LONGEST_WAIT)
    state, finished_at = (DEAD, now) if is_last else (WAITING, None)
    marking = update(EVENTS).where(_is_ours(claim)).values(leases.RELEASED)
    marking = marking.values(state=state, due_at=now + wait, finished_at=finished_at)
    return wait if connection.execute(marking.values(error=error)).rowcount else None


def _is_due(name: str, now: leases.Now) -> ColumnElement[bool]:
    # Of an event that was erased or purged, only the id is left.
    waits = and_(EVENTS.c.state == WAITING, EVENTS.c.body.is_not(None))
    return and_(EVENTS.c.name == name, waits, leases.is_due(EVENTS.c, now, LONGEST_WAIT))


def _is_ours(claim: Claim) -> ColumnElement[bool]:
    return and_(EVENTS.c.seq == claim.seq, EVENTS.c.state == IN_FLIGHT, EVENTS.c.lease_token == claim.token)


def _is_held() -> ColumnElement[bool]:
    """Return the condition that another event of the same ref comes first."""
    other = EVENTS.alias()
    return exists().where(
        other.c.name == EVENTS.c.name,
        other.c.ref == EVENTS.c.ref,
        or_(
            other.c.state == IN_FLIGHT,
            and_(
                other.c.state == WAITING,
                tuple_(other.c.occurred_at, other.c.seq) < tuple_(EVENTS.c.occurred_at, EVENTS.c.seq),
            ),
        ),
    )
