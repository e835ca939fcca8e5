"""One call, from request to result or error, as a generator.

``exchange`` decides everything and touches no network: it yields what to do next (``Send`` or ``Wait``) and is sent
what came of it. The two clients drive the same generator, one with ``httpx.Client``, one with ``httpx.AsyncClient``.
"""

import itertools
import json
import logging
import random
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

import attrs
import httpx

from followup._codec.decode import WireError
from followup._errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    FollowUpError,
    ResponseDecodeError,
    WasSent,
    parse_retry_after,
    status_error_class,
)
from followup._redaction import redacted
from followup._results import ResponseInfo, Result
from followup._version import __version__

R = TypeVar("R", bound=Result)

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds. A service that asks for more is not waited for: the caller gets the error, and ``retry_after`` with it."""

LONGEST_ERROR_TEXT = 10_000
"""Characters that an error keeps of a body that is not JSON."""

RETRIED_STATUSES = frozenset({408, 409, 429})

logger = logging.getLogger("followup")


@attrs.frozen(kw_only=True)
class Options:
    """What a client was configured with.

    Attributes:
        timeout: bounds of the parts of an attempt; None leaves them to the user's own httpx client.
        attempt_seconds: bound of an attempt as a whole; None for none.
        deadline: seconds for a whole call; None for no deadline.
    """

    api_key: str = attrs.field(repr=False)
    base_url: str
    service_version: str
    timeout: httpx.Timeout | None
    attempt_seconds: float | None
    max_retries: int
    deadline: float | None


@attrs.frozen(kw_only=True)
class Call(Generic[R]):
    """One call, complete before its first attempt, so that every attempt sends the same bytes and the same key."""

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
    """Id of the object in the path that the result must be."""


@attrs.frozen(kw_only=True)
class Send:
    """Send this request and return its outcome; ``seconds`` bounds the whole attempt, body included."""

    method: str
    url: str = attrs.field(repr=False)
    headers: dict[str, str] = attrs.field(repr=False)
    content: bytes | None = attrs.field(repr=False)
    timeout: httpx.Timeout | None
    seconds: float | None


@attrs.frozen
class Wait:
    """Wait this many seconds."""

    seconds: float


@attrs.frozen(kw_only=True)
class Response:
    """A response, read to its end.

    Attributes:
        problem: why its body could not be read, as a predicate; ``content`` is empty then.
    """

    status_code: int
    headers: httpx.Headers = attrs.field(repr=False)
    content: bytes = attrs.field(repr=False)
    problem: str | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code < 300


class NotSendable(Exception):
    """httpx cannot make a request of what it was passed; the text is the name of its error."""


Failure = httpx.RequestError | httpx.StreamError | NotSendable
Outcome = Response | Failure | None


def exchange(call: Call[R], options: Options) -> Generator[Send | Wait, Outcome, R]:
    """Carry one call through its attempts; returns its result.

    Raises:
        APIConnectionError, APITimeoutError, APIStatusError, ResponseDecodeError: with the idempotency key, the number
            of attempts, and whether the request was sent.
    """
    ends = None if options.deadline is None else time.monotonic() + options.deadline
    send = Send(
        method=call.method,
        url=f"{options.base_url}{call.path}?{call.query}" if call.query else options.base_url + call.path,
        headers=_headers(call, options),
        content=call.content,
        timeout=options.timeout,
        seconds=options.attempt_seconds,
    )
    history = _History()
    for attempt in itertools.count(1):
        started = time.monotonic()
        outcome = yield send if ends is None else attrs.evolve(send, seconds=_lesser(send.seconds, _left(ends)))
        assert outcome is not None
        _log_attempt(call, attempt, outcome, time.monotonic() - started)
        if isinstance(outcome, Response):
            if outcome.is_success:
                return _result(call, outcome, attempt)
            if outcome.status_code == 404 and call.when_gone and history.may_be_done:
                return _with_response(call.when_gone(), outcome)
        history.add(outcome)
        wait = _wait_before_retry(outcome, attempt, options.max_retries)
        if wait is None or (ends is not None and wait >= _left(ends)):
            late = ends is not None and _left(ends) < _TOO_LITTLE
            raise _error(call, options, outcome, attempt, history.was_sent, late=late)
        if wait > 0:
            yield Wait(wait)
    raise AssertionError("unreachable")  # pragma: no cover


class _History:
    """What is known of the attempts so far."""

    def __init__(self) -> None:
        self.was_sent: WasSent = "no"
        self.may_be_done = False

    def add(self, outcome: Response | Failure) -> None:
        if isinstance(outcome, Response):
            self.was_sent = "yes"
            self.may_be_done |= outcome.status_code >= 500 or outcome.status_code == 408
        elif not isinstance(outcome, _NEVER_SENT):
            self.was_sent = "yes" if self.was_sent == "yes" else "maybe"
            self.may_be_done = True


_NOT_WORTH_RETRYING = (NotSendable, httpx.UnsupportedProtocol)
_NEVER_SENT = (*_NOT_WORTH_RETRYING, httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_BROKEN_CONNECTION = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


def _headers(call: Call[Any], options: Options) -> dict[str, str]:
    headers = {
        "Authorization": f"Bearer {options.api_key}",
        "Service-Version": options.service_version,
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",  # what _bodies decodes
        "User-Agent": f"followup-python/{__version__}",
    }
    if call.content is not None:
        headers["Content-Type"] = "application/json"
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    return headers


_TOO_LITTLE = 0.001
"""Seconds before a deadline at which it counts as reached: clocks and timers are no more exact."""


def _left(ends: float) -> float:
    return max(0.0, ends - time.monotonic())


def _lesser(bound: float | None, seconds: float) -> float:
    return seconds if bound is None else min(bound, seconds)


def _wait_before_retry(outcome: Response | Failure, attempt: int, max_retries: int) -> float | None:
    """Seconds until the next attempt; None if there is to be none."""
    if attempt > max_retries or isinstance(outcome, _NOT_WORTH_RETRYING):
        return None
    if isinstance(outcome, Response):
        if outcome.status_code not in RETRIED_STATUSES and outcome.status_code < 500:
            return None
        asked = parse_retry_after(outcome.headers.get("retry-after"))
        if asked is not None:
            return asked if asked <= LONGEST_RETRY_AFTER else None
    elif attempt == 1 and isinstance(outcome, _BROKEN_CONNECTION):
        # Most often a kept-alive connection that the service had closed: a fresh one will do, at once.
        return 0.0
    return backoff(attempt)


def backoff(attempt: int) -> float:
    """Seconds to wait after this attempt: doubling, bounded, and up to a quarter less so that clients spread out."""
    longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt - 1, 10))
    return longest * (1 - random.random() / 4)  # noqa: S311 - spreads load, protects nothing


def _log_attempt(call: Call[Any], attempt: int, outcome: Response | Failure, seconds: float) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    if isinstance(outcome, Response):
        status = str(outcome.status_code)
        request_id = redacted(outcome.headers.get("request-id", "-"), max_length=100)
    else:
        status, request_id = type(outcome).__name__, "-"
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
        problem = f"{len(response.content)} bytes of {kind} that are not JSON"
    else:
        if call.object_id is None or getattr(result, "id", None) == call.object_id:
            return _with_response(result, response)
        # A cache, a proxy, or bytes left over from another response: it may be another patient's record.
        problem = "it is about another object than the one in the path"
    # Raised here, where no exception is being handled, so that its context holds no part of the body.
    raise ResponseDecodeError(
        f"{call.operation}: the response is not what the contract says: {problem}",
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
    outcome: Response | Failure,
    attempts: int,
    was_sent: WasSent,
    *,
    late: bool,
) -> FollowUpError:
    if isinstance(outcome, Response):
        return _status_error(call, options, outcome, attempts)
    kind: type[APIConnectionError] = APITimeoutError
    if late and isinstance(outcome, httpx.TimeoutException):
        problem = f"not done within its deadline of {options.deadline:g} s"
    elif isinstance(outcome, httpx.TimeoutException):
        problem = f"no answer in time ({type(outcome).__name__})"
    elif isinstance(outcome, NotSendable):
        kind, problem = APIConnectionError, f"the request cannot be sent ({outcome})"
    else:
        kind, problem = APIConnectionError, f"no answer ({_why(outcome)})"
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return kind(
        f"{call.operation}: {problem}{tries}",
        operation=call.operation,
        idempotency_key=call.idempotency_key,
        attempts=attempts,
        was_sent=was_sent,
    )


def _why(failure: Failure) -> str:
    # Other texts of httpx may quote bytes that the server sent.
    return f"ConnectError: {failure}" if isinstance(failure, httpx.ConnectError) else type(failure).__name__


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
        # No character takes more than four bytes.
        return content[: 4 * LONGEST_ERROR_TEXT].decode(errors="replace")[:LONGEST_ERROR_TEXT]


def _strings_sent(call: Call[Any]) -> Iterator[str]:
    """The values that the request carried, as a service may quote them."""
    yield from (value for _, value in httpx.QueryParams(call.query).multi_items())
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
