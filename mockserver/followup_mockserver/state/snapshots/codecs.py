"""Objects of the mock as JSON, and back from JSON of any origin, with a path in every error.

The JSON of an object is derived from its class: a result class of the SDK, or an attrs class of the mock, whose own
checks are applied as well. Times are exact to the microsecond, because the order of jobs depends on them.
"""

import base64
import binascii
import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin

import attrs

from followup._for_mockserver import NOT_IN_JSON, Model, annotations_of, bare, camel, decode, encode, is_union
from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import EXACT_TIMESTAMP, TIMESTAMP, Schema, Shape, nullable, shape_of, unchanged
from followup_mockserver.schema.validation import Validator

LARGEST_INTEGER = 2**53
"""The bound of whole numbers without a bound of their own: every JSON implementation can represent them."""

LONGEST_PATH = 200
"""Characters of a path that an error shows; the names in a hostile snapshot may be long."""

_LONGEST_DURATION = 80_000_000_000_000
"""Seconds that a ``timedelta`` can express."""

_JSON_SCALARS = (str, int, float, bool, NoneType)


class SnapshotError(ServiceError, ValueError):
    """An invalid snapshot: a ``ValueError`` in Python, a 400 over HTTP.

    Args:
        path: place of the invalid value, such as ``organizations[0].patients[3].phone``; empty for the whole snapshot.
        message: one sentence, which describes a valid value. It never contains the value.
        code: code of the error over HTTP.
        status: HTTP status.
    """

    def __init__(self, path: str, message: str, *, code: str = "snapshot_invalid", status: int = 400) -> None:
        super().__init__(status, "invalid_request_error", code, message, param=path[:LONGEST_PATH] or None)


class errors_at:  # noqa: N801 - a context manager, used like a function; faster than a generator
    """Raise the errors of checks as those of a snapshot, at a path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise another error for an error of the service."""
        if isinstance(error, ServiceError) and not isinstance(error, SnapshotError):
            raise SnapshotError(joined(self._path, error.param), error.message) from None


def joined(path: str, param: str | None) -> str:
    """Return the path of a field, or of an item, of the value at a path."""
    if not path or not param:
        return param or path
    return f"{path}{param}" if param.startswith("[") else f"{path}.{param}"


def plain(value: Any) -> Any:
    """Return a value as JSON."""
    if type(value) in _JSON_SCALARS:
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
        return [plain(each) for each in value]
    cls: Any = type(value)
    return {wire: plain(getattr(value, name)) for wire, name in _fields(cls).items()}


