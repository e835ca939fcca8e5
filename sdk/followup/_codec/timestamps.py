"""Parses and formats timestamps (specification, section 2)."""

from datetime import UTC, datetime


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
        if instant.utcoffset() is not None:
            return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name} is out of range: in UTC it is before the year 1 or after the year 9999") from None
    except Exception:  # noqa: BLE001 - a time zone of the caller runs its own code
        raise ValueError(f"{name} has a time zone that does not say its offset from UTC") from None
    raise ValueError(f"{name} is a naive datetime: pass one with a time zone, for example datetime.now(timezone.utc)")


def format_timestamp(instant: datetime) -> str:
    """Format an aware datetime as the service does: in UTC, with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def format_exactly(instant: datetime) -> str:
    """Format an aware datetime for a request: in UTC, with milliseconds, or with microseconds where there are any."""
    instant = instant.astimezone(UTC)
    return instant.isoformat(timespec="microseconds" if instant.microsecond % 1000 else "milliseconds")[:-6] + "Z"
