"""Timestamps as the service sends and takes them (specification, section 2)."""

from datetime import UTC, datetime, timedelta

_MINUTE = timedelta(minutes=1)


def parse_timestamp(text: str) -> datetime:
    """Return the aware datetime of a timestamp that the service sent; without an offset, it is in UTC.

    Requests are checked by the mock server's ``schema.timestamps``, which takes RFC 3339 and nothing else.

    Raises:
        TypeError, ValueError: it is not a timestamp.
    """
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def format_timestamp(instant: datetime) -> str:
    """Return an aware datetime as the service writes it: in UTC, with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def format_with_offset(instant: datetime) -> str:
    """Return an aware datetime as a request carries it: exact, with the offset of its time zone.

    Before zones had whole minutes, local times did not: Buenos Aires was at -03:53:48. RFC 3339 cannot write such an
    offset, so the time is sent in UTC.

    Raises:
        OverflowError: the time is that of no year in UTC.
    """
    offset = instant.utcoffset()
    if offset is not None and offset % _MINUTE:
        instant = instant.astimezone(UTC)
    return instant.isoformat()
