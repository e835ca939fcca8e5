"""Timestamps and dates as requests carry them: RFC 3339, the formats that the OpenAPI document promises."""

import re
from datetime import UTC, date, datetime, timedelta

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"(?P<minute>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}):(?P<second>[0-9]{2})(?P<fraction>\.[0-9]+)?"
    r"(?P<offset>Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_LEAP_SECOND = "60"


def parse_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 timestamp, to the millisecond.

    A leap second is the same instant as the second after it, as in the time of computers.

    Raises:
        ValueError: it is none, or lies outside of the calendar.
    """
    match = _TIMESTAMP.fullmatch(text.upper())
    if match is None or match["minute"][11:13] == "24":
        raise ValueError("not an RFC 3339 timestamp")
    leaps = match["second"] == _LEAP_SECOND
    second = "59" if leaps else match["second"]
    instant = datetime.fromisoformat(f"{match['minute']}:{second}{match['fraction'] or ''}{match['offset']}")
    instant = instant.replace(microsecond=instant.microsecond // 1000 * 1000)
    return _after_leap_second(instant) if leaps else instant


def _after_leap_second(instant: datetime) -> datetime:
    try:
        utc = instant.astimezone(UTC)
        if (utc.hour, utc.minute) != (23, 59):
            raise ValueError("leap seconds are at 23:59:60 UTC")
        return instant + timedelta(seconds=1)
    except OverflowError:
        raise ValueError("outside of the calendar") from None


def is_timestamp(text: str) -> bool:
    """Whether it is an RFC 3339 timestamp."""
    try:
        return bool(parse_timestamp(text))
    except ValueError:
        return False


def is_date(text: str) -> bool:
    """Whether it is an RFC 3339 date."""
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
