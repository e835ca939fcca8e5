"""The life of a call, from its first attempt to its result or error, as a generator that performs no I/O.

``run_call`` makes the decisions, a driver (``steps.drive``) sends and sleeps. This is the contract between the two:

- The driver starts the generator with ``next`` and resumes it with ``send``, from one thread or task at a time.
- When the generator yields a ``Send``, the driver makes exactly one attempt, which must end within ``Send.limit()``,
  and resumes the generator with its ``Outcome``. A failed attempt is an outcome too: the driver never raises a failure
  that ``steps`` has a class for.
- When the generator yields a ``Wait``, the driver sleeps for ``Wait.seconds`` and resumes the generator with None.
- When the call succeeds, the generator returns the result (``StopIteration.value``). When it fails for good, the
  generator raises a ``FollowUpError`` with the attributes that a caller needs to resume the call safely.
- Any other exception ends the call outside the generator: ``KeyboardInterrupt``, a cancelled task, a closed client, an
  exception of a user's event hook. The driver closes the generator and lets the exception propagate. The generator
  releases its place in the request rate, and holds nothing else. The driver never throws an exception into it.

All ``Send`` steps of one call carry the same request, byte for byte, with the same idempotency key. Between two of
them, and before the first where the client has a request rate, there may be any number of ``Wait`` steps.

Where calls are recorded (``telemetry``), ``Options.observe`` wraps the generator in another one, which passes the
steps on under the same contract.
"""

import itertools
import logging
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import attrs

from followup._core.api_rules import WasSent
from followup._core.call.options import Options
from followup._core.call.request_rate import Governor, Slot
from followup._core.call.responses import ACCEPT_ENCODING, error_of, result_of, with_response
from followup._core.call.steps import Broken, Call, NotSendable, Outcome, Response, Send, Steps, Wait
from followup._core.errors import parse_retry_after
from followup._core.redaction import redacted
from followup._core.results import Result
from followup._core.time import Time, random_fraction

R = TypeVar("R", bound=Result)

logger = logging.getLogger("followup")

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0
# The only documented reason of a 429 is a limit per minute (section 8), so a longer one means something else.
LONGEST_RETRY_AFTER = 60.0
"""Seconds. For a longer ``Retry-After`` the call fails at once; the error has it as ``retry_after``."""

# 409: another request with the same idempotency key is in progress (section 7), so its response is there soon.
RETRIED_STATUSES = frozenset({408, 409, 429})
"""The retried statuses besides every 5xx."""


def run_call(call: Call[R], options: Options) -> Steps[R]:
    """Run a call: send its request, and retry it until it succeeds or fails for good.

    Args:
        call: the call to run.
        options: the options of the client.

    Returns:
        A generator, whose return value is the result of the call.

    Raises:
        APIConnectionError, APITimeoutError, APIStatusError, ResponseDecodeError: the call failed. The error has the
            idempotency key, the number of attempts, and whether the request was sent.
    """
    steps = _attempts(call, options)
    return steps if options.observe is None else options.observe(call, steps)


def _attempts(call: Call[R], options: Options) -> Steps[R]:
    now = options.time.monotonic
    send = _first_step(call, options)
    deadline = _Deadline(options.deadline, now)
    was_sent: WasSent = "no"
    may_be_done = False
    outcome: Outcome | None = None
    for attempt in itertools.count(1):
        slot = None
        if options.governor is not None:
            slot = yield from _slot(options.governor, deadline, now)
            if slot is None:
                raise error_of(call, options, outcome, attempt - 1, was_sent)
        started = now()
        try:
            if slot is not None:
                slot.sent(started)
            outcome = yield deadline.bounded(send)
        finally:  # also when the call is cancelled
            if slot is not None:
                slot.done(now)
        assert outcome is not None
        _log_attempt(call, attempt, outcome, now() - started)
        if isinstance(outcome, Response):
            if outcome.is_success:
                return result_of(call, outcome, attempt)
            # The first attempt may have deleted the object, and only its response was lost.
            if outcome.status_code == 404 and call.when_gone and may_be_done:
                return with_response(call.when_gone(), outcome)
        # "maybe" of one attempt is not undone by "no" of a later one, which never had a connection.
        if was_sent == "no" or outcome.was_sent == "yes":
            was_sent = outcome.was_sent
        may_be_done |= outcome.may_be_done
        # A wait that would use up the deadline is not begun: the caller gets the error of this attempt at once.
        wait = None
        if attempt <= options.max_retries:
            wait = seconds_before_retry(outcome, attempt, options.time)
        if wait is None or deadline.expires_within(wait):
            raise error_of(call, options, outcome, attempt, was_sent, late=deadline.is_reached())
        if wait > 0:
            logger.getChild("retries").debug("%s waits %.1f s before attempt %d", call.operation, wait, attempt + 1)
            yield Wait(wait)
    raise AssertionError("unreachable")  # pragma: no cover


