"""The error tree, and its errors that need no response; those of a response are in ``status_errors``.

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

from collections.abc import Callable
from typing import Any, Literal

WasSent = Literal["no", "maybe", "yes"]


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
        was_sent: WasSent = "no",
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.idempotency_key = idempotency_key
        self.attempts = attempts
        self.was_sent: WasSent = was_sent

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("followup."):
            # So that tracebacks show the name that users import.
            cls.__module__ = "followup"

    def __reduce__(self) -> tuple[Callable[..., BaseException], tuple[Any, ...]]:
        return _restored, (type(self), self.args, self.__dict__)


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
            ``too_new`` or ``wrong_signature``.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class APIConnectionError(FollowUpError):
    """No response arrived: the service could not be reached, or the connection broke."""


class APITimeoutError(APIConnectionError):
    """No response arrived within ``timeout``, or the call was not completed within ``deadline``."""


class ResponseDecodeError(FollowUpError):
    """A 2xx response that does not match the specification.

    It is not JSON, is too large, lacks a field, has one of the wrong type, or describes another object than the one in
    the path. The service carried out the request. The message names the problem, and never shows the body.

    Attributes:
        status_code: HTTP status of the response.
        request_id: id of the request, which the service's support asks for.
    """

    def __init__(self, message: str, *, status_code: int, request_id: str | None = None, **call: Any) -> None:
        super().__init__(message, **call)
        self.status_code = status_code
        self.request_id = request_id


class PaginationError(FollowUpError):
    """Pagination cannot make progress: the cursor does not move, or ``has_more`` is true on a page without items."""
