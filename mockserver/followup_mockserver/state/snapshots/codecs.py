"""Codecs of a snapshot: objects of the mock to JSON and back, with a path in every error.

The schema of an object is derived from its class, as those of requests are. Times are exact to the microsecond, because
the order of jobs depends on them.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Generic, TypeVar, cast, get_args

import attrs

from followup._for_mockserver import NOT_IN_JSON, annotations_of, bare, camel, decode, encode, is_union
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.shapes import EXACT_TIMESTAMP, TIMESTAMP, Schema, Shape, shape_of
from followup_mockserver.schema.validation import Validator
from followup_mockserver.state.snapshots.errors import SnapshotError

T = TypeVar("T")

LARGEST_INTEGER = 2**53
"""The bound of whole numbers without a bound of their own: every JSON implementation can represent them."""


class ModelCodec(Generic[T]):
    """The codec of a result class of the SDK.

    Args:
        cls: the class.
    """

    def __init__(self, cls: type[T]) -> None:
        self._cls = cls

    def encode(self, value: T) -> Any:
        """Return an object as JSON."""
        return encode(value)

    def decode(self, data: Any, path: str) -> T:
        """Return the object in JSON.

        Raises:
            SnapshotError: the JSON is invalid.
        """
        check(self._validator, data, path)
        return decode(self._cls, data)

    @cached_property
    def _validator(self) -> Validator:
        # Made when a snapshot is loaded, because every start of a mock imports this module.
        schema = _strict(shape_of(self._cls).schema)
        schema["required"] = [camel(name) for name in _required(self._cls)]
        return Validator(schema)


class RecordCodec(Generic[T]):
    """The codec of an attrs class of the mock, whose own checks are applied as well.

    Args:
        cls: the class.
        omit: names of fields that are neither encoded nor decoded.
    """

    def __init__(self, cls: type[T], omit: Sequence[str] = ()) -> None:
        self._cls = cls
        self._omit = omit

    def encode(self, value: T) -> Any:
        """Return an object as JSON."""
        return {wire: plain(getattr(value, name)) for wire, name in self._names.items()}

    def decode(self, data: Any, path: str) -> T:
        """Return the object in JSON.

        Raises:
            SnapshotError: the JSON is invalid.
        """
        check(self._validator, data, path)
        names, shapes = self._names, self._shapes
        values = {names[wire]: shapes[names[wire]].convert(value) for wire, value in data.items()}
        with errors_at(path):
            return self._cls(**values)

    @cached_property
    def _names(self) -> dict[str, str]:
        fields = attrs.fields(cast("Any", self._cls))
        return {camel(each.name): each.name for each in fields if each.init and each.name not in self._omit}

    @cached_property
    def _shapes(self) -> dict[str, Shape]:
        annotations = annotations_of(self._cls)
        return {name: _field_shape(annotations[name]) for name in self._names.values()}

    @cached_property
    def _validator(self) -> Validator:
        schema = {
            "type": "object",
            "properties": {wire: self._shapes[name].schema for wire, name in self._names.items()},
            "required": [camel(name) for name in _required(self._cls) if name in self._shapes],
        }
        return Validator(_strict(schema))


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


def check(validator: Validator, data: Any, path: str) -> None:
    """Check JSON against a schema.

    Raises:
        SnapshotError: it is invalid.
    """
    with errors_at(path):
        validator.check(data)


def joined(path: str, param: str | None) -> str:
    """Return the path of a field of the object at a path."""
    return param or "" if not path else path if param is None else f"{path}.{param}"


def items(data: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Iterate over the items of a JSON array and their paths.

    Raises:
        SnapshotError: the JSON is no array.
    """
    if not isinstance(data, list):
        raise SnapshotError(path, "This must be an array.")
    return ((item, f"{path}[{position}]") for position, item in enumerate(data))


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
def _validator_of(annotation: Any) -> tuple[Validator, Callable[[Any], Any]]:
    shape = _field_shape(annotation)
    return Validator(_strict(shape.schema)), shape.convert


def scalar(annotation: Any, data: Any, path: str) -> Any:
    """Return a value of an annotation, such as ``int``, ``datetime`` or ``dict[str, int]``.

    Raises:
        SnapshotError: the JSON is invalid.
    """
    validator, convert = _validator_of(annotation)
    check(validator, data, path)
    return convert(data)


def text_mapping(data: Any, path: str) -> dict[str, str]:
    """Return a JSON object whose values are non-empty strings.

    Raises:
        SnapshotError: the JSON is invalid.
    """
    if not isinstance(data, dict):
        raise SnapshotError(path, "This must be an object.")
    for name, value in data.items():
        if not isinstance(value, str) or not value:
            raise SnapshotError(joined(path, name), "This must be a non-empty string.")
    return data


def plain(value: Any) -> Any:
    """Return a scalar, or a list of scalars, as JSON."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return list(value) if isinstance(value, (list, tuple)) else value


def _required(cls: Any) -> list[str]:
    return [
        each.name
        for each in attrs.fields(cls)
        if each.init and each.default is attrs.NOTHING and each.name not in NOT_IN_JSON
    ]


_INSTANT = Shape(
    {"type": "string", "format": EXACT_TIMESTAMP}, lambda text: datetime.fromisoformat(text).astimezone(UTC)
)


_TIMESTAMP = datetime  # shapes are made when they are first needed; freezegun may have replaced ``datetime`` by then


def _field_shape(annotation: Any) -> Shape:
    if bare(annotation) is _TIMESTAMP:
        return _INSTANT
    if is_union(annotation) and _TIMESTAMP in get_args(annotation):
        schema = {**_INSTANT.schema, "type": ["string", "null"]}
        return Shape(schema, lambda value: None if value is None else _INSTANT.convert(value))
    return shape_of(annotation)


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
    if "integer" in _types(schema):
        found = {"minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER, **found}
    return found


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]
