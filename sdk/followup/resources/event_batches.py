"""Batches of inbound events: their input, their results, and the sending of many (specification, sections 4 and 6.1).

Like a call (``_core.call``), ``Sender`` is a generator that performs no I/O: it yields the steps of its calls, and the
waits between them.
"""

import itertools
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, Required, TypedDict

import attrs

from followup._core import errors
from followup._core.api_rules import MAX_EVENTS_PER_BATCH, SCHEMA_VERSION, Constant, EventId, EventType, NonEmpty
from followup._core.call.options import Options
from followup._core.call.responses import OTHER_EVENTS, put_in_order
from followup._core.call.retries import backoff, run_call
from followup._core.call.steps import Call, Steps, Wait
from followup._core.codec.decode import decode
from followup._core.codec.wire import WireError
from followup._core.redaction import SentValues, redacted
from followup._core.results import Model, Result, personal
from followup._core.time import random_fraction

EventResultStatus = Literal["processed", "duplicate", "unhandled", "invalid", "failed"]


class EventSourceInput(TypedDict, total=False):
    """The system that an event comes from, for information only.

    Keys:
        system: name of the system.
        version: version of the system.
    """

    system: str | None
    version: str | None


class EventInput(TypedDict, total=False):
    """An inbound event to send (specification, section 6.1).

    Keys:
        id: your id of the event, which is its idempotency key; required.
        type: one of the eight inbound event types; required.
        data: data of the event with camelCase keys, sent unchanged, None as null; required.
        schema_version: always 1, the default.
        occurred_at: time at which the event happened; the time of arrival when omitted. An aware ``datetime`` or
            an ISO 8601 string.
        source: the system that the event comes from.
    """

    id: Required[NonEmpty]
    type: Required[EventType]
    data: Required[Mapping[str, Any]]
    schema_version: Annotated[int, Constant(SCHEMA_VERSION)] | None
    occurred_at: datetime | str | None
    source: EventSourceInput | None


@attrs.define(kw_only=True, eq=False, repr=False)
class EventOutcome(Model):
    """The object that an event created or changed.

    Attributes:
        object: type of the object, such as ``appointment``.
        id: id of the object.
    """

    object: str
    id: str


@attrs.define(kw_only=True, eq=False, repr=False)
class EventResult(Model):
    """The result of one event of a batch.

    Attributes:
        id: your id of the event.
        accepted: whether the service accepted it; sending an accepted id again has no effect.
        status: ``processed``, ``duplicate``, ``unhandled``, ``invalid`` or ``failed``.
        event: id of the stored event.
        result: the object that the event created or changed.
        error: reason why the event was not accepted.
    """

    id: str
    accepted: bool
    status: EventResultStatus
    event: EventId | None = None
    result: EventOutcome | None = None
    error: str | None = personal(None)


@attrs.define(kw_only=True, eq=False, repr=False)
class EventBatch(Result):
    """The results of a batch of events (specification, section 2).

    Attributes:
        results: one result per event, in the order of sending.
    """

    object: Literal["event_batch"]
    results: list[EventResult]


ACCEPTED = frozenset({"processed", "duplicate", "unhandled"})
"""The statuses of events that the service accepted."""

MISSING = "the response has no result for it"

_PLACE = r"^events\[\d+\]\.?"
"""A position in a batch, which is meaningless to a caller of ``send_all``."""


def outcome_of(result: EventResult) -> Literal["accepted", "failed", "invalid"]:
    """Return what a result means for its event.

    A result that contradicts itself decides nothing, and the event is sent again, which has no effect if the service
    had accepted it:

    ============  ================================  ============  ===================
    ``accepted``  processed, duplicate, unhandled   invalid       failed, any other
    ============  ================================  ============  ===================
    true          accepted                          failed        failed
    false         failed                            invalid       failed
    ============  ================================  ============  ===================
    """
    if result.accepted != (result.status in ACCEPTED):
        return "failed"
    return "accepted" if result.accepted else "invalid" if result.status == "invalid" else "failed"


def without_position(reason: str) -> str:
    """Return the reason why an event was not accepted, without the event's position in its batch."""
    return re.sub(_PLACE, "", reason)


