"""What was answered under an idempotency key, so that a repeated request is answered alike and does nothing twice."""

from collections import OrderedDict
from datetime import datetime, timedelta

import attrs

KEY_PATTERN = "^[ -~]{1,255}$"
"""What a key looks like: 1 to 255 printable ASCII characters."""

MOST_RECORDS = 100_000
"""The oldest are forgotten beyond this many, so that a long run of the mock stays bounded."""


@attrs.define
class IdempotencyRecord:
    """A key in use.

    Attributes:
        fingerprint: method, path and body of the request.
        answer: the bytes of the answer, None while the request is in progress.
        at: when the key was first used, on the mock's clock.
    """

    fingerprint: bytes
    at: datetime
    answer: bytes | None = None


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

    def begin(self, key: str, fingerprint: bytes, now: datetime) -> None:
        """The key is in use from now on."""
        self._records[key] = IdempotencyRecord(fingerprint, now)
        self._records.move_to_end(key)
        if len(self._records) > MOST_RECORDS:
            self._records.popitem(last=False)

    def finish(self, key: str, answer: bytes) -> None:
        """What the request was answered, and every repetition will be."""
        record = self._records.get(key)
        if record is not None:
            record.answer = answer

    def release(self, key: str) -> None:
        """The request failed: the key is free again."""
        self._records.pop(key, None)

    def _is_over(self, record: IdempotencyRecord, now: datetime) -> bool:
        # A request in progress keeps its key however far the clock is moved meanwhile: else it would be done twice.
        return record.answer is not None and now - record.at >= self._kept_for
