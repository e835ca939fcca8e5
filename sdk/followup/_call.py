"""The life of a call, from its first attempt to its result or error, as a generator that performs no I/O.

``run_call`` makes the decisions, a driver (``_drivers``) sends and sleeps. This is the contract between the two:

- The driver starts the generator with ``next`` and resumes it with ``send``, from one thread or task at a time.
- When the generator yields a ``Send``, the driver makes exactly one attempt, which must end within ``Send.seconds``,
  and resumes the generator with its ``Outcome``. A failed attempt is an outcome too: the driver never raises a failure
  that ``_outcomes`` has a class for.
- When the generator yields a ``Wait``, the driver sleeps for its seconds and resumes the generator with None.
- When the call succeeds, the generator returns the result (``StopIteration.value``). When it fails for good, the
  generator raises a ``FollowUpError`` with the attributes that a caller needs to resume the call safely.
- Any other exception ends the call outside the generator: ``KeyboardInterrupt``, a cancelled task, a closed client, an
  exception of a user's event hook. The driver lets it propagate and discards the generator, which then releases its
  place in the request rate and holds nothing else. The driver never throws an exception into the generator.

All ``Send`` steps of one call carry the same request, byte for byte, with the same idempotency key. Between two of
them, and before the first where the client has a request rate, there may be any number of ``Wait`` steps.
"""

import itertools
import json
import logging
import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

import attrs

from followup._bodies import ACCEPT_ENCODING
from followup._codec.decode import WireError
from followup._errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    FollowUpError,
    ResponseDecodeError,
    WasSent,
    status_error_class,
)
from followup._governor import Governor, Slot
from followup._options import Options
from followup._outcomes import NoResponse, NotSendable, Outcome, Response
from followup._redaction import redacted
from followup._results import ResponseInfo, Result
from followup._retry import may_have_been_done, may_have_reached_the_service, seconds_before_retry
from followup._version import __version__

R = TypeVar("R", bound=Result)

LONGEST_ERROR_TEXT = 10_000
"""Characters of a body that is not JSON that an error keeps."""

logger = logging.getLogger("followup")


@attrs.frozen(kw_only=True)
class Call(Generic[R]):
    """One call, complete before its first attempt, so that every attempt sends the same bytes and the same key.

    Attributes:
        decode: converts the JSON of a successful response to the result.
        batch_error: class of the error to raise for a body that has ``results``.
        when_gone: creates the result of a deletion that an earlier attempt may have carried out.
        object_id: id in the path, which the result must have as well; None where it need not.
    """

    operation: str
    method: str
    path_template: str
    path: str
    query: str = attrs.field(default="", repr=False)
    content: bytes | None = attrs.field(default=None, repr=False)
    idempotency_key: str | None = None
    decode: Callable[[Any], R] = attrs.field(repr=False)
    batch_error: type[APIStatusError] | None = None
    when_gone: Callable[[], R] | None = attrs.field(default=None, repr=False)
    object_id: str | None = None


@attrs.frozen(kw_only=True)
class Send:
    """A step: send this request once, and resume the generator with the outcome.

    Attributes:
        timeouts: seconds for the parts of the attempt (connect, read, write, pool); None for those of the HTTP client.
        seconds: time limit of the attempt as a whole, body included; None for no limit.
    """

    method: str
    url: str = attrs.field(repr=False)
    headers: dict[str, str] = attrs.field(repr=False)
    content: bytes | None = attrs.field(repr=False)
    timeouts: Mapping[str, float | None] | None
    seconds: float | None


@attrs.frozen
class Wait:
    """A step: sleep for this many seconds, and resume the generator with None."""

    seconds: float


T = TypeVar("T")
Steps = Generator[Send | Wait, Outcome | None, T]


