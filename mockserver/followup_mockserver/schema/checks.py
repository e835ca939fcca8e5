"""Checks of arguments, for Python, the command line and the control API alike: each names the argument."""

import math
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.schema.timestamps import parse_timestamp

Check = Callable[[str, Any], None]
"""Takes the name of an argument and its value; raises ``InvalidArgument`` if it does not fit."""

END_OF_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""As far as the clock can be advanced: it must be able to run on from there."""

_A_TIME = "a time with an offset, such as 2026-09-28T12:00:00Z"


def integer(least: int | None = None, most: int | None = None, expected: str | None = None) -> Check:
    """A whole number, in a range if one is passed."""
    wanted = expected or ("a whole number" if least is None else f"a whole number, {least} or more")

    def check(argument: str, value: Any) -> None:
        fits = isinstance(value, int) and not isinstance(value, bool)
        if not fits or (least is not None and value < least) or (most is not None and value > most):
            raise InvalidArgument(argument, wanted)

    return check


def number(least: float, most: float, *, unit: str = "", above: bool = False) -> Check:
    """Check for a finite number in a range.

    Args:
        least: the lower bound.
        most: the upper bound, which is in the range.
        unit: what it counts, such as ``hours``.
        above: whether ``least`` itself is too little.
    """
    range_ = f"more than {least:.15g} and at most {most:.15g}" if above else f"from {least:.15g} to {most:.15g}"

    def check(argument: str, value: Any) -> None:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not fits or not (least < value if above else least <= value) or value > most:
            raise InvalidArgument(argument, f"{range_} {unit}".rstrip())

    return check


def one_of(values: Collection[str]) -> Check:
    """One of some texts."""

    def check(argument: str, value: Any) -> None:
        if not isinstance(value, str) or value not in values:
            raise InvalidArgument(argument, f"one of {', '.join(values)}")

    return check


def boolean(argument: str, value: Any) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise InvalidArgument(argument, "true or false")


def text(argument: str, value: Any) -> None:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InvalidArgument(argument, "a text that is not empty")


def matching(fits: Callable[[str], bool], expected: str) -> Check:
    """A text for which a condition holds."""

    def check(argument: str, value: Any) -> None:
        if not isinstance(value, str) or not fits(value):
            raise InvalidArgument(argument, expected)

    return check


def list_of(check_one: Check) -> Check:
    """A list, each item of which fits; the error names the position."""

    def check(argument: str, value: Any) -> None:
        if not isinstance(value, list):
            raise InvalidArgument(argument, "a list")
        for position, item in enumerate(value):
            check_one(f"{argument}[{position}]", item)

    return check


def optional(check_given: Check) -> Check:
    """None, or what fits."""

    def check(argument: str, value: Any) -> None:
        if value is not None:
            check_given(argument, value)

    return check


def field(check: Check, default: Any = attrs.NOTHING) -> Any:
    """A field of an attrs class, required unless there is a default, with its check."""
    return attrs.field(default=default, validator=validator(check))


def validator(check: Check) -> Callable[[Any, Any, Any], None]:
    """The check as a validator of an attrs field, whose name is the argument."""
    return lambda _, attribute, value: check(attribute.name, value)


def as_list(value: Any) -> Any:
    """A sequence as a list of its own; what is none stays as it is, for the check to name."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def instant(argument: str, value: Any) -> datetime:
    """Return the time of an aware datetime, or of an RFC 3339 timestamp, in UTC.

    Raises:
        InvalidArgument: it is neither, or later than the clock can be advanced.
    """
    try:
        found = parse_timestamp(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, datetime) or found.utcoffset() is None:
        raise InvalidArgument(argument, _A_TIME)
    if found > END_OF_TIME:
        raise InvalidArgument(argument, f"a time before the year {END_OF_TIME.year}")
    try:
        return found.astimezone(UTC)
    except OverflowError:  # the first hours of the calendar, which no other time zone can express
        raise InvalidArgument(argument, _A_TIME) from None
