"""What was called: the journal of an organization's API calls, for tests to assert on."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime

import attrs

LENGTH = 10_000
"""Older entries are forgotten."""


@attrs.frozen(kw_only=True)
class JournalEntry:
    """One API call.

    Attributes:
        operation: name of the operation, such as ``patients.create``; None for a path or method that is none.
        path: path of the request, without its query, which may hold a phone or a document.
        status: HTTP status of the answer; 0 where the connection was dropped without one.
        at: the mock's time of it.
    """

    operation: str | None
    method: str
    path: str
    status: int
    request_id: str
    idempotency_key: str | None
    at: datetime


class Journal:
    """The last calls, and how many there have been."""

    def __init__(self) -> None:
        self._entries: deque[JournalEntry] = deque(maxlen=LENGTH)

    def record(self, entry: JournalEntry) -> None:
        self._entries.append(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def newest_first(self) -> Iterator[JournalEntry]:
        return reversed(self._entries)
