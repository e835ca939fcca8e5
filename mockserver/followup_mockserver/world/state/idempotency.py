"""What a mock remembers of requests: responses by idempotency key, and the rate of each API key (sections 7 and 8)."""

from collections import OrderedDict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta

import attrs

from followup_mockserver.world.state.clock import RealTime


@attrs.define(eq=False, repr=False)
class IdempotencyRecord:
    """The record of an idempotency key.

    Attributes:
        key: the idempotency key.
        fingerprint: a digest of the request's method, path and body.
        response: the body of the response; None while the request is in progress.
        at: when the key was first used, by the mock's clock.
        request_id: id of the request that got the response; None while it is in progress, or if it is unknown.
    """

    key: str
    fingerprint: str
    at: datetime
    response: str | None = None
    request_id: str | None = None


class IdempotencyRecords:
    """The idempotency keys of one organization.

    Attributes:
        kept_for: how long a key is kept, by the mock's clock.

    Args:
        hours: the hours of ``kept_for``.
    """

    def __init__(self, hours: float) -> None:
        self.kept_for: timedelta = timedelta(hours=hours)
        self._records: OrderedDict[str, IdempotencyRecord] = OrderedDict()

    def copy(self) -> "IdempotencyRecords":
        """Return independent records, without those of requests in progress, which have had no effect yet."""
        twin = IdempotencyRecords(self.kept_for / timedelta(hours=1))
        twin.restore(self.finished())  # they never change
        return twin

    def finished(self) -> list[IdempotencyRecord]:
        """Return the records with a response, oldest first. A request in progress has had no effect yet."""
        return [record for record in self._records.values() if record.response is not None]

    def restore(self, records: Iterable[IdempotencyRecord]) -> None:
        """Replace all records by these, which have a response, oldest first."""
        self._records = OrderedDict((record.key, record) for record in records)

    def find(self, key: str, now: datetime) -> IdempotencyRecord | None:
        """Return the record of a key; None if there is none, or it has expired."""
        while self._records and self._has_expired(next(iter(self._records.values())), now):
            self._records.popitem(last=False)
        # Behind one that is in progress there may be expired ones, so the one that was found is checked as well.
        record = self._records.get(key)
        return None if record is None or self._has_expired(record, now) else record

    def begin(self, key: str, fingerprint: str, now: datetime) -> IdempotencyRecord:
        """Create the record of a key; the caller must ``finish`` or ``release`` it."""
        record = self._records[key] = IdempotencyRecord(key, fingerprint, now)
        # An expired record of the key may have kept its place among older ones.
        self._records.move_to_end(key)
        return record

    def finish(self, record: IdempotencyRecord, response: str, request_id: str) -> None:
        """Store the response to a request, to be replayed when the request is repeated."""
        record.response, record.request_id = response, request_id

    def release(self, record: IdempotencyRecord) -> None:
        """Drop the record of a request that failed, unless another request has taken over the key."""
        if self._records.get(record.key) is record:
            del self._records[record.key]

    def _has_expired(self, record: IdempotencyRecord, now: datetime) -> bool:
        # The record of a request in progress does not expire, however far the clock is advanced meanwhile.
        return record.response is not None and now - record.at >= self.kept_for


WINDOW = 60.0


class RateLimiter:
    """Counts requests in a sliding window of one minute.

    The window is measured in real time, plus the time by which the mock's clock was advanced.

    Args:
        limit: requests per minute; 0 for no limit, and then ``take`` must not be called.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: dict[str, deque[float]] = {}

    def take(self, key: str, advanced: timedelta) -> float | None:
        """Count a request with a key.

        Args:
            key: the API key.
            advanced: how far the mock's clock has been advanced in all.

        Returns:
            None, or the seconds until the next request is allowed if this one exceeds the limit.
        """
        now = RealTime.monotonic() + advanced.total_seconds()
        taken = self._taken.setdefault(key, deque())
        while taken and taken[0] <= now - WINDOW:
            taken.popleft()
        if len(taken) >= self.limit:
            return taken[0] + WINDOW - now
        taken.append(now)
        return None
