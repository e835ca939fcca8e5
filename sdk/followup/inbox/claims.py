"""Claims an event for a process, and settles it.

Events of one ref are handled one at a time, oldest first. A claim therefore skips each event whose ref has another one
in flight, or an older one that waits. Claims are made under one lock for each inbox, so two processes never decide at
the same time.

A claim is a lease. At its end another process may claim the event again, so whoever settles it has to prove that the
lease is still its own: ``mark_done`` is part of the handler's transaction, and fails after the end.
"""

from typing import TYPE_CHECKING

import attrs
from sqlalchemy import ColumnElement, Connection, and_, exists, or_, select, text, tuple_, update

from followup._store import leases
from followup._store.clock import StoreTime
from followup._store.database import UNSTORABLE, Dialect, execute_unless_refused
from followup._store.schema import DEAD, IN_FLIGHT, WAITING
from followup.inbox.tables import DONE, EVENTS, UNHANDLED

if TYPE_CHECKING:
    from followup.outbox.recording import Steps

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


def is_work_due(connection: Connection, name: str, clock: StoreTime, timeout: float) -> bool:
    """Return whether a claim is worth the lock. An event that waits for an older one of its ref counts too."""
    now = clock.sql(connection.dialect.name)
    is_abandoned = (leases.has_ended(EVENTS, name, now), leases.ends_too_late(EVENTS, name, now, timeout))
    due = or_(_is_due(name, now), *is_abandoned)
    return bool(connection.execute(select(exists().where(due))).scalar_one())


def claim_next(
    connection: Connection, name: str, clock: StoreTime, timeout: float, max_attempts: int
) -> tuple[Claim | None, int]:
    """Claim the oldest event that may be handled now.

    Args:
        connection: a connection in a transaction of its own, which commits the claim.
        name: name of the inbox.
        clock: clock of the inbox.
        timeout: seconds until the lease ends, and until any other lease ends at the latest.
        max_attempts: number of attempts after which an abandoned event is dead.

    Returns:
        The claim, None if no event is due; and the number of events that have died, whose last attempt was abandoned.
    """
    leases.take_lock(connection, f"inbox:{name}")
    # Read after the lock was taken, which may have taken a while.
    now = clock.milliseconds(connection)
    died = _end_leases(connection, name, now, timeout, max_attempts)
    row = connection.execute(
        select(EVENTS).where(_is_due(name, now), ~_is_held()).order_by(EVENTS.c.occurred_at, EVENTS.c.seq).limit(1)
    ).one_or_none()
    if row is None:
        return None, died
    newer_is_done = exists().where(
        EVENTS.c.name == name,
        EVENTS.c.ref == row.ref,
        EVENTS.c.state == DONE,
        EVENTS.c.occurred_at > row.occurred_at,
    )
    claim = Claim(
        seq=row.seq,
        token=leases.new_token(),
        event_id=row.event_id,
        type=row.type,
        body=bytes(row.body),
        attempt=row.attempts + 1,
        is_stale=bool(connection.execute(select(newer_is_done)).scalar_one()),
    )
    connection.execute(
        update(EVENTS)
        .where(EVENTS.c.seq == claim.seq)
        .values(
            state=IN_FLIGHT,
            attempts=claim.attempt,
            lease_token=claim.token,
            lease_ends_at=now + leases.in_milliseconds(timeout),
        )
    )
    return claim, died


def mark_done(connection: Connection, claim: Claim, clock: StoreTime) -> bool:
    """Mark an event as done, in the transaction of its handler; return whether the lease was still valid.

    Until this transaction ends, the row is locked (in SQLite, the database), so no other process can claim the event
    between this mark and the commit.
    """
    now = clock.sql(connection.dialect.name)
    leases.limit_idle_time(connection, leases.FROZEN_HOLDER_SECONDS)
    marking = (
        update(EVENTS)
        .where(_is_ours(claim), EVENTS.c.lease_ends_at > now)
        .values(state=DONE, finished_at=now, error=None, **leases.RELEASED)
    )
    return connection.execute(marking).rowcount == 1


