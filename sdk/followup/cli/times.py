"""Times and dates on the command line. Needs neither Typer nor click."""

from datetime import UTC, date, datetime
from typing import Any

from followup._codec.timestamps import format_exactly
from followup.cli.exits import reject
from followup.cli.local_times import zone_of
from followup.cli.values import arms

_EXAMPLE = "2030-05-17T14:30:00-03:00"


def takes_time(annotation: Any) -> bool:
    """Return whether a parameter takes a time."""
    return datetime in arms(annotation)


def takes_date(annotation: Any) -> bool:
    """Return whether a parameter takes a date without a time."""
    return date in arms(annotation)


def time_of(text: str, option: str, *, or_else: str = "") -> str:
    """Return a time as the API takes it.

    Args:
        text: the time in ISO 8601, with its offset.
        option: the option, for the error.
        or_else: what else the option takes, for the error.

    Raises:
        UsageError: it is no time, or it has no offset.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.utcoffset() is None:
        reject(f"{option} must be a time with an offset, such as {_EXAMPLE} (Z means UTC){or_else}")
    try:
        time.astimezone(UTC)
    except OverflowError:
        reject(f"{option} is out of range: in UTC it is before the year 1 or after the year 9999")
    return format_exactly(time)


def bound_of(text: str, option: str) -> tuple[str, str]:
    """Return a bound of a filter as the API takes it; a date is the beginning of this day in the local time zone.

    Args:
        text: the time in ISO 8601 with its offset, or the date.
        option: the option, for the error.

    Returns:
        The time, and a line that names the time zone in which a date was taken; empty for a time.

    Raises:
        UsageError: it is neither a time with an offset nor a date.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return time_of(text, option, or_else=", or a date, such as 2030-05-17"), ""
    try:
        begin = datetime(day.year, day.month, day.day).astimezone()
    except (OverflowError, ValueError):  # in the first year and the last one
        reject(f"{option} is out of range")
    shown = begin.isoformat()
    return time_of(
        shown, option
    ), f"{option} is {shown}: the day begins at this time in the local time zone, {zone_of(begin)}."


def date_of(text: str, option: str) -> str:
    """Return a date as the API takes it.

    Args:
        text: the date.
        option: the option, for the error.

    Raises:
        UsageError: it is no date.
    """
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        reject(f"{option} must be a date, such as 1980-02-29")