def problem_of(result: EventResult) -> str:
    """Return why an event was not accepted."""
    if result.accepted or result.status in ACCEPTED:
        accepted = str(result.accepted).lower()
        return f"the service contradicts itself: accepted is {accepted}, but the status is {result.status}"
    return without_position(result.error or f"the service reported the status {result.status}")


def takes_too_long(error: errors.FollowUpError, *, is_repeated: bool) -> bool:
    """Return whether a call may have failed because of the size of its batch: a smaller one may succeed.

    Args:
        error: the error of the call.
        is_repeated: whether the events had been sent before. A connection may break once for any reason.
    """
    if isinstance(error, errors.APIStatusError):
        is_late, is_broken = (error.status_code == each for each in (504, 408))
    else:
        is_broken = isinstance(error, errors.APIConnectionError) and error.was_sent != "no"
        is_late = is_broken and isinstance(error, errors.APITimeoutError)
    return is_late or (is_broken and is_repeated)


def larger_batch(size: int) -> int:
    """Return the size of the next batch after one that succeeded: it grows slowly, since a failure costs a timeout."""
    return min(MAX_EVENTS_PER_BATCH, size + 1 + size // 10)


_REASONS_SHOWN = 3


class EventBatchError(errors.APIStatusError):
    """400 or 500 of ``events.create``: no event of the batch was accepted (specification, section 4, Events).

    The message names the first three reasons with the positions of their events. Fix the events according to
    ``results``, and send them again with the same ids.

    Attributes:
        results: one result per event, in the order of sending; as they came if they are about other events, which the
            message then says; empty if they cannot be read.
    """

    results: list[EventResult]

    def __init__(
        self, text: str = "", *, body: Any = None, event_ids: Sequence[str] | None = None, **response: Any
    ) -> None:
        try:
            self.results = decode(list[EventResult], body["results"])
        except (WireError, TypeError, KeyError):
            self.results = []
        if event_ids is not None and not put_in_order(self.results, event_ids):
            response["note"] = ". ".join(filter(None, (OTHER_EVENTS.capitalize(), response.get("note"))))
        super().__init__(text, body=body, **response)

    def _details(self, sent: SentValues) -> str:
        reasons = [
            f"events[{position}]: {redacted(result.error or result.status, sent, max_length=200)}"
            for position, result in enumerate(self.results[:_REASONS_SHOWN])
        ]
        if len(self.results) > _REASONS_SHOWN:
            reasons.append(f"and {len(self.results) - _REASONS_SHOWN} more")
        return f" ({'; '.join(reasons)})" if reasons else ""


PATIENCE = 10
"""Maximum number of consecutive calls that end with the rate limit reached, each after its own retries."""

LONGEST_WAIT = 86_400.0
"""Seconds. For a longer ``Retry-After`` the call fails."""


@attrs.define(eq=False, repr=False)
class Sender:
    """Sends batches of events.

    It learns which size the service can finish in time: a call that times out halves it, each that succeeds lets it
    grow a little.

    Attributes:
        events: all events; they are checked to be an iterable of events, and not a single one.
        max_rounds: maximum number of times that an event is sent while its status is ``failed``.
        make_call: returns the call that sends these events; raises TypeError or ValueError if they cannot be sent.

    Raises:
        TypeError, ValueError: ``events`` or ``max_rounds`` is invalid; the message says what is valid.
    """

    events: Iterable[EventInput] | AsyncIterable[EventInput]
    max_rounds: int
    make_call: Callable[[Sequence[EventInput]], Call[EventBatch]]
    _largest: int = attrs.field(default=MAX_EVENTS_PER_BATCH, init=False)

    def __attrs_post_init__(self) -> None:
        events: object = self.events
        if isinstance(events, (Mapping, str, bytes)) or not isinstance(events, (Iterable, AsyncIterable)):
            raise TypeError("events must be an iterable of events; put a single event into a list")
        rounds: object = self.max_rounds
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise ValueError("max_rounds must be a whole number, 1 or more")

    def send(self, events: Sequence[EventInput], options: Options) -> Steps[list[EventResult]]:
        """Send the events of one batch until each has its final result.

        Returns:
            The results, in the order of the events.

        Raises:
            FollowUpError: a call failed as a whole, so that its events have no result.
        """
        results: dict[int, EventResult] = {}
        unsettled = list(range(len(events)))
        for sendings in itertools.count(1):
            latest = yield from self._send_in_parts([events[position] for position in unsettled], options)
            results.update(zip(unsettled, latest, strict=True))
            unsettled = [position for position in unsettled if outcome_of(results[position]) == "failed"]
            if not unsettled or sendings == self.max_rounds:
                break
            # What fails may wait for another event, such as the appointment that it reschedules.
            yield Wait(backoff(sendings, random_fraction()))
        return [results[position] for position in range(len(events))]

    def _send_in_parts(
        self, events: Sequence[EventInput], options: Options, largest: int = MAX_EVENTS_PER_BATCH
    ) -> Steps[list[EventResult]]:
        results: list[EventResult] = []
        while len(results) < len(events):
            part = events[len(results) :][: min(largest, self._largest)]
            results += yield from self._send_once(part, options)
        return results

    def _send_once(self, events: Sequence[EventInput], options: Options) -> Steps[list[EventResult]]:
        """Send the events that can be encoded, and return ``invalid`` results for the others."""
        call = self._call_or_problem(events)
        if isinstance(call, Call):  # nearly every batch is valid, so events are checked one by one only if it is not
            return (yield from self._send_call(call, events, options))
        checked = [(event, self._call_or_problem([event])) for event in events]
        sendable = [event for event, found in checked if isinstance(found, Call)]
        results = iter((yield from self._send_once(sendable, options)) if sendable else [])
        return [_invalid(event, found) if isinstance(found, str) else next(results) for event, found in checked]

    def _call_or_problem(self, events: Sequence[EventInput]) -> Call[EventBatch] | str:
        """Return the call that sends events, or the reason why they cannot be sent."""
        try:
            return self.make_call(events)
        except (TypeError, ValueError) as error:
            return str(error)

    def _send_call(
        self, call: Call[EventBatch], events: Sequence[EventInput], options: Options
    ) -> Steps[list[EventResult]]:
        if len(events) > 1 and self._largest < MAX_EVENTS_PER_BATCH:
            options = attrs.evolve(options, max_retries=0)  # a smaller batch is the better retry
        try:
            batch = yield from self._patient_call(call, options)
            self._largest = larger_batch(self._largest)
            return _without_contradictions(batch.results)
        except EventBatchError as error:
            # Results about other events decide nothing about these, so the whole call has failed.
            if not put_in_order(error.results, call.event_ids or ()):
                raise
            return _without_contradictions(error.results)
        except (errors.APIStatusError, errors.APIConnectionError) as error:
            is_too_large = getattr(error, "status_code", None) == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            if not is_too_large and (len(events) == 1 or not takes_too_long(error, is_repeated=True)):
                raise
            if not is_too_large:
                # Also for later batches: each that takes too long costs a whole timeout.
                self._largest = len(events) // 2
            problem = error.message if isinstance(error, errors.APIStatusError) else ""
        if len(events) == 1:
            return [_invalid(events[0], problem)]
        return (yield from self._send_in_parts(events, options, (len(events) + 1) // 2))

    def _patient_call(self, call: Call[EventBatch], options: Options) -> Steps[EventBatch]:
        """Make a call, and repeat it a limited number of times while the rate limit is reached."""
        for attempt in range(1, PATIENCE):
            try:
                return (yield from run_call(call, options))
            except errors.RateLimitError as error:
                wait = backoff(attempt, random_fraction()) if error.retry_after is None else error.retry_after
                if wait > LONGEST_WAIT:
                    raise
            yield Wait(wait)
        return (yield from run_call(call, options))


def _without_contradictions(results: list[EventResult]) -> list[EventResult]:
    for result in results:
        if result.accepted != (result.status in ACCEPTED):
            result.error, result.accepted, result.status = problem_of(result), False, "failed"
        result.error = result.error and without_position(result.error)
    return results


def _invalid(event: Any, problem: str) -> EventResult:
    """Return the result of an event that cannot be sent."""
    id = event.get("id") if isinstance(event, Mapping) else None
    text = without_position(problem)
    text = f"the event{text}" if text.startswith(" ") else text
    return EventResult(id=id if isinstance(id, str) else "", accepted=False, status="invalid", error=text)