def run_call(
    call: Call[R],
    options: Options,
    *,
    now: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] | None = None,
    jitter: Callable[[], float] = random.random,
) -> Steps[R]:
    """Run a call: send its request, and retry it until it succeeds or fails for good.

    Args:
        call: the call.
        options: the options of the client.
        now: returns the seconds of a monotonic clock, for the deadline.
        wall_clock: returns seconds since the epoch, for a ``Retry-After`` that is a date; ``time.time`` when omitted.
        jitter: returns a random number from 0 to 1 for each backoff.

    Returns:
        The result of the call, once the driver has taken every step.

    Raises:
        APIConnectionError, APITimeoutError, APIStatusError, ResponseDecodeError: the call failed. The error has the
            idempotency key, the number of attempts, and whether the request was sent.
    """
    send = _first_step(call, options)
    deadline = _Deadline(options.deadline, now)
    history = _History()
    outcome: Outcome | None = None
    for attempt in itertools.count(1):
        slot = None
        if options.governor is not None:
            slot = yield from _slot(options.governor, deadline, now)
            if slot is None:
                raise _without_slot(call, options, outcome, attempt - 1, history.was_sent)
        started = now()
        outcome = yield deadline.bounded(send)
        assert outcome is not None
        if slot is not None:
            slot.done(now())
        _log_attempt(call, attempt, outcome, now() - started)
        if isinstance(outcome, Response):
            if outcome.is_success:
                return _result(call, outcome, attempt)
            if outcome.status_code == 404 and call.when_gone and history.may_be_done:
                return _with_response(call.when_gone(), outcome)
        history.add(outcome)
        wait = None
        if attempt <= options.max_retries:
            wait = seconds_before_retry(outcome, attempt, jitter=jitter, wall_clock=wall_clock)
        if wait is None or deadline.expires_within(wait):
            raise _error(call, options, outcome, attempt, history.was_sent, late=deadline.is_reached())
        if wait > 0:
            yield Wait(wait)
    raise AssertionError("unreachable")  # pragma: no cover


def _slot(governor: Governor, deadline: "_Deadline", now: Callable[[], float]) -> Generator[Wait, Any, Slot | None]:
    """Wait until the request rate of the client lets a request be sent; None if the deadline comes first."""
    slot = governor.slot(now(), within=deadline.seconds_left())
    if slot is None:
        return None
    try:
        while (seconds := slot.wait(now())) > 0:
            if deadline.expires_within(seconds):
                return None
            yield Wait(seconds)
        slot.sent(now())
        return slot
    finally:
        if not slot.is_sent:
            governor.take_back(slot)


class _Deadline:
    """The deadline of a whole call; None for no deadline."""

    def __init__(self, seconds: float | None, now: Callable[[], float]) -> None:
        self._ends = None if seconds is None else now() + seconds
        self._now = now

    def seconds_left(self) -> float | None:
        """Return the time until it comes, never below 0; None if it never comes."""
        return None if self._ends is None else max(0.0, self._ends - self._now())

    def bounded(self, send: Send) -> Send:
        """Return the step, limited to the time that is left."""
        left = self.seconds_left()
        if left is None:
            return send
        return attrs.evolve(send, seconds=left if send.seconds is None else min(send.seconds, left))

    def expires_within(self, seconds: float) -> bool:
        """Return whether no time would be left after a wait of this length."""
        return self._ends is not None and self._now() + seconds >= self._ends

    def is_reached(self) -> bool:
        # A timer may fire a little early, so a millisecond before the deadline counts as reached.
        return self._ends is not None and self._now() > self._ends - 0.001


class _History:
    """The attempts so far: whether the request was sent, and whether it may have taken effect."""

    def __init__(self) -> None:
        self.was_sent: WasSent = "no"
        self.may_be_done = False

    def add(self, outcome: Outcome) -> None:
        if isinstance(outcome, Response):
            self.was_sent = "yes"
        elif self.was_sent == "no" and may_have_reached_the_service(outcome):
            self.was_sent = "maybe"
        self.may_be_done |= may_have_been_done(outcome)


