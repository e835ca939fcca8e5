"""The errors of responses, and the choice of the one for a response (specification, section 7)."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from followup._redaction import SentValues, redacted
from followup._results.errors import FollowUpError, WasSent


class APIStatusError(FollowUpError):
    """The service responded with an error (specification, section 7).

    The text of the error contains the service's message, redacted and cut at 1,000 characters. Redaction replaces with
    ``…``: the request's values of three characters or more (also with other case, accents, separators or escapes, and
    the beginning of a long one), e-mail addresses, and numbers of six digits or more. It does not recognize other
    personal data, such as a patient's name that the request did not contain. The attributes are not redacted.

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
        *,
        status_code: int,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        operation: str = "",
        idempotency_key: str | None = None,
        attempts: int = 0,
        was_sent: WasSent = "yes",
        sent_values: Iterable[str] = (),
        note: str = "",
    ) -> None:
        import httpx  # imported late: the mock and the commands read the declarations, and need no HTTP client

        self.status_code = status_code
        self.headers = httpx.Headers(headers)
        self.body = body
        self.type, self.code, message, self.param = _error_fields(body)
        self.message = message or f"{status_code} {httpx.codes.get_reason_phrase(status_code)}".rstrip()
        self.request_id = self.headers.get("request-id")
        self.retry_after = parse_retry_after(self.headers.get("retry-after"))
        super().__init__(
            self._text(message, operation, attempts, SentValues(sent_values)) + (f". {note}" if note else ""),
            operation=operation,
            idempotency_key=idempotency_key,
            attempts=attempts,
            was_sent=was_sent,
        )

    def _text(self, message: str | None, operation: str, attempts: int, sent: SentValues) -> str:
        parts = [str(self.status_code) if message else self.message]
        parts += [redacted(name, sent, max_length=100) for name in (self.type, self.code and f"({self.code})") if name]
        text = " ".join(parts)
        if message:
            text += f": {redacted(message, sent)}"
        text += self._details(sent)
        if self.param:
            text += f" [param {redacted(self.param, sent, max_length=200)}]"
        context = [operation] if operation else []
        if self.request_id:
            context.append(f"request {redacted(self.request_id, sent, max_length=100)}")
        if attempts > 1:
            context.append(f"{attempts} attempts")
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


def parse_retry_after(value: str | None, wall_clock: Callable[[], float] | None = None) -> float | None:
    """Parse a ``Retry-After`` header.

    Args:
        value: the header: a number of seconds or an HTTP date; None where there is no header.
        wall_clock: returns seconds since the epoch; ``time.time`` when omitted.

    Returns:
        The seconds to wait, 0 or more; None where there is no header, or an invalid one.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (wall_clock or time.time)()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


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
