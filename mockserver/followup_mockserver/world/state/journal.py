"""The journal of an organization: its API calls, the calls of test controls between them, and who observes them."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from followup._for_mockserver import FrozenValue, Value, format_timestamp
from followup_mockserver.world.outcomes import Outcome
from followup_mockserver.world.schema.errors import KEY_REUSED
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.faults import Fault, FaultKind
from followup_mockserver.world.state.records import Attempt

REQUEST_ID_PREFIX = "req_"

OMITTED_IF_EMPTY = "omitted_if_empty"
"""Metadata of a field that the control API returns only if it has a value."""

LENGTH = 10_000
"""Number of calls that are kept; older ones are dropped."""

DETAILED = 1_000
"""Number of the most recent calls whose details are kept."""

LONGEST_BODY = 65_536
"""Bytes that are kept of a body."""


def _cut_body(body: bytes) -> bytes:
    return body[:LONGEST_BODY]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class JournalEntry(FrozenValue):
    """One API call.

    Attributes:
        operation: name of the operation, such as ``patients.create``; None if no operation has this path and method.
        path: path of the request. The query is not part of it, since it may contain a phone or a document.
        status: HTTP status of the response; 0 if the connection was dropped without one.
        at: the instant of what it did, by the mock's clock; that of the response if it reached no rule.
        error_code: code of the error response; None for a success.
        param: the parameter that the error names.
        attempt: 1 for the first call with its idempotency key, method and path, and for one without a key. A call whose
            key was rejected, because it belongs to another request, has 1 and is not counted.
        replayed: whether the response is that of an earlier call with the same idempotency key.
        fault: kind of the fault that changed the call; None if none did.
        events: number of events in the results of ``events.create``; 0 for a response without results.
        refused: number of those that the service did not accept, because they are invalid or failed.
        ignored_keys: paths of the keys in the ``data`` of events that the service does not read, such as
            ``events[3].data.doctor``; at most 100 of a call. The control API has it only if there are any.
        changed_duplicates: ids of the events of the call that are duplicates, but have another type or other data than
            the event that was accepted under the id; that change was lost. The control API has it only if there are
            any.
        possible_duplicate_of: id of the earlier call that the call seems to repeat, although it has another idempotency
            key, or of the earlier event or appointment. The control API has it only if there is one.
    """

    operation: str | None
    method: str
    path: str
    status: int
    request_id: str
    idempotency_key: str | None
    at: datetime
    error_code: str | None = None
    param: str | None = None
    attempt: int = 1
    replayed: bool = False
    fault: FaultKind | None = None
    events: int = 0
    refused: int = 0
    ignored_keys: Sequence[str] = attrs.field(default=(), metadata={OMITTED_IF_EMPTY: True})
    changed_duplicates: Sequence[str] = attrs.field(default=(), metadata={OMITTED_IF_EMPTY: True})
    possible_duplicate_of: str | None = attrs.field(default=None, metadata={OMITTED_IF_EMPTY: True})

    def __repr__(self) -> str:
        call = f"{self.status} {self.method} {self.path} at {format_timestamp(self.at)}"
        refused = f", {self.refused} of {self.events} events refused" if self.refused else ""
        key = "" if self.idempotency_key is None else f", idempotency key {self.idempotency_key}"
        return f"<JournalEntry {call}{refused}, {self.request_id}{key}>"


@attrs.define(eq=False, repr=False)
class EventRemarks:
    """What a call of ``events.create`` lost without an error: fields of its ``JournalEntry``."""

    ignored_keys: list[str] = attrs.field(factory=list)
    changed_duplicates: list[str] = attrs.field(factory=list)


class CallOutcome(NamedTuple):
    """What became of a call: facts that ``GET /_mock/requests`` does not return. A tuple is quick to make.

    Attributes:
        about: id of the object that the call created, changed or returned, or that its path names; None for lists,
            batches, and calls that failed before there was one.
        replay_of: id of the call whose response was replayed; None if there is none, or it is unknown.
        fault: the fault that changed the call, as it was then; None if none did.
        fingerprint: digest of method, path and body, by which the same request under another idempotency key is
            recognized; None if there is no body, or the operation takes no key.
    """

    about: str | None = None
    replay_of: str | None = None
    fault: Fault | None = None
    fingerprint: str | None = None


class RecordedCall(NamedTuple):
    """A call of the journal.

    Attributes:
        number: 1 for the first call of the organization; calls have numbers because many may share a time while the
            clock is frozen.
        entry: the call.
        outcome: what became of it.
    """

    number: int
    entry: JournalEntry
    outcome: CallOutcome


@attrs.define(kw_only=True, eq=False, repr=False)
class CallDetails(Value):
    """Details of a call, kept for debugging. Its ``repr`` shows no personal data.

    Attributes:
        query: pairs of name and value, in the order of the request.
        request_headers: values by names in lower case.
        request_body: at most 64 KiB of the body; None if the body was too large to be read.
        response_body: at most 64 KiB of the body.
        seconds: real time from the request to the response.
        real_at: when the response was ready, in real time.
    """

    query: Sequence[tuple[str, str]] = attrs.field(repr=False)
    request_headers: Mapping[str, str] = attrs.field(repr=False)
    request_body: bytes | None = attrs.field(repr=False, converter=attrs.converters.optional(_cut_body))
    response_headers: Mapping[str, str] = attrs.field(repr=False)
    response_body: bytes = attrs.field(repr=False, converter=_cut_body)
    seconds: float
    real_at: datetime

    @property
    def request_is_whole(self) -> bool:
        """Whether the whole body of the request was kept."""
        return self.request_body is not None and len(self.request_body) < LONGEST_BODY

    @property
    def response_is_whole(self) -> bool:
        """Whether the whole body of the response was kept."""
        return len(self.response_body) < LONGEST_BODY


def _attempted(entry: JournalEntry) -> tuple[str, str, str]:
    return entry.idempotency_key or "", entry.method, entry.path


class Journal:
    """The most recent calls of an organization, and the details of the latest of them."""

    def __init__(self) -> None:
        self._calls: deque[RecordedCall] = deque(maxlen=LENGTH)
        self.story: deque[tuple[datetime, EndedCall | ControlCall]] = deque(maxlen=LENGTH)
        self._attempts: dict[tuple[str, str, str], int] = {}
        self._details: OrderedDict[str, CallDetails] = OrderedDict()

    def next_attempt(self, key: str | None, method: str, path: str) -> int:
        """Return which attempt a call with this idempotency key, method and path is; 1 without a key."""
        return 1 if key is None else self._attempts.get((key, method, path), 0) + 1

    def record(self, call: "EndedCall", outcome: CallOutcome, details: CallDetails) -> None:
        """Record a call, and drop the oldest beyond the limits."""
        entry = call.entry
        if len(self._calls) == LENGTH:
            oldest = self._calls[0].entry
            if oldest.idempotency_key is not None and self._attempts.get(_attempted(oldest)) == oldest.attempt:
                del self._attempts[_attempted(oldest)]  # there is no later one
        if entry.idempotency_key is not None and entry.error_code != KEY_REUSED:
            self._attempts[_attempted(entry)] = entry.attempt
        self._calls.append(RecordedCall(self._calls[-1].number + 1 if self._calls else 1, entry, outcome))
        # Without the seconds, which differ in each run.
        self.story.append((entry.at, EndedCall(entry=entry, status=call.status)))
        self._details[entry.request_id] = details
        if len(self._details) > DETAILED:
            self._details.popitem(last=False)

    def record_control(self, name: str, at: datetime, about: str | None, arguments: Mapping[str, Any]) -> "ControlCall":
        """Record a call of a test control."""
        shown = " ".join(f"{each}={_shown(each, value)}" for each, value in arguments.items())
        call = ControlCall(name=name, about=about, arguments=shown)
        self.story.append((at, call))
        return call

    def find(self, request_id: str) -> JournalEntry | None:
        """Return the call with this request id; None if there was none, or it was dropped."""
        return next((each for each in self.newest_first() if each.request_id == request_id), None)

    def recorded_newest_first(self) -> Iterator[RecordedCall]:
        """Iterate over the calls with their numbers and outcomes."""
        return reversed(self._calls)

    def details(self, entry: JournalEntry) -> CallDetails | None:
        """Return the details of a call; None if they were dropped."""
        return self._details.get(entry.request_id)

    def __len__(self) -> int:
        return len(self._calls)

    def newest_first(self) -> Iterator[JournalEntry]:
        """Iterate over the calls."""
        return (each.entry for each in reversed(self._calls))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EndedCall:
    """An API call that has its outcome.

    Attributes:
        entry: the call, as in the journal.
        status: HTTP status of the response; None if a fault kept it from the client, or a part of it.
        seconds: real time from the request to the response.
        events: type and status of the result of each event of ``events.create``; the status is None if the response did
            not arrive. Empty for a response without results.
    """

    entry: JournalEntry
    status: int | None
    seconds: float = 0.0
    events: Sequence[tuple[str, str | None]] = attrs.field(default=(), repr=False)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EndedAttempt:
    """An attempt to deliver a webhook that has its outcome.

    Attributes:
        attempt: the attempt.
        about: id of the object that the event is about.
        url: the URL that it was sent to.
        delivered: whether the delivery has succeeded now, and had not before.
        exhausted: whether the delivery has failed now, because this was its last attempt.
        next_attempt_at: when the next attempt is due, by the mock's clock; None if there is none.
    """

    attempt: Attempt
    about: str
    url: str = attrs.field(repr=False)
    delivered: bool
    exhausted: bool
    next_attempt_at: datetime | None


class ControlCall(NamedTuple):
    """A call of a test control. It has no personal data.

    Attributes:
        name: name of the control.
        about: id of the object that it concerns; None if there is none.
        arguments: the arguments, such as ``opted_out=True``.
    """

    name: str
    about: str | None
    arguments: str


_WORDS = ("stage", "kind", "operation", "source", "status", "event_type")
"""The arguments of test controls whose values are words of the API; any other text may be personal."""


def _shown(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if name in _WORDS or value is None or isinstance(value, int | float) else "…"


class EndedRun(NamedTuple):
    """A run of jobs that has ended.

    Attributes:
        since: when it began, by the mock's clock; None for a single job that ran by itself.
        now: when it ended.
        jobs: the last thousand of the jobs, and their outcomes.
    """

    since: datetime | None
    now: datetime
    jobs: Sequence[tuple[Job, Outcome]]


Ended = EndedCall | EndedAttempt | ControlCall | EndedRun

OBSERVERS: list[Callable[[Ended], object]] = []
"""Called with all that ends in any mock of this process, in the thread in which it does: the log of ``serve``, and
``pytest --followup-coverage``. They must not block, nor act on the mock.
"""


def report(ended: Ended) -> None:
    """Tell the observers of this process what has ended."""
    for observe in [*OBSERVERS]:  # other threads add and remove some meanwhile
        observe(ended)
