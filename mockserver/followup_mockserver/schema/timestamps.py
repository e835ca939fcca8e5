"""Timestamps and dates in requests: RFC 3339, as in the OpenAPI document."""

import re
from datetime import UTC, date, datetime, timedelta

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_BEYOND_MILLISECONDS = re.compile(r"\.[0-9]{3}[0-9]*[1-9]")
_FIRST_YEAR, _LAST_YEAR = 1, 9999
_SECOND = slice(17, 19)


def parse_timestamp(text: str) -> datetime:
    """Return the instant of an RFC 3339 timestamp in UTC, cut to milliseconds.

    A leap second is the same instant as the second after it, as in POSIX time.

    Raises:
        ValueError: the text is not a timestamp, or the instant is outside of the calendar.
    """
    text = text.upper()
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError("not an RFC 3339 timestamp")
    try:
        instant = _after_leap_second(text) if text[_SECOND] == "60" else datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError("outside of the calendar") from None
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def up_to_milliseconds(text: str) -> str:
    """Return a timestamp rounded up to milliseconds, and any other text unchanged.

    A filter with such a bound selects the same of the stored times, which are whole milliseconds.
    """
    if not _BEYOND_MILLISECONDS.search(text) or not is_timestamp(text):
        return text
    rounded = parse_timestamp(text).astimezone(UTC) + timedelta(milliseconds=1)
    return rounded.isoformat() if rounded.year < _LAST_YEAR else text


def _after_leap_second(text: str) -> datetime:
    instant = datetime.fromisoformat(f"{text[: _SECOND.start]}59{text[_SECOND.stop :]}").astimezone(UTC)
    if (instant.hour, instant.minute) != (23, 59):
        raise ValueError("leap seconds are at 23:59:60 UTC")
    return instant + timedelta(seconds=1)


def is_timestamp(text: str) -> bool:
    """Return whether a text is an RFC 3339 timestamp."""
    try:
        return bool(parse_timestamp(text))
    except ValueError:
        return False


def is_exact_timestamp(text: str) -> bool:
    """Return whether a text is an RFC 3339 timestamp that Python parses as it is, in a year that any time zone has."""
    try:
        instant = datetime.fromisoformat(text) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:  # a leap second, among others
        return False
    return instant is not None and _FIRST_YEAR < instant.year < _LAST_YEAR


def is_date(text: str) -> bool:
    """Return whether a text is an RFC 3339 date."""
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
