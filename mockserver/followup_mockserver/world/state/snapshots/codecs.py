"""Objects of the mock as JSON, and back from JSON of any origin, with a path in every error.

The JSON of an object is derived from its class: a result class of the SDK, or an attrs class of the mock, whose own
checks are applied as well. Times are exact to the microsecond, because the order of jobs depends on them.
"""

import base64
import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Annotated, Any

import attrs

from followup._for_mockserver import NOT_IN_JSON, Limits, Model, camel, encode, kinds_in
from followup_mockserver.world.schema.errors import ServiceError, invalid
from followup_mockserver.world.schema.shapes import LARGEST_INTEGER, Shapes
from followup_mockserver.world.schema.validation import EXACT_TIMESTAMP, Path, Problem, Reading, Shape
from followup_mockserver.world.state.outcomes import Kind

Count = Annotated[int, Limits(0, LARGEST_INTEGER)]

_LONGEST_DURATION = 80_000_000_000_000
"""Seconds that a ``timedelta`` can express."""

_JSON_SCALARS = frozenset({str, int, float, bool, NoneType})


class SnapshotError(ServiceError, ValueError):
    """An invalid snapshot: a ``ValueError`` in Python, a 400 over HTTP.

    Args:
        path: place of the invalid value, such as ``organizations[0].patients[3].phone``; empty for the whole snapshot.
        message: one sentence, which describes a valid value. It never contains the value.
        code: code of the error over HTTP.
        status: HTTP status.
    """

    def __init__(self, path: str, message: str, *, code: str = "snapshot_invalid", status: int = 400) -> None:
        super().__init__(status, "invalid_request_error", code, message, param=path or None)


def wrong(path: str, message: str) -> ServiceError:
    """Return the error of an invalid part of a snapshot. The path is relative to the part, and may be empty."""
    return invalid("snapshot_invalid", message, path or None)


def plain(value: Any) -> Any:
    """Return a value as JSON."""
    kind: Any = type(value)
    if kind in _JSON_SCALARS:
        return value
    if isinstance(value, Model):
        return encode(value)
    if isinstance(value, datetime):
        return _text_of(value)
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [*value] if _JSON_SCALARS.issuperset(map(type, value)) else [plain(each) for each in value]
    return {camel(name): plain(getattr(value, name)) for name in _fields(kind)}


@functools.cache
def _fields(cls: Any) -> dict[str, Any]:
    """Return the fields of a class that its JSON has: those that its constructor takes."""
    return {each.name: each for each in attrs.fields(cls) if each.init and each.name not in NOT_IN_JSON}


@functools.lru_cache(maxsize=1_024)  # while a clock is frozen, many records have the same time
def _text_of(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


@functools.lru_cache(maxsize=1_024)
def _instant_of(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise wrong("", "This must be a string in base64.") from None


class _SavedShapes(Shapes):
    """Derives the shapes of what a snapshot contains: texts of any length, exact times, and no unknown fields."""

    scalars = {  # noqa: RUF012 - as in the base class
        **Shapes.scalars,
        str: ({"type": "string"}, None),
        int: ({"type": "integer", "minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER}, None),
        datetime: ({"type": "string", "format": EXACT_TIMESTAMP}, _instant_of),
        timedelta: (
            {"type": "number", "minimum": -_LONGEST_DURATION, "maximum": _LONGEST_DURATION},
            lambda seconds: timedelta(seconds=seconds),
        ),
        bytes: ({"type": "string"}, _bytes),
        Kind: ({"type": "string", "enum": [each.name.lower() for each in Kind]}, lambda name: Kind[name.upper()]),
    }

    def of_class(self, cls: Any) -> Shape:
        """Return the shape of a class: fields without a default are required."""
        fields, kinds = _fields(cls), kinds_in(cls)
        shape = self.of_object(
            {name: kinds[name] for name in fields},
            [name for name, each in fields.items() if each.default is attrs.NOTHING],
        )

        def convert(data: Any, how: Reading, path: Path) -> Any:
            found = shape.read(data, how, path)
            if isinstance(found, Problem):
                return found
            return cls(**found)

        return Shape(shape.schema, convert)


def loaded(cls: Any, data: Any) -> Any:
    """Return an object of a class from JSON.

    Raises:
        SnapshotError: the JSON is invalid.
    """
    try:
        return _shape_of(cls).argument_of(data, _FIRST_PROBLEM)
    except ServiceError as error:
        raise SnapshotError(error.param or "", error.message) from None


# Made when a snapshot is loaded, because every start of a mock imports this module.
_shape_of = functools.cache(_SavedShapes().of)
_FIRST_PROBLEM = Reading(only_first=True)