def seconds_before_retry(outcome: Outcome, attempt: int, time: Time) -> float | None:
    """Return the seconds to wait after an attempt that failed; None if the call must not be retried."""
    if isinstance(outcome, Response):
        if outcome.status_code not in RETRIED_STATUSES and outcome.status_code < 500:
            return None
        requested = parse_retry_after(outcome.headers.get("retry-after"), time.now())
        if requested is not None:
            return requested if requested <= LONGEST_RETRY_AFTER else None
    elif isinstance(outcome, NotSendable):
        return None
    elif isinstance(outcome, Broken) and attempt == 1:
        # Most often the service had closed a kept-alive connection. A new one will work, without a wait.
        return 0.0
    return backoff(attempt, random_fraction())


def backoff(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after an attempt: exponential backoff with an upper bound, less up to 25 % jitter.

    Args:
        attempt: number of the attempt, from 1.
        jitter: from 0 for the longest wait to 1 for the shortest.
    """
    # At most 10, because a float has no room for 2 to the power of 1024.
    longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt - 1, 10))
    return longest * (1 - jitter / 4)


def _slot(governor: Governor, deadline: "_Deadline", now: Callable[[], float]) -> Generator[Wait, Any, Slot | None]:
    """Wait for a slot in the request rate of the client; return None if the deadline is earlier."""
    # Reserved before the wait, so that calls are sent in the order in which they came.
    slot = governor.slot(now(), within=deadline.seconds_left())
    if slot is None:
        return None
    try:
        while (seconds := slot.wait(now())) > 0:
            if deadline.expires_within(seconds):
                governor.release(slot)
                return None
            yield Wait(seconds)
    except BaseException:  # the call is cancelled
        governor.release(slot)
        raise
    return slot


class _Deadline:
    """The deadline of a whole call; None for no deadline."""

    def __init__(self, seconds: float | None, now: Callable[[], float]) -> None:
        self._ends = None if seconds is None else now() + seconds
        self._now = now

    def seconds_left(self) -> float | None:
        """Return the time until the deadline, 0 or more; None if there is none."""
        return None if self._ends is None else max(0.0, self._ends - self._now())

    def bounded(self, send: Send) -> Send:
        """Return the step, limited to the time that is left."""
        left = self.seconds_left()
        return send if left is None else attrs.evolve(send, within=left)

    def expires_within(self, seconds: float) -> bool:
        """Return whether no time would be left after a wait of this length."""
        return self._ends is not None and self._now() + seconds >= self._ends

    def is_reached(self) -> bool:
        # A timer may fire a little early, so a millisecond before the deadline counts as reached.
        return self._ends is not None and self._now() > self._ends - 0.001


def _first_step(call: Call[Any], options: Options) -> Send:
    headers = {
        "Authorization": f"Bearer {options.api_key}",
        "Service-Version": options.service_version,
        "Accept": "application/json",
        "Accept-Encoding": ACCEPT_ENCODING,  # httpx would also accept what `responses` does not decompress
        "User-Agent": options.user_agent,
    }
    if call.content is not None:
        headers["Content-Type"] = "application/json"
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    return Send(
        method=call.method,
        url=f"{options.base_url}{call.path}?{call.query}" if call.query else options.base_url + call.path,
        headers=headers,
        content=call.content,
        timeouts=options.timeouts,
        seconds=options.attempt_seconds,
    )


def _log_attempt(call: Call[Any], attempt: int, outcome: Outcome, seconds: float) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    if isinstance(outcome, Response):
        status = str(outcome.status_code)
        # A proxy may put anything into the header, so it is redacted; and the path is the template, without the id.
        request_id = redacted(outcome.headers.get("request-id", "-"), max_length=100)
    else:
        status, request_id = outcome.name, "-"
    logger.info(
        "%s %s %s -> %s in %.0f ms (attempt %d, request %s)",
        call.operation,
        call.method,
        call.path_template,
        status,
        seconds * 1000,
        attempt,
        request_id,
    )
