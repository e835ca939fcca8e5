"""The errors of the service, which rules and checks raise and responses contain (specification, section 7)."""

from typing import Any

from followup._for_mockserver import camel

KEY_REUSED = "idempotency_key_reused"
"""Code of the error for an idempotency key that was used for another request."""


class ServiceError(Exception):
    """A request that the service rejects.

    Attributes:
        status: HTTP status of the response.
        type: error type, such as ``invalid_request_error``.
        code: stable code, such as ``resource_missing``.
        message: one sentence, which describes a valid request. It never contains values from the request.
        param: path of the invalid field, such as ``patient.phone`` or ``events[3].data``; None if it is not one field.
        headers: additional headers of the response.
        body: additional top-level fields of the response body.
    """

    def __init__(
        self,
        status: int,
        type: str,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.code = code
        self.message = message
        self.param = param
        self.headers: dict[str, str] = headers or {}
        self.body: dict[str, Any] = body or {}

    def __str__(self) -> str:
        return self.message if self.param is None else f"{self.param}: {self.message}"

    def under(self, path: str) -> "ServiceError":
        """Return the same error with ``path`` before the path of the field."""
        param = joined(path, self.param)
        return ServiceError(
            self.status, self.type, self.code, self.message, param=param, headers=self.headers, body=self.body
        )

    def as_json(self) -> dict[str, Any]:
        """Return the body of the response."""
        error = {"type": self.type, "code": self.code, "message": self.message, "param": self.param}
        return {"error": error, **self.body}


class InvalidArgument(ServiceError, ValueError):
    """An invalid argument of a test control: a ``ValueError`` in Python, a 400 over HTTP.

    Args:
        argument: the name of the argument in Python, with the position in a list: ``reminder_hours[1]``.
        expected: a description of a valid value, to follow "must be". It never contains the value.
    """

    def __init__(self, argument: str, expected: str) -> None:
        message = f"This must be {expected}."
        super().__init__(400, "invalid_request_error", "parameter_invalid", message, param=camel(argument))
        self.argument = argument
        self.expected = expected

    def __str__(self) -> str:
        problem = self.expected.removeprefix("valid: ")
        is_named = problem.startswith(f"{self.argument} ")  # by the SDK, as in: start_at is a naive datetime
        return problem if is_named else f"{self.argument} must be {self.expected}"


def joined(path: str, param: str | None) -> str:
    """Return the path of a field, or of an item, of the value at a path."""
    if not path or not param:
        return param or path
    return f"{path}{param}" if param.startswith("[") else f"{path}.{param}"


def invalid(code: str, message: str, param: str | None = None) -> ServiceError:
    """Return a 400 ``invalid_request_error``."""
    return ServiceError(400, "invalid_request_error", code, message, param=param)


def missing(what: str, *, status: int = 404, param: str | None = None) -> ServiceError:
    """Return a ``resource_missing`` error: 404 for an object in the path, 400 for one that the body refers to."""
    return ServiceError(status, "invalid_request_error", "resource_missing", f"There is no such {what}.", param=param)
