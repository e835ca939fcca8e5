"""What was called: the journal of an organization's API calls, for tests to assert on."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import attrs

REQUEST_ID_PREFIX = "req_"

LENGTH = 10_000
"""Older entries are forgotten."""

DETAILED = 1_000
"""So many of the last calls can be looked at whole."""

LONGEST_BODY = 65_536
"""Bytes of a body that are kept; what is beyond is not."""


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


@attrs.define(kw_only=True)
class CallDetails:
    """What was said in a call, for the eyes of the person who makes it work. ``repr`` shows nothing of it.

    Attributes:
        query: pairs of name and value, in their order.
        request_headers: names in lower case.
        request_body: as much of it as is kept; None where it was too large to be read.
        response_body: as much of it as is kept.
        seconds: how long the answer took, in real time.
    """

    query: Sequence[tuple[str, str]] = attrs.field(repr=False)
    request_headers: Mapping[str, str] = attrs.field(repr=False)
    request_body: bytes | None = attrs.field(repr=False)
    response_headers: Mapping[str, str] = attrs.field(repr=False)
    response_body: bytes = attrs.field(repr=False)
    seconds: float

    @property
    def request_is_whole(self) -> bool:
        """Whether the body that was sent was kept to its end."""
        return self.request_body is not None and len(self.request_body) < LONGEST_BODY

    @property
    def response_is_whole(self) -> bool:
        """Whether the body that was answered was kept to its end."""
        return len(self.response_body) < LONGEST_BODY


class Journal:
    """The last calls, and how many there have been."""

    def __init__(self) -> None:
        self._entries: deque[JournalEntry] = deque(maxlen=LENGTH)
        self._details: OrderedDict[str, CallDetails] = OrderedDict()

    def record(self, entry: JournalEntry, details: CallDetails) -> None:
        self._entries.append(entry)
        self._details[entry.request_id] = details
        if len(self._details) > DETAILED:
            self._details.popitem(last=False)

    def find(self, request_id: str) -> JournalEntry | None:
        """The call with this id; None if there was none, or it is forgotten."""
        return next((each for each in self.newest_first() if each.request_id == request_id), None)

    def details(self, entry: JournalEntry) -> CallDetails | None:
        """What was said in a call; None if that is no longer kept."""
        return self._details.get(entry.request_id)

    def __len__(self) -> int:
        return len(self._entries)

    def newest_first(self) -> Iterator[JournalEntry]:
        return reversed(self._entries)
