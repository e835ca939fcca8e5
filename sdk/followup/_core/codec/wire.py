"""Times as they are on the wire, and the error for JSON that does not match.

Nothing here imports attrs or typing, because a verification that is passed its time imports it in a cold start.
"""

from __future__ import annotations

from datetime import UTC, datetime

LONGEST_NESTING = 100
"""Levels of objects and lists in the body of an error. Far more could not be pickled."""

_LAST_YEAR_OF_LOCAL_MEAN_TIME = 1972
"""No zone has had it, or any other offset with seconds, since."""


class WireError(ValueError):
    """The JSON does not match the schema. The message names the field, never its value.

    Attributes:
        path: path of the field, such as ``data[3].createdAt``; empty for the body as a whole.
        problem: description of the problem, such as ``is missing``.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the body'} {problem}")
        self.path = path
        self.problem = problem


def is_deep(value: object) -> bool:
    """Return whether lists and objects are nested too deeply in a JSON value."""
    level = [value]
    for _ in range(LONGEST_NESTING):
        level = [item for each in level for item in _items(each)]
        if not level:
            return False
    return True


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def parse_timestamp(text: str) -> datetime:
    """Parse a timestamp of the service as an aware datetime. A timestamp without an offset is taken as UTC.

    This is deliberately lenient. The mock server's ``schema.timestamps`` is strict, since it checks requests.

    Raises:
        TypeError, ValueError: the text is not a timestamp.
    """
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def in_utc(instant: datetime, name: str) -> datetime:
    """Return the time that a caller passes, in UTC.

    Raises:
        ValueError: its offset is unknown, or UTC has no such time. The message begins with the name of the argument.
    """
    try:
        # Not astimezone alone, which takes a naive time for one in the zone of the computer.
        found = None if instant.utcoffset() is None else instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name} is out of range: in UTC it is before the year 1 or after the year 9999") from None
    except Exception:  # noqa: BLE001 - a time zone of the caller runs its own code
        raise ValueError(f"{name} has a time zone that does not say its offset from UTC") from None
    if found is None:
        example = "datetime.now(timezone.utc)"
        raise ValueError(f"{name} is a naive datetime: pass one with a time zone, for example {example}")
    if found.year > _LAST_YEAR_OF_LOCAL_MEAN_TIME and _zone_name(instant) == "LMT":
        remedy = "use zoneinfo.ZoneInfo, or with pytz zone.localize(...)"
        raise ValueError(
            f"{name} is in local mean time (LMT), minutes off, as from a pytz zone passed as tzinfo: {remedy}"
        )
    return found


def _zone_name(instant: datetime) -> str | None:
    try:
        return instant.tzname()
    except Exception:  # noqa: BLE001 - a time zone of the caller, which may have no name
        return None


def format_timestamp(instant: datetime) -> str:
    """Format an aware datetime as the service does: in UTC, with milliseconds.

    A time that UTC cannot express, at either end of the calendar, keeps its offset.
    """
    try:
        return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"  # without +00:00
    except OverflowError:
        return instant.isoformat(timespec="milliseconds")


def format_exactly(instant: datetime) -> str:
    """Format an aware datetime for a request: in UTC, with milliseconds, or with microseconds where there are any."""
    instant = instant.astimezone(UTC)
    precision = "microseconds" if instant.microsecond % 1000 else "milliseconds"
    return datetime.isoformat(instant, timespec=precision)[:-6] + "Z"  # a subclass may have its own format


def short(value: object) -> str:
    """Return a value as the ``repr`` of its object shows it."""
    # The repr of a datetime is so long that a few of them hide the rest of an object.
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else repr(value)
