"""The journal of an organization's API calls, for tests to assert on."""

import itertools
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import attrs

REQUEST_ID_PREFIX = "req_"

LENGTH = 10_000
"""Older entries are dropped."""

DETAILED = 1_000
"""So many of the last calls can be looked at whole."""

LONGEST_BODY = 65_536
"""Bytes of a body that are kept; what is beyond is not."""

LONGEST_TEXT = 255
"""Characters of a path and of an idempotency key that are kept: more than any valid one has."""

LONGEST_PAIRS = 16_384
"""Characters of a query, and of the headers of a request, that are kept: beyond this the longest values are cut."""

_LONGEST_VALUE = 1_000
"""Characters that are left of a value that is cut."""

LARGEST_DETAILS = 16 * 1024 * 1024
"""Characters and bytes of all calls together that can be looked at whole; the oldest are dropped beyond."""


def _beginning(text: str) -> str:
    return text[:LONGEST_TEXT]


def _size_of(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(map(len, itertools.chain.from_iterable(pairs)))  # in C: this runs for every call


def _cut(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    left = LONGEST_PAIRS
    for name, value in pairs:
        cut = name[:LONGEST_TEXT], value[:_LONGEST_VALUE]
        left -= _size_of([cut])
        if left < 0:
            return
        yield cut


def _cut_query(query: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    return query if _size_of(query) <= LONGEST_PAIRS else list(_cut(query))


def _cut_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    return headers if _size_of(headers.items()) <= LONGEST_PAIRS else dict(_cut(headers.items()))


def _cut_body(body: bytes) -> bytes:
    return body[:LONGEST_BODY]


@attrs.frozen(kw_only=True)
class JournalEntry:
    """One API call.

    Attributes:
        operation: name of the operation, such as ``patients.create``; None for a path or method that is none.
        path: path of the request, without its query, which may hold a phone or a document; the beginning of one that is
            longer than any valid one.
        status: HTTP status of the response; 0 where the connection was dropped without one.
        at: the mock's time of it.
    """

    operation: str | None
    method: str
    path: str = attrs.field(converter=_beginning)
    status: int
    request_id: str
    idempotency_key: str | None = attrs.field(converter=attrs.converters.optional(_beginning))
    at: datetime


@attrs.define(kw_only=True)
class CallDetails:
    """Details of a call, kept for debugging. ``repr`` shows nothing of its content.

    Attributes:
        query: pairs of name and value, in their order.
        request_headers: names in lower case.
        request_body: as much of it as is kept; None where it was too large to be read.
        response_body: as much of it as is kept.
        seconds: time until the response, in real time.
    """

    query: Sequence[tuple[str, str]] = attrs.field(repr=False, converter=_cut_query)
    request_headers: Mapping[str, str] = attrs.field(repr=False, converter=_cut_headers)
    request_body: bytes | None = attrs.field(repr=False, converter=attrs.converters.optional(_cut_body))
    response_headers: Mapping[str, str] = attrs.field(repr=False)
    response_body: bytes = attrs.field(repr=False, converter=_cut_body)
    seconds: float

    @property
    def size(self) -> int:
        """Characters and bytes that are kept of it."""
        texts = _size_of(self.query) + _size_of(self.request_headers.items())
        return texts + len(self.request_body or b"") + len(self.response_body)

    @property
    def request_is_whole(self) -> bool:
        """Whether the body of the request was kept to its end."""
        return self.request_body is not None and len(self.request_body) < LONGEST_BODY

    @property
    def response_is_whole(self) -> bool:
        """Whether the body of the response was kept to its end."""
        return len(self.response_body) < LONGEST_BODY


class Journal:
    """The last calls, and how many there have been."""

    def __init__(self) -> None:
        self._entries: deque[JournalEntry] = deque(maxlen=LENGTH)
        self._details: OrderedDict[str, tuple[CallDetails, int]] = OrderedDict()
        self._size = 0

    def record(self, entry: JournalEntry, details: CallDetails) -> None:
        """Record a call, and drop older ones to make room for it."""
        self._entries.append(entry)
        size = details.size
        self._details[entry.request_id] = details, size
        self._size += size
        while len(self._details) > DETAILED or (self._size > LARGEST_DETAILS and len(self._details) > 1):
            _, (_, dropped) = self._details.popitem(last=False)
            self._size -= dropped

    def find(self, request_id: str) -> JournalEntry | None:
        """The call with this id; None if there was none, or it was dropped."""
        return next((each for each in self.newest_first() if each.request_id == request_id), None)

    def details(self, entry: JournalEntry) -> CallDetails | None:
        """The details of a call; None if they are no longer kept."""
        found = self._details.get(entry.request_id)
        return None if found is None else found[0]

    def __len__(self) -> int:
        return len(self._entries)

    def newest_first(self) -> Iterator[JournalEntry]:
        return reversed(self._entries)
