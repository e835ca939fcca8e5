"""The error tree, and the choice of the error for a response (specification, section 7).

::

    FollowUpError
    ├── ConfigurationError            a missing or invalid option of a client (also a ValueError)
    ├── APIConnectionError            no response arrived
    │   └── APITimeoutError           ... in time
    ├── APIStatusError                a response that is not a success
    │   ├── InvalidRequestError       400
    │   ├── IdempotencyError          400, type idempotency_error
    │   ├── EventBatchError           400 or 500 of events.create (in resources/event_batches.py)
    │   ├── AuthenticationError       401
    │   ├── PermissionDeniedError     403
    │   ├── NotFoundError             404
    │   ├── ConflictError             409
    │   ├── RateLimitError            429
    │   └── InternalServerError       5xx
    ├── ResponseDecodeError           a success that does not match the specification
    ├── PaginationError               a cursor that does not move
    └── WebhookSignatureError         a webhook that must not be trusted
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from followup._core.plain import TYPE_CHECKING, Late

if TYPE_CHECKING:
    import typing
    from datetime import datetime
    from typing import Any

    import httpx

    from followup._core import api_rules as rules
    from followup._core.redaction import SentValues
else:
    rules, typing = Late("followup._core.api_rules"), Late("typing")
    httpx = Late("httpx")  # the mock and the commands read the declarations, and need no HTTP client


class FollowUpError(Exception):
    """Base of every error that this package raises on purpose.

    All of them pickle and hold plain data: never an API key, a request body or an open response. With the attributes a
    caller can resume a call safely; an error that does not come from a call has their defaults.

    Attributes:
        operation: name of the operation, such as ``patients.create``; empty where no call was made.
        idempotency_key: the key of every attempt; pass it to a later call, and the request takes effect only once.
            None for operations without one.
        attempts: number of attempts.
        was_sent: ``"no"``: the service has not received the request; ``"yes"``: it responded; ``"maybe"``: neither is
            certain.
    """

    def __init__(
        self,
        message: str = "",
        *,
        operation: str = "",
        idempotency_key: str | None = None,
        attempts: int = 0,
        was_sent: rules.WasSent = "no",
    ) -> None:
        super().__init__(message)
        self.operation: str = operation
        self.idempotency_key = idempotency_key
        self.attempts = attempts
        self.was_sent = was_sent

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("followup."):
            # So that tracebacks show the name that users import.
            cls.__module__ = "followup"

    def __reduce__(self) -> tuple[Callable[..., BaseException], tuple[Any, ...]]:
        return _restored, (type(self), self.args, self.__dict__)


# Not by calling the class, whose constructor would take the redacted text for that of the service.
def _restored(cls: type[FollowUpError], args: tuple[Any, ...], state: dict[str, Any]) -> FollowUpError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


FollowUpError.__module__ = "followup"


class ConfigurationError(FollowUpError, ValueError):
    """An option of a client is missing or invalid. The message names it, and says what is valid."""


class WebhookSignatureError(FollowUpError):
    """A webhook request that must not be trusted (specification, section 6.2, Signature).

    Attributes:
        reason: the check that failed: ``missing_header``, ``malformed_header``, ``malformed_payload``, ``too_old``,
            ``too_new`` or ``wrong_signature``. Empty in an error that was restored from its text alone.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class APIConnectionError(FollowUpError):
    """No response arrived: the service could not be reached, or the connection broke."""


class APITimeoutError(APIConnectionError):
    """No response arrived within ``timeout``, or the call was not completed within ``deadline``."""


class ResponseDecodeError(FollowUpError):
    """A 2xx response that does not match the specification.

    It is not JSON, is too large, lacks a field, or has one of the wrong type. Or it describes another object than the
    one in the path, or other events than those that were sent. The service carried out the request. The message names
    the problem, and never shows the body.

    Attributes:
        status_code: HTTP status of the response; 0 in an error that was restored from its text alone.
        request_id: id of the request, which the service's support asks for.
    """

    def __init__(
        self, message: str, *, status_code: int = 0, request_id: str | None = None, **call: typing.Any
    ) -> None:
        super().__init__(message, **call)
        self.status_code = status_code
        self.request_id = request_id


class PaginationError(FollowUpError):
    """Pagination cannot make progress: the cursor does not move, or ``has_more`` is true on a page without items."""