@functools.lru_cache(maxsize=1_024)  # while a clock is frozen, many records have the same time
def _text_of(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


@functools.lru_cache(maxsize=1_024)
def _instant_of(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def loaded(annotation: Any, data: Any, path: str) -> Any:
    """Return the value of an annotation in JSON, such as ``int``, ``list[Patient]`` or ``dict[str, datetime | None]``.

    Raises:
        SnapshotError: the JSON is invalid.
    """
    validator, convert = _checks(annotation)
    with errors_at(path):
        validator.check_first(data)
        return convert(data)


def members(data: Any, path: str, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return a JSON object after a check of its keys.

    Raises:
        SnapshotError: the JSON is no object, lacks a required key, or has an unknown one.
    """
    if not isinstance(data, dict):
        raise SnapshotError(path, "This must be an object.")
    for name in required:
        if name not in data:
            raise SnapshotError(joined(path, name), "This field is required.")
    for name in data:
        if name not in required and name not in optional:
            known = ", ".join([*required, *optional])
            raise SnapshotError(path, f"This has an unknown field; its fields are {known}.")
    return data


@functools.cache
def _checks(annotation: Any) -> tuple[Validator, Callable[[Any], Any]]:
    # Made when a snapshot is loaded, because every start of a mock imports this module.
    shape = _shape(annotation)
    return Validator(shape.schema), shape.convert


_INSTANT = Shape({"type": "string", "format": EXACT_TIMESTAMP}, _instant_of)
_DURATION = Shape(
    {"type": "number", "minimum": -_LONGEST_DURATION, "maximum": _LONGEST_DURATION},
    lambda seconds: timedelta(seconds=seconds),
)
_TIMESTAMP = datetime  # shapes are made when they are first needed; freezegun may have replaced ``datetime`` by then


def _shape(annotation: Any) -> Shape:
    kind = bare(annotation)
    if kind is _TIMESTAMP:
        return _INSTANT
    if kind is timedelta:
        return _DURATION
    if kind is bytes:
        return Shape({"type": "string"}, _bytes)
    if is_union(kind):
        return _union_shape(kind)
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_shape(_shape(get_args(kind)[1]))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _sequence_shape(_shape(get_args(kind)[0]), tuple if origin is tuple else list)
    if isinstance(kind, type) and issubclass(kind, Enum):
        names = {each.name.lower(): each for each in kind}
        return Shape({"type": "string", "enum": list(names)}, names.__getitem__)
    if attrs.has(kind):
        return _record_shape(kind)
    return Shape(_strict((shape := shape_of(annotation)).schema), shape.convert)


def _union_shape(annotation: Any) -> Shape:
    others = [member for member in get_args(annotation) if member is not NoneType]
    if len(others) == 1:
        return nullable(_shape(others[0]))
    shape = shape_of(annotation)
    return Shape(_strict(shape.schema), shape.convert)


def _mapping_shape(values: Shape) -> Shape:
    def convert(data: Mapping[str, Any]) -> dict[str, Any]:
        found, name = {}, ""
        try:
            for name, each in data.items():
                found[name] = values.convert(each)
        except ServiceError as error:
            raise _below(error, name) from None
        return found

    return Shape({"type": "object", "additionalProperties": values.schema}, convert)


def _sequence_shape(items: Shape, made: Callable[[list[Any]], Any]) -> Shape:
    schema: Schema = {"type": "array", "items": items.schema}
    if items.convert is unchanged:
        return Shape(schema, made)

    def convert(data: Sequence[Any]) -> Any:
        found: list[Any] = []
        try:
            for each in data:
                found.append(items.convert(each))  # noqa: PERF401 - its length is the position of an error
        except ServiceError as error:
            raise _below(error, f"[{len(found)}]") from None
        return made(found)

    return Shape(schema, convert)


def _record_shape(cls: Any) -> Shape:
    required = [each for each in attrs.fields(cls) if each.init and each.default is attrs.NOTHING]
    names = [camel(each.name) for each in required if each.name not in NOT_IN_JSON]
    if issubclass(cls, Model):
        return Shape({**_strict(shape_of(cls).schema), "required": names}, functools.partial(decode, cls))
    annotations, fields = annotations_of(cls), _fields(cls)
    shapes = {wire: _shape(annotations[name]) for wire, name in fields.items()}

    converted = {wire: shape.convert for wire, shape in shapes.items() if shape.convert is not unchanged}

    def convert(data: Mapping[str, Any]) -> Any:
        values, wire = {fields[wire]: each for wire, each in data.items()}, ""
        try:
            for wire in converted.keys() & data.keys():
                values[fields[wire]] = converted[wire](data[wire])
        except ServiceError as error:
            raise _below(error, wire) from None
        return cls(**values)

    schema = {
        "type": "object",
        "properties": {wire: shape.schema for wire, shape in shapes.items()},
        "required": names,
        "additionalProperties": False,
    }
    return Shape(schema, convert)


def _below(error: ServiceError, step: str) -> ServiceError:
    return invalid(error.code, error.message, joined(step, error.param))


@functools.cache
def _fields(cls: Any) -> dict[str, str]:
    return {camel(each.name): each.name for each in attrs.fields(cls) if each.init}


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("parameter_invalid", "This must be a string in base64.") from None


def _strict(schema: Schema) -> Schema:
    """Return a schema of a request or a response as that of a snapshot.

    It allows no unknown fields, longer texts, and times that the calendar has in every time zone.
    """
    found: Schema = {name: value for name, value in schema.items() if name not in ("minLength", "maxLength")}
    if "properties" in schema:
        found["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        found["additionalProperties"] = False
    if "items" in schema:
        found["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        found["anyOf"] = [_strict(each) for each in schema["anyOf"]]
    if schema.get("format") == TIMESTAMP:
        found["format"] = EXACT_TIMESTAMP
        found.pop("pattern", None)
    if "integer" in schema.get("type", ()):  # a word, or a list of words
        found = {"minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER, **found}
    return found
