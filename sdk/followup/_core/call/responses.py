"""Reads bodies of responses; makes the result of a call from its response, or the error from its last attempt."""

import contextlib
import functools
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from followup._core import errors
from followup._core.api_rules import WasSent
from followup._core.call.options import Options
from followup._core.call.steps import Call, NoResponse, NotSendable, Outcome, Response
from followup._core.codec.wire import WireError, is_deep
from followup._core.redaction import redacted
from followup._core.results import ResponseInfo, Result

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Maximum size of a successful response, both compressed and decompressed."""

MAX_ERROR_BYTES = 8 * 1024 * 1024
"""Maximum size of any other response: 80 KiB for the reason of each event of the largest batch."""

LONGEST_ERROR_TEXT = 10_000
"""Characters that an error keeps of a body that is not JSON, or is too large."""

# Not deflate, which servers send with and without the header of zlib.
ACCEPT_ENCODING = "gzip"

OTHER_EVENTS = "its results are about other events than those that were sent"


class Body:
    """Collects the body of a response from its raw chunks, and decompresses it, up to a limit.

    httpx would decompress a body to any size, in any number of content codings: 300 bytes can become 100 MB.
    """

    def __init__(self, status_code: int, headers: Mapping[str, str]) -> None:
        self._status_code = status_code
        self._headers = headers
        self._problem: str | None = None
        self._content = bytearray()
        self._limit = _limit_of(status_code)
        self._raw_size = 0
        self._inflater: zlib._Decompress | None = None
        if coding := headers.get("content-encoding"):
            codings = [each for each in map(str.strip, coding.lower().split(",")) if each not in ("", "identity")]
            if codings in (["gzip"], ["x-gzip"]):
                self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16: gzip, and not zlib
            elif codings:
                self._problem = "has a content coding other than gzip alone"

    @property
    def is_finished(self) -> bool:
        """Whether further chunks are ignored. Bytes after the compressed data, as for browsers, may be endless."""
        has_trailing_bytes = self._inflater is not None and self._inflater.unused_data != b""
        return self._problem is not None or len(self._content) > self._limit or has_trailing_bytes

    def feed(self, chunk: bytes) -> None:
        """Add a raw chunk."""
        self._raw_size += len(chunk)
        try:
            if self._inflater is not None:
                # At least 1, because zlib takes 0 for no limit.
                chunk = self._inflater.decompress(chunk, self._limit + 1 - len(self._content))
        except zlib.error:
            self._problem = "cannot be decompressed"
        else:
            self._content += chunk
            if self._raw_size > self._limit:  # compressed data that decompress to nothing may be endless, too
                self._problem = _too_large(self._limit)

    def response(self) -> Response:
        """Return the response, after the last chunk."""
        if self._raw_size and self._inflater and not self._inflater.eof and not self.is_finished:
            self._problem = "ends in the middle of its compressed data"
        return response_of(self._status_code, self._headers, bytes(self._content), self._problem)


def _limit_of(status_code: int) -> int:
    return MAX_BODY_BYTES if 200 <= status_code < 300 else MAX_ERROR_BYTES


def _too_large(limit: int) -> str:
    return f"is larger than {limit // 1024 // 1024} MiB"


def response_of(status_code: int, headers: Mapping[str, str], content: bytes, problem: str | None = None) -> Response:
    """Return a response with its decompressed body; with a problem, with the beginning of the body of an error."""
    limit = _limit_of(status_code)
    if len(content) > limit:
        problem = _too_large(limit)
    if problem is not None:
        content = b"" if limit == MAX_BODY_BYTES else content[: 4 * LONGEST_ERROR_TEXT]
    return Response(status_code=status_code, headers=headers, content=content, problem=problem)


R = TypeVar("R", bound=Result)

_PIECE = r'(?P<key>"[^"\\]*(?:\\.[^"\\]*)*":)|(?P<value>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<number>-?\d[\d.eE+-]*)'
"""A string or a number of a body, which has no spaces between its tokens."""


def result_of(call: Call[R], response: Response, attempt: int) -> R:
    """Decode a successful response.

    Raises:
        ResponseDecodeError: the response does not match the specification.
    """
    try:
        result = call.decode(_json(response))
    except WireError as error:
        problem = f"{error.path or 'the body'} {error.problem}"
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError; arrays in arrays can recurse too deeply
        kind = redacted(response.headers.get("content-type", "no content type"), max_length=100)
        problem = f"its body is not JSON ({len(response.content)} bytes of {kind})"
    else:
        # A cache, a proxy or bytes left over from another response could return another patient's record.
        if call.object_id is not None and getattr(result, "id", None) != call.object_id:
            problem = "it describes another object than the one in the path"
        elif call.event_ids is not None and not put_in_order(getattr(result, "results", []), call.event_ids):
            problem = OTHER_EVENTS
        else:
            return with_response(result, response)
    # Raised outside the handlers, because the original error holds the body.
    raise errors.ResponseDecodeError(
        f"{call.operation}: the response does not match the specification: {problem}",
        status_code=response.status_code,
        request_id=response.headers.get("request-id"),
        **_resumable(call, attempt, "yes"),
    )


def put_in_order(results: list[Any], ids: Sequence[str]) -> bool:
    """Put the results of a batch in the order of its events; return False if they are about other events."""
    # An id may be there twice: sending an event again in one batch is allowed, and has no effect.
    found = [each.id for each in results]
    if found != ids:
        if sorted(found) != sorted(ids):
            return False
        results.sort(key=lambda each: ids.index(each.id))
    return True


def _json(response: Response) -> Any:
    if response.problem is not None:
        raise WireError("", response.problem)
    return json.loads(response.content)


def with_response(result: R, response: Response) -> R:
    """Set the ``last_response`` of a result, and return the result."""
    result.last_response = ResponseInfo(
        status_code=response.status_code, headers=response.headers, request_id=response.headers.get("request-id")
    )
    return result


def error_of(
    call: Call[Any], options: Options, outcome: Outcome | None, attempts: int, was_sent: WasSent, *, late: bool = False
) -> errors.FollowUpError:
    """Return the error for the last attempt of a call; ``late`` is whether the deadline of the call was reached.

    The outcome is None if the request rate would delay the first attempt beyond the deadline.
    """
    if isinstance(outcome, Response):
        return _status_error(call, options, outcome, attempts)
    kind = errors.APITimeoutError if outcome is None or outcome.timed_out else errors.APIConnectionError
    if outcome is None:
        assert options.governor is not None
        rate = f"requests_per_minute={options.governor.requests_per_minute}"
        problem = f"not sent within the deadline of {options.deadline:g} s, because of {rate}"
    elif late and outcome.timed_out:
        problem = f"not completed within the deadline of {options.deadline:g} s"
    else:
        problem = _why(outcome)
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return kind(f"{call.operation}: {problem}{tries}", **_resumable(call, attempts, was_sent))


def _resumable(call: Call[Any], attempts: int, was_sent: WasSent) -> dict[str, Any]:
    """Return the attributes of an error with which a caller can resume the call."""
    return {
        "operation": call.operation,
        "idempotency_key": call.idempotency_key,
        "attempts": attempts,
        "was_sent": was_sent,
    }


def _why(outcome: NoResponse) -> str:
    reason = f"{outcome.name}: {outcome.detail}" if outcome.detail else outcome.name
    if "WRONG_VERSION_NUMBER" in reason:
        reason += "; this port does not speak https: a mock needs http"
    if isinstance(outcome, NotSendable):
        return f"the request cannot be sent ({reason})"
    return f"no response in time ({reason})" if outcome.timed_out else f"no response ({reason})"


def _status_error(call: Call[Any], options: Options, response: Response, attempts: int) -> errors.APIStatusError:
    body = _error_body(response)
    kind: Callable[..., errors.APIStatusError] = errors.status_error_class(response.status_code, body)
    # Only the service refuses a batch; a gateway in front of it that answers 401 or 503 decides nothing about an event.
    if (
        call.batch_error is not None
        and response.status_code in (400, 500)
        and isinstance(body, dict)
        and "results" in body
    ):
        kind = functools.partial(call.batch_error, event_ids=call.event_ids)
    return kind(
        status_code=response.status_code,
        headers=response.headers,
        body=body,
        **_resumable(call, attempts, "yes"),
        sent_values=[options.api_key, *_strings_sent(call)],
        note=response.note,
    )


def _error_body(response: Response) -> Any:
    with contextlib.suppress(WireError, ValueError, RecursionError):
        body = _json(response)
        if not is_deep(body):
            return body
    # A character has at most four bytes, so this suffices for the characters that are kept.
    return response.content[: 4 * LONGEST_ERROR_TEXT].decode(errors="replace")[:LONGEST_ERROR_TEXT]


def _strings_sent(call: Call[Any]) -> Iterator[str]:
    """Yield the values of the request, which the service may quote in an error."""
    yield from (value for _, value in parse_qsl(call.query, keep_blank_values=True))
    # Token by token: a parser would raise RecursionError for a body that is nested as deeply as can be sent.
    for found in re.finditer(_PIECE, (call.content or b"").decode()):
        if found["value"]:
            yield json.loads(found["value"])
        elif found["number"]:
            yield found["number"]
