"""Sends batches of inbound events until each event has its final result.

Like a call (``_core.call``), this is a generator that performs no I/O: it yields the steps of its calls, and the waits
between them.
"""

import itertools
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import attrs

from followup._core.api_rules import MAX_EVENTS_PER_BATCH
from followup._core.call.options import Options
from followup._core.call.responses import put_in_order
from followup._core.call.retries import backoff
from followup._core.call.steps import Call, Steps, Wait
from followup._core.results.errors import APIConnectionError, APIStatusError, RateLimitError
from followup._core.time import random_fraction
from followup.resources.event_batches import (
    ACCEPTED,
    EventBatch,
    EventBatchError,
    EventInput,
    EventResult,
    larger_batch,
    outcome_of,
    problem_of,
    takes_too_long,
    without_position,
)

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
        try:
            call = self.make_call(events)
        except (TypeError, ValueError) as error:
            problem = str(error)
        else:
            return (yield from self._send_call(call, events, options))
        if len(events) == 1:
            return [_invalid(events[0], problem)]
        return (yield from self._send_without_invalid(events, options))

    def _send_without_invalid(self, events: Sequence[EventInput], options: Options) -> Steps[list[EventResult]]:
        """Send the events that can be encoded, and return ``invalid`` results for the others."""
        problems = [self._problem(event) for event in events]
        sendable = [event for event, problem in zip(events, problems, strict=True) if problem is None]
        results = iter((yield from self._send_once(sendable, options)) if sendable else [])
        return [
            next(results) if problem is None else _invalid(event, problem)
            for event, problem in zip(events, problems, strict=True)
        ]

    def _problem(self, event: EventInput) -> str | None:
        """Return the reason why an event cannot be sent; None if it can."""
        try:
            self.make_call([event])
        except (TypeError, ValueError) as error:
            return str(error)
        return None

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
            if not put_in_order(error.results, call.event_ids or ()):
                raise
            return _without_contradictions(error.results)
        except (APIStatusError, APIConnectionError) as error:
            is_too_large = getattr(error, "status_code", None) == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            if not is_too_large and (len(events) == 1 or not takes_too_long(error, is_repeated=True)):
                raise
            if not is_too_large:
                self._largest = len(events) // 2
            problem = error.message if isinstance(error, APIStatusError) else ""
        if len(events) == 1:
            return [_invalid(events[0], problem)]
        return (yield from self._send_in_parts(events, options, (len(events) + 1) // 2))

    def _patient_call(self, call: Call[EventBatch], options: Options) -> Steps[EventBatch]:
        """Make a call, and repeat it a limited number of times while the rate limit is reached."""
        # Imported late: the mock reads the declarations, and makes no call.
        from followup._core.call.call import run_call

        for attempt in range(1, PATIENCE):
            try:
                return (yield from run_call(call, options))
            except RateLimitError as error:
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
