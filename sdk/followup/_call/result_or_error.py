"""Makes the result of a call from its response, or the error from its last attempt."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from followup._call.bodies import LONGEST_ERROR_TEXT
from followup._call.options import Options
from followup._call.steps import Call, NoResponse, NotSendable, Outcome, Response
from followup._codec.decode import WireError
from followup._redaction import redacted
from followup._results import errors
from followup._results.results import ResponseInfo, Result

R = TypeVar("R", bound=Result)

_TOKEN = re.compile(
    r'(?P<key>"[^"\\]*(?:\\.[^"\\]*)*":)|(?P<value>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<number>-?\d[\d.eE+-]*)'
)
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
    except (ValueError, RecursionError):
        kind = redacted(response.headers.get("content-type", "no content type"), max_length=100)
        problem = f"its body is not JSON ({len(response.content)} bytes of {kind})"
    else:
        if call.object_id is None or getattr(result, "id", None) == call.object_id:
            return with_response(result, response)
        # A cache, a proxy or bytes left over from another response could return another patient's record.
        problem = "it describes another object than the one in the path"
    # Raised outside the handlers, because the original error holds the body.
    raise errors.ResponseDecodeError(
        f"{call.operation}: the response does not match the specification: {problem}",
        status_code=response.status_code,
        request_id=response.headers.get("request-id"),
        **_resumable(call, attempt, "yes"),
    )


def _json(response: Response) -> Any:
    if response.problem is not None:
        raise WireError("", response.problem)
    return json.loads(response.content)


def with_response(result: R, response: Response) -> R:
    """Set the ``last_response`` of a result, and return the result."""
    result.last_response = ResponseInfo(
        status_code=response.status_code,
        headers=response.headers,
        request_id=response.headers.get("request-id"),
    )
    return result


def error_of(
    call: Call[Any],
    options: Options,
    outcome: Outcome | None,
    attempts: int,
    was_sent: errors.WasSent,
    *,
    late: bool = False,
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


def _resumable(call: Call[Any], attempts: int, was_sent: errors.WasSent) -> dict[str, Any]:
    """Return the attributes of an error with which a caller can resume the call."""
    return {
        "operation": call.operation,
        "idempotency_key": call.idempotency_key,
        "attempts": attempts,
        "was_sent": was_sent,
    }


def _why(outcome: NoResponse) -> str:
    reason = f"{outcome.name}: {outcome.detail}" if outcome.detail else outcome.name
    if isinstance(outcome, NotSendable):
        return f"the request cannot be sent ({reason})"
    return f"no response in time ({reason})" if outcome.timed_out else f"no response ({reason})"


def _status_error(call: Call[Any], options: Options, response: Response, attempts: int) -> errors.APIStatusError:
    body = _error_body(response)
    kind = errors.status_error_class(response.status_code, body)
    if call.batch_error is not None and isinstance(body, dict) and "results" in body:
        kind = call.batch_error
    return kind(
        status_code=response.status_code,
        headers=response.headers,
        body=body,
        **_resumable(call, attempts, "yes"),
        sent_values=[options.api_key, *_strings_sent(call)],
        note=response.note,
    )


def _error_body(response: Response) -> Any:
    try:
        return _json(response)
    except (WireError, ValueError, RecursionError):
        # A character has at most four bytes, so this suffices for the characters that are kept.
        return response.content[: 4 * LONGEST_ERROR_TEXT].decode(errors="replace")[:LONGEST_ERROR_TEXT]


def _strings_sent(call: Call[Any]) -> Iterator[str]:
    """Yield the values of the request, which the service may quote in an error."""
    yield from (value for _, value in parse_qsl(call.query, keep_blank_values=True))
    # Token by token: a parser would raise RecursionError for a body that is nested as deeply as can be sent.
    for found in _TOKEN.finditer((call.content or b"").decode()):
        if found["value"]:
            yield json.loads(found["value"])
        elif found["number"]:
            yield found["number"]
