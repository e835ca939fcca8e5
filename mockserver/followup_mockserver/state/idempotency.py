"""The responses under idempotency keys, so that a repeated request gets the same response and does nothing twice."""

from collections import OrderedDict
from datetime import datetime, timedelta

import attrs

MOST_RECORDS = 100_000
"""The oldest that have a response are forgotten beyond this many, so that a long run of the mock stays bounded."""


@attrs.define
class IdempotencyRecord:
    """A key in use.

    Attributes:
        key: the idempotency key.
        fingerprint: method, path and body of the request.
        response: the body of the response; None while the request is in progress.
        at: when the key was first used, on the mock's clock.
    """

    key: str
    fingerprint: bytes
    at: datetime
    response: bytes | None = None


class IdempotencyRecords:
    """The keys of one organization.

    Args:
        hours: how long a key is remembered.
    """

    def __init__(self, hours: float) -> None:
        self._kept_for = timedelta(hours=hours)
        self._records: OrderedDict[str, IdempotencyRecord] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def find(self, key: str, now: datetime) -> IdempotencyRecord | None:
        """The record of a key that is not too old."""
        while self._records and self._is_over(next(iter(self._records.values())), now):
            self._records.popitem(last=False)
        record = self._records.get(key)
        return None if record is None or self._is_over(record, now) else record

    def begin(self, key: str, fingerprint: bytes, now: datetime) -> IdempotencyRecord:
        """Put the key in use; the request that did so keeps the record, to finish or release it."""
        record = self._records[key] = IdempotencyRecord(key, fingerprint, now)
        self._records.move_to_end(key)
        if len(self._records) > MOST_RECORDS:
            self._forget_oldest()
        return record

    def finish(self, record: IdempotencyRecord, response: bytes) -> None:
        """Keep the response to the request, for every repetition of it."""
        record.response = response

    def release(self, record: IdempotencyRecord) -> None:
        """Free the key of a request that failed, unless another request has it by now."""
        if self._records.get(record.key) is record:
            del self._records[record.key]

    def _forget_oldest(self) -> None:
        # A request in progress keeps its record, however many keys came after it: else it would be done twice.
        oldest = next((key for key, record in self._records.items() if record.response is not None), None)
        if oldest is not None:
            del self._records[oldest]

    def _is_over(self, record: IdempotencyRecord, now: datetime) -> bool:
        # A request in progress keeps its key however far the clock is moved meanwhile: else it would be done twice.
        return record.response is not None and now - record.at >= self._kept_for