class APIStatusError(FollowUpError):
    """The service responded with an error (specification, section 7).

    The text of the error contains the service's message, redacted and cut at 1,000 characters. ``…`` replaces
    e-mail addresses, numbers of six digits or more, and the request's values of three characters or more, also with
    other case, accents, separators or escapes. From the beginning of a long value, it replaces all that follows.
    Redaction does not recognize other personal data, such as a patient's name that the request did not contain. The
    attributes are not redacted.

    Attributes:
        status_code: HTTP status.
        type: error type, such as ``invalid_request_error``; None where the response has none.
        code: stable error code, such as ``resource_missing``; None where the response has none.
        message: message of the service; where the response has none, the status and its standard phrase, such as
            ``502 Bad Gateway``.
        param: path of the invalid field, such as ``patient.phone``; None where the response has none.
        request_id: id of the request, which the service's support asks for.
        headers: headers of the response; their case does not matter.
        body: the decoded JSON body, or the first 10,000 characters of a body that is not JSON.
        retry_after: seconds to wait before the next request, from ``Retry-After``; None where the response has none.
    """

    def __init__(
        self,
        text: str = "",
        *,
        status_code: int = 0,
        headers: Mapping[str, str] | None = None,
        body: typing.Any = None,
        sent_values: Iterable[str] = (),
        note: str = "",
        **call: typing.Any,
    ) -> None:
        from followup._core.redaction import SentValues  # late: verifying a webhook does not need it

        # No text yet: it needs the attributes that are set below.
        super().__init__(**{"was_sent": "yes", **call})
        self.status_code: int = status_code
        self.headers: httpx.Headers = headers_from(headers or {})
        self.body = body
        self.type: str | None
        self.code: str | None
        self.param: str | None
        self.type, self.code, message, self.param = _error_fields(body)
        self.message: str = message or f"{status_code} {httpx.codes.get_reason_phrase(status_code)}".rstrip()
        self.request_id: str | None = self.headers.get("request-id")
        self.retry_after: float | None = parse_retry_after(self.headers.get("retry-after"))
        if text:  # a task queue that stores class and text restored the error
            self.message = text
        else:
            text = self._text(message, SentValues(sent_values)) + (f". {note}" if note else "")
        self.args: tuple[Any, ...] = (text,)

    def _text(self, message: str | None, sent: SentValues) -> str:
        from followup._core.redaction import redacted  # late: verifying a webhook does not need it

        parts = [str(self.status_code) if message else self.message]
        parts += [redacted(name, sent, max_length=100) for name in (self.type, self.code and f"({self.code})") if name]
        text = " ".join(parts)
        if message:
            text += f": {redacted(message, sent)}"
        text += self._details(sent)
        if self.param:
            text += f" [param {redacted(self.param, sent, max_length=200)}]"
        context = [self.operation] if self.operation else []
        if self.request_id:
            context.append(f"request {redacted(self.request_id, sent, max_length=100)}")
        if self.attempts > 1:
            context.append(f"{self.attempts} attempts")
        return f"{text} [{', '.join(context)}]" if context else text

    def _details(self, sent: SentValues) -> str:  # noqa: ARG002 - for subclasses
        """Return the redacted text that a subclass adds after the message."""
        return ""


class InvalidRequestError(APIStatusError):
    """400: the request is not valid; ``param`` names the field."""


class IdempotencyError(APIStatusError):
    """400, type ``idempotency_error``: the idempotency key was used before with a different request."""


class AuthenticationError(APIStatusError):
    """401: the key is missing, invalid, revoked or expired."""


class PermissionDeniedError(APIStatusError):
    """403: the key lacks the scope, or the organization the service line, that the operation needs."""


class NotFoundError(APIStatusError):
    """404: the object does not exist."""


class ConflictError(APIStatusError):
    """409: another request with the same idempotency key is in progress."""


class RateLimitError(APIStatusError):
    """429: too many requests per minute; ``retry_after`` is the number of seconds to wait."""


class InternalServerError(APIStatusError):
    """5xx: the service failed; it is safe to retry with the same idempotency key."""


_BY_STATUS: dict[int, type[APIStatusError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitError,
}


def status_error_class(status_code: int, body: Any) -> type[APIStatusError]:
    """Return the class of the error for a response with this status and decoded body."""
    if status_code == 400 and _error_fields(body)[0] == "idempotency_error":
        return IdempotencyError
    if status_code >= 500:
        return InternalServerError
    return _BY_STATUS.get(status_code, APIStatusError)


def headers_from(headers: Mapping[str, str]) -> httpx.Headers:
    """Return the headers of a response in a mapping that ignores case. A value may be any text."""
    if isinstance(headers, httpx.Headers):
        return httpx.Headers(headers)
    # As bytes: httpx takes text for ASCII, and a proxy's header may have other characters.
    return httpx.Headers([(name.encode(), value.encode()) for name, value in headers.items()])


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Parse a ``Retry-After`` header.

    Args:
        value: the header: a number of seconds or an HTTP date; None where there is no header.
        now: the current time; that of the machine when omitted.

    Returns:
        The seconds to wait, 0 or more; None where there is no header, or an invalid one.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from datetime import UTC, datetime  # late: verifying a webhook does not need them

        try:
            seconds = parse_http_date(value) - (now or datetime.now(UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None  # float() also reads "inf" and "nan"


def parse_http_date(text: str) -> float:
    """Parse the date of an HTTP header; one without a time zone is in UTC (RFC 9110, section 5.6.7).

    Returns:
        Seconds since the epoch.

    Raises:
        ValueError, OverflowError: the text is not a date.
    """
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    time = parsedate_to_datetime(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _error_fields(body: Any) -> tuple[str | None, str | None, str | None, str | None]:
    """Return type, code, message and param of an error body, leniently: the specification leaves the fields open."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, str):
        return None, None, error.strip() or None, None
    if not isinstance(error, dict):
        return None, None, None, None
    kind, code, message, param = (
        value if isinstance(value := error.get(name), str) and value.strip() else None
        for name in ("type", "code", "message", "param")
    )
    return kind, code, message, param
