"""Names, annotations and times: as Python has them and as JSON has them (specification, sections 1 and 2)."""

import functools
import types
from datetime import UTC, date, datetime
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs

NOT_IN_JSON = frozenset({"extra", "last_response"})
"""Fields of the result classes that are not part of the JSON."""

ABSENT_IF_NONE = "absent_if_none"
"""Key in the metadata of a field that is omitted from the JSON when it is None, instead of sent as null."""

_TIMES = (datetime, date)
"""Where annotations are resolved in a frozen test, freezegun has put subclasses in their place."""


@functools.cache
def camel(name: str) -> str:
    """Return the JSON name of a field: ``start_at_gte`` becomes ``startAtGte``."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def wire_fields(cls: type[Any]) -> dict[str, str]:
    """Return the JSON name of each field of a result class, by attribute name."""
    return {field.name: camel(field.name) for field in attrs.fields(cls) if field.name not in NOT_IN_JSON}


def annotations_of(declared: Any) -> dict[str, Any]:
    """Return the resolved annotations of a class or function, by name, with their metadata."""
    return get_type_hints(declared, include_extras=True)


def bare(annotation: Any) -> Any:
    """Return the annotation without ``Annotated`` around it, and without the subclasses of freezegun."""
    annotation = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if isinstance(annotation, type) and issubclass(annotation, _TIMES):
        return next(each for each in _TIMES if issubclass(annotation, each))
    return annotation


def is_union(annotation: Any) -> bool:
    """Return whether the annotation is a union, written either way."""
    return get_origin(annotation) in (Union, types.UnionType)


def is_optional(annotation: Any) -> bool:
    """Return whether the annotation is a union with None."""
    return is_union(annotation) and type(None) in get_args(annotation)


def without_none(annotation: Any) -> Any:
    """Return the annotation without None."""
    if not is_optional(annotation):
        return annotation
    return functools.reduce(
        lambda left, right: left | right, (arm for arm in get_args(annotation) if arm is not type(None))
    )


def kind_of(value: object) -> str:
    """Return the type of a value for an error message: ``a list``, ``an int``, ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


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


_LAST_YEAR_OF_LOCAL_MEAN_TIME = 1972
"""No zone has had it, or any other offset with seconds, since."""


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
        return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    except OverflowError:
        return instant.isoformat(timespec="milliseconds")


def format_exactly(instant: datetime) -> str:
    """Format an aware datetime for a request: in UTC, with milliseconds, or with microseconds where there are any."""
    instant = instant.astimezone(UTC)
    precision = "microseconds" if instant.microsecond % 1000 else "milliseconds"
    return datetime.isoformat(instant, timespec=precision)[:-6] + "Z"  # a subclass may have its own format
