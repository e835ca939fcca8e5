"""The request rate of all relays of an outbox, whose state is in the database.

Two rules apply together, as for a client (``followup._call.request_rate``). The limit is hard: a call begins only if
fewer than ``requests_per_minute`` others are in flight or have ended within the last minute. Whenever the service
received them, it was before their ends, so it receives no more in any minute, however slow or frozen a process was.
And after a short burst, calls are spread evenly over the minute.

All functions must be called under the lock of the outbox.
"""

import math

from sqlalchemy import Connection, delete, func, select, update

from followup._store.database import insert_if_absent
from followup.outbox.tables import CALLS, RATES
from followup.outbox.verdicts import Settlement

MINUTE = 60_000
"""Milliseconds."""

_BURST_SHARE = 10
"""``requests_per_minute`` divided by this is the number of calls that may begin in a burst."""

_LOOK_AGAIN = 1_000
"""Milliseconds after which a full minute is looked at again, since calls in flight end before their leases."""

_TOLERATED_FAILURES = 2
"""Calls that may fail one after another before all relays pause: the network drops single calls."""

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
"""Seconds."""

_LONGEST_RETRY_AFTER = 3600.0
"""Seconds. A longer ``Retry-After`` is most likely a mistake, and must not stop the outbox for days."""


def reserve(
    connection: Connection, name: str, requests_per_minute: int, now: int, lease_token: str, lease_ends_at: int
) -> int:
    """Reserve a call that begins now.

    Returns:
        0 if the call is reserved; otherwise the milliseconds to wait before the next try.
    """
    rate = connection.execute(select(RATES).where(RATES.c.name == name)).mappings().one_or_none()
    if rate is None:
        values = {"name": name, "full_burst_at": 0, "not_before": 0, "failures_in_a_row": 0}
        connection.execute(insert_if_absent(RATES, connection.dialect.name, **values))
        return reserve(connection, name, requests_per_minute, now, lease_token, lease_ends_at)
    between = MINUTE / requests_per_minute
    burst = max(1, requests_per_minute // _BURST_SHARE) - 1
    # A time that is further ahead than it can be is from before the clock was set back: do not wait for it for hours.
    full_burst_at = rate["full_burst_at"] if now < rate["full_burst_at"] <= now + MINUTE else float(now)
    not_before = rate["not_before"] if rate["not_before"] <= now + _LONGEST_RETRY_AFTER * 1000 else now
    earliest = max(not_before, math.ceil(full_burst_at - burst * between))
    if earliest > now:
        return int(earliest - now)
    connection.execute(delete(CALLS).where(CALLS.c.name == name, CALLS.c.ends_at <= now - MINUTE))
    connection.execute(update(CALLS).where(CALLS.c.name == name, CALLS.c.ends_at > now + MINUTE).values(ends_at=now))
    count = connection.execute(select(func.count()).where(CALLS.c.name == name)).scalar_one()
    if count >= requests_per_minute:
        blocking = select(CALLS.c.ends_at).where(CALLS.c.name == name).order_by(CALLS.c.ends_at)
        ends_at: int = connection.execute(blocking.offset(count - requests_per_minute).limit(1)).scalar_one()
        return max(1, min(_LOOK_AGAIN, ends_at + MINUTE - now))
    connection.execute(CALLS.insert().values(lease_token=lease_token, name=name, ends_at=lease_ends_at))
    connection.execute(update(RATES).where(RATES.c.name == name).values(full_burst_at=full_burst_at + between))
    return 0


def ended(
    connection: Connection, name: str, now: int, lease_token: str, settlement: Settlement, *, was_made: bool
) -> None:
    """Record that a reserved call has ended, or was not made; let all relays pause after failures, if necessary."""
    call, rates = CALLS.c.lease_token == lease_token, RATES.c.name == name
    connection.execute(update(CALLS).where(call).values(ends_at=now) if was_made else delete(CALLS).where(call))
    if settlement.service == "works":
        connection.execute(update(RATES).where(rates, RATES.c.failures_in_a_row > 0).values(failures_in_a_row=0))
    elif settlement.service == "fails":
        connection.execute(update(RATES).where(rates).values(failures_in_a_row=RATES.c.failures_in_a_row + 1))
        rate = connection.execute(select(RATES).where(rates)).one()
        pauses = rate.failures_in_a_row - _TOLERATED_FAILURES
        seconds = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(pauses - 1, 10)) if pauses > 0 else 0.0
        if settlement.retry_after is not None:
            seconds = min(settlement.retry_after, _LONGEST_RETRY_AFTER)
        not_before = max(rate.not_before, now + math.ceil(seconds * 1000))
        connection.execute(update(RATES).where(rates).values(not_before=not_before))