def _first_step(call: Call[Any], options: Options) -> Send:
    headers = {
        "Authorization": f"Bearer {options.api_key}",
        "Service-Version": options.service_version,
        "Accept": "application/json",
        "Accept-Encoding": ACCEPT_ENCODING,
        "User-Agent": f"followup-python/{__version__}",
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


def _result(call: Call[R], response: Response, attempt: int) -> R:
    try:
        result = call.decode(_json(response))
    except WireError as error:
        problem = f"{error.path or 'the body'} {error.problem}"
    except (ValueError, RecursionError):
        kind = redacted(response.headers.get("content-type", "no content type"), max_length=100)
        problem = f"its body is not JSON ({len(response.content)} bytes of {kind})"
    else:
        if call.object_id is None or getattr(result, "id", None) == call.object_id:
            return _with_response(result, response)
        # A cache, a proxy or bytes left over from another response could return another patient's record.
        problem = "it describes another object than the one in the path"
    # Raised outside the handlers, because the original error holds the body.
    raise ResponseDecodeError(
        f"{call.operation}: the response does not match the specification: {problem}",
        status_code=response.status_code,
        request_id=response.headers.get("request-id"),
        operation=call.operation,
        idempotency_key=call.idempotency_key,
        attempts=attempt,
        was_sent="yes",
    )


def _json(response: Response) -> Any:
    if response.problem is not None:
        raise WireError("", response.problem)
    return json.loads(response.content)


def _with_response(result: R, response: Response) -> R:
    result.last_response = ResponseInfo(
        status_code=response.status_code,
        headers=response.headers,
        request_id=response.headers.get("request-id"),
    )
    return result


def _error(
    call: Call[Any],
    options: Options,
    outcome: Outcome,
    attempts: int,
    was_sent: WasSent,
    *,
    late: bool,
) -> FollowUpError:
    if isinstance(outcome, Response):
        return _status_error(call, options, outcome, attempts)
    kind = APITimeoutError if outcome.timed_out else APIConnectionError
    problem = (
        f"not completed within the deadline of {options.deadline:g} s" if late and outcome.timed_out else _why(outcome)
    )
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return kind(
        f"{call.operation}: {problem}{tries}",
        operation=call.operation,
        idempotency_key=call.idempotency_key,
        attempts=attempts,
        was_sent=was_sent,
    )


def _without_slot(
    call: Call[Any], options: Options, outcome: Outcome | None, attempts: int, was_sent: WasSent
) -> FollowUpError:
    """Return the error of a call that the request rate would hold up beyond its deadline."""
    assert options.governor is not None
    if outcome is not None:
        return _error(call, options, outcome, attempts, was_sent, late=False)
    return APITimeoutError(
        f"{call.operation}: not sent within its deadline of {options.deadline:g} s, because of "
        f"requests_per_minute={options.governor.requests_per_minute}",
        operation=call.operation,
        idempotency_key=call.idempotency_key,
        attempts=attempts,
        was_sent=was_sent,
    )


def _why(outcome: NoResponse) -> str:
    reason = f"{outcome.name}: {outcome.detail}" if outcome.detail else outcome.name
    if isinstance(outcome, NotSendable):
        return f"the request cannot be sent ({reason})"
    return f"no response in time ({reason})" if outcome.timed_out else f"no response ({reason})"


def _status_error(call: Call[Any], options: Options, response: Response, attempts: int) -> APIStatusError:
    body = _error_body(response.content)
    kind = status_error_class(response.status_code, body)
    if call.batch_error is not None and isinstance(body, dict) and "results" in body:
        kind = call.batch_error
    return kind(
        status_code=response.status_code,
        headers=response.headers,
        body=body,
        operation=call.operation,
        idempotency_key=call.idempotency_key,
        attempts=attempts,
        was_sent="yes",
        sent_values=[options.api_key, *_strings_sent(call)],
    )


def _error_body(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        # A character has at most four bytes, so this suffices for the characters that are kept.
        return content[: 4 * LONGEST_ERROR_TEXT].decode(errors="replace")[:LONGEST_ERROR_TEXT]


def _strings_sent(call: Call[Any]) -> Iterator[str]:
    """Yield the values of the request, which the service may quote in an error."""
    yield from (value for _, value in parse_qsl(call.query, keep_blank_values=True))
    left = [json.loads(call.content)] if call.content is not None else []
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(value)
        elif isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
