"""Checks of arguments, the same in Python, on the command line and in the control API. Errors name the argument."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.schema.formats import parse_timestamp

Check = Callable[[str, Any], None]
"""A function of the name and the value of an argument, which raises ``InvalidArgument`` for an invalid value."""

LATEST_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""The latest time that the clock can be advanced to. Years remain in which the clock can run on with real time."""

_TIMESTAMP = "a time with an offset, such as 2026-09-28T12:00:00Z"


def integer(least: int | None = None, most: int | None = None, expected: str | None = None) -> Check:
    """Return a check for a whole number, with optional bounds.

    Args:
        least: the lower bound, inclusive.
        most: the upper bound, inclusive.
        expected: description of a valid value for the error; by default, it is derived from ``least``.
    """
    description = expected or ("a whole number" if least is None else f"a whole number, {least} or more")

    def check(argument: str, value: Any) -> None:
        valid = isinstance(value, int) and not isinstance(value, bool)
        if not valid or (least is not None and value < least) or (most is not None and value > most):
            raise InvalidArgument(argument, description)

    return check


def number(least: float, most: float, *, unit: str = "", above: bool = False) -> Check:
    """Return a check for a finite number in a range.

    Args:
        least: the lower bound, inclusive unless ``above`` is true.
        most: the upper bound, inclusive.
        unit: the unit of the number, such as ``hours``.
        above: whether the number must be greater than ``least``.
    """
    range_ = f"more than {least:.15g} and at most {most:.15g}" if above else f"from {least:.15g} to {most:.15g}"

    def check(argument: str, value: Any) -> None:
        valid = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Comparisons reject nan, and work with a whole number that is too large for a float.
        if not valid or not (least < value if above else least <= value) or not value <= most:
            raise InvalidArgument(argument, f"{range_} {unit}".rstrip())

    return check


def one_of(values: Collection[str]) -> Check:
    """Return a check for one of these strings."""

    def check(argument: str, value: Any) -> None:
        if not isinstance(value, str) or value not in values:
            raise InvalidArgument(argument, f"one of {', '.join(values)}")

    return check


def boolean(argument: str, value: Any) -> None:
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        raise InvalidArgument(argument, "true or false")


def text(argument: str, value: Any) -> None:
    """Check that a value is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise InvalidArgument(argument, "a non-empty string")


def matching(predicate: Callable[[str], bool], expected: str) -> Check:
    """Return a check for a string that satisfies a predicate; ``expected`` describes it in the error."""

    def check(argument: str, value: Any) -> None:
        if not isinstance(value, str) or not predicate(value):
            raise InvalidArgument(argument, expected)

    return check


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
