"""The errors of the service, which responses contain (specification, section 7), and the checks of arguments.

The checks are the same in Python, on the command line and in the control API. Their errors name the argument.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from followup._for_mockserver import camel
from followup_mockserver.world.schema.formats import parse_timestamp

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
        # Without the value: it may be a phone, and errors end up in the logs of test runs.
        message = f"This must be {expected}."
        super().__init__(400, "invalid_request_error", "parameter_invalid", message, param=camel(argument))
        self.argument = argument
        self.expected = expected

    def __str__(self) -> str:
        problem = self.expected.removeprefix("valid: ")
        is_named = problem.startswith(f"{self.argument} ")  # by the SDK, as in: start_at is a naive datetime
        return problem if is_named else f"{self.argument} must be {self.expected}"


class SnapshotError(ServiceError, ValueError):
    """An invalid snapshot: a ``ValueError`` in Python, a 400 over HTTP.

    Args:
        path: place of the invalid value, such as ``organizations[0].patients[3].phone``; empty for the whole snapshot.
        message: one sentence, which describes a valid value. It never contains the value.
        code: code of the error over HTTP.
        status: HTTP status.
    """

    def __init__(self, path: str, message: str, *, code: str = "snapshot_invalid", status: int = 400) -> None:
        super().__init__(status, "invalid_request_error", code, message, param=path or None)


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


Check = Callable[[str, Any], None]
"""A function of the name and the value of an argument, which raises ``InvalidArgument`` for an invalid value."""

LATEST_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""The latest time that the clock can be advanced to. Years remain in which the clock can run on with real time."""

_TIMESTAMP = "a time with an offset, such as 2026-09-28T12:00:00Z"


def _check(is_valid: Callable[[Any], bool], expected: str) -> Check:
    """Return a check for a value that satisfies a predicate; ``expected`` describes it in the error."""

    def check(argument: str, value: Any) -> None:
        if not is_valid(value):
            raise InvalidArgument(argument, expected)

    return check


def integer(least: int | None = None, most: int | None = None, expected: str | None = None) -> Check:
    """Return a check for a whole number, with optional bounds.

    Args:
        least: the lower bound, inclusive.
        most: the upper bound, inclusive.
        expected: description of a valid value for the error; by default, it is derived from ``least``.
    """

    def is_valid(value: Any) -> bool:
        # ``bool`` is a subclass of ``int``: without this, True would be 1.
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return is_integer and (least is None or value >= least) and (most is None or value <= most)

    return _check(is_valid, expected or ("a whole number" if least is None else f"a whole number, {least} or more"))


def number(least: float, most: float, *, unit: str = "", above: bool = False) -> Check:
    """Return a check for a finite number in a range.

    Args:
        least: the lower bound, inclusive unless ``above`` is true.
        most: the upper bound, inclusive.
        unit: the unit of the number, such as ``hours``.
        above: whether the number must be greater than ``least``.
    """
    range_ = f"more than {least:.15g} and at most {most:.15g}" if above else f"from {least:.15g} to {most:.15g}"

    def is_valid(value: Any) -> bool:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Comparisons reject nan, and work with a whole number that is too large for a float.
        return is_number and (least < value if above else least <= value) and value <= most

    return _check(is_valid, f"{range_} {unit}".rstrip())


def one_of(values: Collection[str]) -> Check:
    """Return a check for one of these strings."""
    return matching(values.__contains__, f"one of {', '.join(values)}")


def matching(predicate: Callable[[str], bool], expected: str) -> Check:
    """Return a check for a string that satisfies a predicate; ``expected`` describes it in the error."""
    return _check(lambda value: isinstance(value, str) and predicate(value), expected)


boolean: Check = _check(lambda value: isinstance(value, bool), "true or false")
text: Check = matching(bool, "a non-empty string")


def list_of(check_item: Check) -> Check:
    """Return a check for a list whose items pass a check; the error names the position of an invalid item."""

    def check(argument: str, value: Any) -> None:
        if not isinstance(value, list):
            raise InvalidArgument(argument, "a list")
        for position, item in enumerate(value):
            check_item(f"{argument}[{position}]", item)

    return check


def optional(check_value: Check) -> Check:
    """Return a check for None, or for a value that passes a check."""

    def check(argument: str, value: Any) -> None:
        if value is not None:
            check_value(argument, value)

    return check


def field(check: Check, default: Any = attrs.NOTHING) -> Any:
    """Return a field of an attrs class with a check. The field is required unless it has a default."""
    return attrs.field(default=default, validator=validator(check))


def validator(check: Check) -> Callable[[Any, Any, Any], None]:
    """Return a check as a validator of an attrs field; its errors name the field."""
    return lambda _, attribute, value: check(attribute.name, value)


def as_list(value: Any) -> Any:
    """Return a new list of the items of a sequence. Other values are returned unchanged, for the check to reject."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def instant(argument: str, value: Any) -> datetime:
    """Return an aware datetime, or an RFC 3339 timestamp, as a datetime in UTC.

    Raises:
        InvalidArgument: the value is neither, or a time that the clock cannot be advanced to.
    """
    try:
        found = parse_timestamp(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, datetime) or found.utcoffset() is None:
        raise InvalidArgument(argument, _TIMESTAMP)
    if found > LATEST_TIME:
        raise InvalidArgument(argument, f"a time before the year {LATEST_TIME.year}")
    try:
        return found.astimezone(UTC)
    except OverflowError:  # the first hours of the calendar, which no other time zone can express
        raise InvalidArgument(argument, _TIMESTAMP) from None