def marking(claim: Claim, dialect: Dialect, own_dialect: Dialect, clock: StoreTime, timeout: float) -> "Steps":
    """Mark an event as done in a transaction of its handler's own, as a generator that performs no I/O.

    The token stays in the row: it shows the worker, once the transaction has committed, that this attempt did it.

    Args:
        claim: the event.
        dialect: the database of the connection.
        own_dialect: that of the inbox.
        clock: clock of the inbox.
        timeout: seconds of the lease. PostgreSQL ends the transaction after so many idle seconds, because claims wait
            for the lock of its row.

    Raises:
        ValueError: the lease is no longer one's own, the event is done already, or the connection is to another
            database.
    """
    if dialect != own_dialect:
        raise ValueError(_ANOTHER_DATABASE)
    now = clock.sql(dialect)
    values = {"state": DONE, "finished_at": now, "lease_ends_at": None, "error": None}
    changing = update(EVENTS).where(_is_ours(claim), EVENTS.c.lease_ends_at > now).values(values)
    try:
        if dialect == "postgresql":
            yield leases.idle_limit(timeout)
            is_marked = bool((yield changing.returning(EVENTS.c.seq)))
        else:
            yield changing
            is_marked = bool((yield text("SELECT changes()"))[0][0])  # older versions of SQLite do not know RETURNING
    except Exception as error:
        if _is_about_a_missing_table(error):
            raise ValueError(_ANOTHER_DATABASE) from None
        raise
    if not is_marked:
        found = yield select(EVENTS.c.state).where(EVENTS.c.seq == claim.seq, EVENTS.c.event_id == claim.event_id)
        if not found:
            raise ValueError(_ANOTHER_DATABASE)
        raise ValueError(_ALREADY_DONE if found[0][0] == DONE else _LEASE_ENDED)


def _is_about_a_missing_table(error: Exception) -> bool:
    cause = getattr(error, "orig", None) or error.__cause__ or error  # SQLAlchemy and Django wrap the driver's error
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    return code == "42P01" or "no such table" in str(cause)


def is_marked(connection: Connection, claim: Claim) -> bool:
    """Return whether the handler of this claim has marked its event as done, and committed."""
    marked = exists().where(EVENTS.c.seq == claim.seq, EVENTS.c.state == DONE, EVENTS.c.lease_token == claim.token)
    return bool(connection.execute(select(marked)).scalar_one())


def mark_unhandled(connection: Connection, claim: Claim, clock: StoreTime) -> bool:
    """Keep an event for which there is no handler; return whether the claim was still one's own."""
    values = {
        "state": UNHANDLED,
        "attempts": claim.attempt - 1,
        "finished_at": clock.sql(connection.dialect.name),
        **leases.RELEASED,
    }
    return connection.execute(update(EVENTS).where(_is_ours(claim)).values(values)).rowcount == 1


def mark_failed(connection: Connection, claim: Claim, clock: StoreTime, error: str, *, is_last: bool) -> int | None:
    """Let an event wait for its next attempt, or die.

    Returns:
        The milliseconds until the next attempt, 0 for a dead event; None if another process has the event by now.
    """
    now = clock.sql(connection.dialect.name)
    wait = 0 if is_last else leases.retry_wait(claim.attempt, LONGEST_WAIT)
    values = {
        "state": DEAD if is_last else WAITING,
        "due_at": now + wait,
        "finished_at": now if is_last else None,
        **leases.RELEASED,
    }
    marking = update(EVENTS).where(_is_ours(claim)).values(values)
    marked = execute_unless_refused(connection, marking.values(error=error))
    if isinstance(marked, str):
        marked = connection.execute(marking.values(error=UNSTORABLE))
    return wait if marked.rowcount else None


def _is_due(name: str, now: leases.Now) -> ColumnElement[bool]:
    return and_(EVENTS.c.name == name, EVENTS.c.state == WAITING, leases.is_due(EVENTS.c, now, LONGEST_WAIT))


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


def _end_leases(connection: Connection, name: str, now: int, timeout: float, max_attempts: int) -> int:
    """Let the events of ended leases wait again, or die; return how many died."""
    leases.limit_leases(connection, EVENTS, name, now, timeout)
    ended = update(EVENTS).where(leases.has_ended(EVENTS, name, now)).values(error=ABANDONED, **leases.RELEASED)
    dying = ended.where(EVENTS.c.attempts >= max_attempts).values(state=DEAD, finished_at=now)
    died = connection.execute(dying).rowcount
    connection.execute(ended.values(state=WAITING, due_at=now))
    return died
