"""Sends batches of events until each event has its final result (specification, section 4, Events).

Like a call (``_call``), sending a batch is a generator that performs no I/O: it yields the steps of its calls, and the
waits between them.
"""

import itertools
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import attrs

from followup._call.call import run_call
from followup._call.options import Options
from followup._call.retry import backoff
from followup._call.steps import Call, Steps, Wait
from followup._randomness import random_fraction
from followup._results.errors import ResponseDecodeError
from followup._results.status_errors import APIStatusError, RateLimitError
from followup.resources.event_batches import EventBatch, EventBatchError, EventInput, EventResult

PATIENCE = 10
"""Maximum number of consecutive calls that end with the rate limit reached, each after its own retries."""

LONGEST_WAIT = 86_400.0
"""Seconds. For a longer ``Retry-After`` the call fails."""

_PLACE = re.compile(r"^events\[\d+\]\.?")
"""A position in a batch, which is meaningless to a caller of ``send_all``."""


def check_iterable(events: object) -> None:
    """Check that the argument is an iterable of events, and not a single event.

    Raises:
        TypeError: it is not; the message says what is valid.
    """
    if isinstance(events, (Mapping, str, bytes)) or not isinstance(events, (Iterable, AsyncIterable)):
        raise TypeError("events must be an iterable of events; put a single event into a list")


def checked_rounds(rounds: object) -> int:
    """Validate ``max_rounds``.

    Raises:
        ValueError: it is not a whole number of 1 or more.
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ValueError("max_rounds must be a whole number, 1 or more")
    return rounds


@attrs.frozen
class EventSender:
    """Sends batches of events.

    Attributes:
        make_call: returns the call that sends these events; raises TypeError or ValueError if they cannot be sent.
        max_rounds: maximum number of times that an event is sent while its status is ``failed``.
        jitter: returns a random number from 0 to 1 for each backoff.
    """

    make_call: Callable[[Sequence[EventInput]], Call[EventBatch]]
    max_rounds: int
    jitter: Callable[[], float] = random_fraction

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
            latest = yield from self._send_once([events[position] for position in unsettled], options)
            results.update(zip(unsettled, latest, strict=True))
            unsettled = [position for position in unsettled if results[position].status == "failed"]
            if not unsettled or sendings == self.max_rounds:
                break
            yield Wait(backoff(sendings, self.jitter()))
        return [results[position] for position in range(len(events))]

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
        try:
            batch = yield from self._patient_call(call, options)
            return _results_of(call, batch.results, events, batch.last_response.status_code)
        except EventBatchError as error:
            if not error.results:
                raise
            return _results_of(call, error.results, events, error.status_code)
        except APIStatusError as error:
            if error.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise
            problem = error.message
        if len(events) == 1:
            return [_invalid(events[0], problem)]
        half = len(events) // 2
        first = yield from self._send_once(events[:half], options)
        return first + (yield from self._send_once(events[half:], options))

    def _patient_call(self, call: Call[EventBatch], options: Options) -> Steps[EventBatch]:
        """Make a call, and repeat it a limited number of times while the rate limit is reached."""
        for attempt in range(1, PATIENCE):
            try:
                return (yield from run_call(call, options))
            except RateLimitError as error:
                wait = backoff(attempt, self.jitter()) if error.retry_after is None else error.retry_after
                if wait > LONGEST_WAIT:
                    raise
            yield Wait(wait)
        return (yield from run_call(call, options))


def without_position(reason: str) -> str:
    """Return the reason why an event was not accepted, without the event's position in its batch."""
    return _PLACE.sub("", reason)


def _results_of(
    call: Call[EventBatch], results: list[EventResult], events: Sequence[EventInput], status: int
) -> list[EventResult]:
    if len(results) != len(events):
        raise ResponseDecodeError(
            f"{call.operation}: the response has {len(results)} results for {len(events)} events",
            status_code=status,
            operation=call.operation,
            idempotency_key=call.idempotency_key,
            was_sent="yes",
        )
    for result in results:
        result.error = result.error and without_position(result.error)
    return results


def _invalid(event: Any, problem: str) -> EventResult:
    """Return the result of an event that cannot be sent."""
    id = event.get("id") if isinstance(event, Mapping) else None
    text = without_position(problem)
    return EventResult(
        id=id if isinstance(id, str) else "",
        accepted=False,
        status="invalid",
        error=f"the event{text}" if text.startswith(" ") else text,
    )
