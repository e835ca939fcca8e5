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


def format_timestamp(instant: datetime) -> str:
    """Format an aware datetime as the service does: in UTC, with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def format_exactly(instant: datetime) -> str:
    """Format an aware datetime for a request: in UTC, with milliseconds, or with microseconds where there are any.

    Raises:
        OverflowError: in UTC, the time is before the year 1 or after the year 9999.
    """
    instant = instant.astimezone(UTC)
    return instant.isoformat(timespec="microseconds" if instant.microsecond % 1000 else "milliseconds")[:-6] + "Z"
