"""Shapes: JSON Schemas, and conversions from JSON to arguments of rules, derived from the SDK's annotations.

The OpenAPI document has the same schemas, so it describes exactly the requests that the mock accepts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, Required, TypeVar, get_args, get_origin, is_typeddict

import attrs

from followup import NotGiven
from followup import _for_mockserver as sdk
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.schema.formats import parse_timestamp

T = TypeVar("T")
Schema = dict[str, Any]
Convert = Callable[[Any], Any]

MAX_STRING_LENGTH = 5_000
MAX_BODY_BYTES = sdk.MAX_REQUEST_BYTES
MAX_HEAD_BYTES = 64 * 1024
"""The maximum size of request line and headers together. A filter in the query may have 5,000 characters of any script,
each of them percent-encoded."""

DATE = "date"
TIMESTAMP = "date-time"
EXACT_TIMESTAMP = "exact-timestamp"
HTTPS_URL = "https-url"
EMAIL = "email"

_LARGEST_NUMBER = 1e300
"""Stands for any larger number: a whole number in JSON may be too large for a float. Each argument has a smaller range
of its own."""

LARGEST_INTEGER = 2**53
"""The bound of whole numbers without a bound of their own: every JSON implementation can represent them."""

YEARS = "^(?!0000|0001|9999)"
"""The first and the last year are rejected: in another time zone, such a time may be outside of the calendar."""
DATE_YEARS = "^(?!0000)"
"""RFC 3339 allows the year 0, Python does not."""


@attrs.frozen(eq=False, repr=False)
class Shape:
    """The JSON form of an annotation.

    Attributes:
        schema: the JSON Schema.
        convert: returns the argument of a rule for a valid JSON value.
    """

    schema: Schema
    convert: Convert


def unchanged(value: T) -> T:
    """Return the value: the conversion of what is the same in JSON and in Python."""
    return value


# Shapes are made when they are first needed, and freezegun may have replaced the names of this module by then.
_TIMES = (datetime, date)


class Shapes:
    """Derives shapes from annotations: those of requests, and the schemas of responses."""

    scalars: Mapping[Any, tuple[Schema, Convert]] = {
        str: ({"type": "string", "maxLength": MAX_STRING_LENGTH}, unchanged),
        bool: ({"type": "boolean"}, unchanged),
        int: ({"type": "integer"}, unchanged),
        float: ({"type": "number"}, lambda value: float(max(-_LARGEST_NUMBER, min(value, _LARGEST_NUMBER)))),
        datetime: ({"type": "string", "format": TIMESTAMP, "pattern": YEARS}, parse_timestamp),
        date: ({"type": "string", "format": DATE, "pattern": DATE_YEARS}, date.fromisoformat),
        Any: ({}, unchanged),
    }

    def of(self, annotation: Any) -> Shape:
        """Return the shape of an annotation, such as that of a parameter or of the field of a result."""
        metadata = getattr(annotation, "__metadata__", ())
        annotation = sdk.bare(annotation)
        if get_origin(annotation) in (Required, NotRequired):
            return self.of(get_args(annotation)[0])
        if sdk.is_union(annotation):
            return self._of_union(annotation)
        shape = self._of_type(annotation)
        for constraint in metadata:
            shape.schema.update(_constraint_schema(constraint, annotation))
        return shape

    def of_object(self, annotations: Mapping[str, Any], required: Iterable[str]) -> Shape:
        """Return the shape of an object.

        Args:
            annotations: annotations of the fields, by their snake_case names.
            required: names of the required fields.
        """
        shapes = {sdk.camel(name): self.of(annotation) for name, annotation in annotations.items()}
        names = {sdk.camel(name): name for name in annotations}
        schema: Schema = {
            "type": "object",
            "properties": {name: shape.schema for name, shape in shapes.items()},
            "additionalProperties": False,
        }
        if required := [sdk.camel(name) for name in required]:
            schema["required"] = required

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            known = [name for name in value if name in names]
            found = _converted((shapes[name].convert(value[name]) for name in known), known.__getitem__)
            return dict(zip([names[name] for name in known], found, strict=True))

        return Shape(schema, convert)

    def of_class(self, cls: Any) -> Shape:
        """Return the shape of a result class of the SDK."""
        annotations, names = sdk.annotations_of(cls), sdk.wire_fields(cls)
        absent = {field.name for field in attrs.fields(cls) if field.metadata.get(sdk.ABSENT_IF_NONE)}
        for name in absent:
            annotations[name] = sdk.without_none(annotations[name])
        schema = {
            "type": "object",
            "properties": {wire: _response_schema(self.of(annotations[name]).schema) for name, wire in names.items()},
            "required": [wire for name, wire in names.items() if name not in absent],
        }
        return Shape(schema, unchanged)

    def _of_type(self, annotation: Any) -> Shape:
        origin = get_origin(annotation)
        if origin is Literal:
            return Shape({"type": "string", "enum": list(get_args(annotation))}, unchanged)
        if is_typeddict(annotation):
            # In an input dict, None means that the key is omitted; the request never contains null.
            fields = {key: sdk.without_none(each) for key, each in sdk.annotations_of(annotation).items()}
            return self.of_object(fields, [key for key in fields if get_origin(fields[key]) is Required])
        if attrs.has(annotation):
            return self.of_class(annotation)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._of_mapping(get_args(annotation)[1])
        if isinstance(origin, type) and issubclass(origin, Iterable):
            return self._of_sequence(get_args(annotation)[0], tuple if origin is tuple else list)
        schema, convert = self.scalars[annotation]
        return Shape(dict(schema), convert)

    def _of_mapping(self, annotation: Any) -> Shape:
        if annotation is Any:
            return Shape({"type": "object"}, unchanged)
        values = self.of(annotation)

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            found = _converted(map(values.convert, value.values()), [*value].__getitem__)
            return dict(zip(value, found, strict=True))

        return Shape({"type": "object", "additionalProperties": values.schema}, convert)

    def _of_sequence(self, annotation: Any, made: Callable[[list[Any]], Any]) -> Shape:
        items = self.of(annotation)

        def convert(value: Iterable[Any]) -> Any:
            return made(_converted(map(items.convert, value), "[{}]".format))

        return Shape({"type": "array", "items": items.schema}, made if items.convert is unchanged else convert)

    def _of_union(self, annotation: Any) -> Shape:
        members = [member for member in _flat_members(annotation) if member is not NotGiven]
        has_null = NoneType in members
        members = [member for member in members if member is not NoneType]
        kinds = [sdk.bare(member) for member in members]
        # Python callers may pass a datetime or a date as a string. For an enum, a string stands for values that are not
        # known yet.
        for kind in _TIMES:
            if kind in kinds:
                members = [kind]
        literals = [member for member in members if get_origin(member) is Literal]
        if literals and all(member in literals or member is str for member in members):
            values = [value for literal in literals for value in get_args(literal)]
            shape = Shape({"type": "string", "enum": values}, unchanged)
        else:
            shapes = [self.of(member) for member in members]
            shape = shapes[0] if len(shapes) == 1 else _any_of(shapes)
        return _nullable(shape) if has_null else shape


def _converted(values: Iterator[T], step: Callable[[int], str]) -> list[T]:
    """Return converted values. ``step`` returns the path of the value at a position, for an error about it."""
    found: list[T] = []
    try:
        for each in values:
            found.append(each)  # noqa: PERF402 - its length is the position of an error
    except ServiceError as error:
        raise error.under(step(len(found))) from None
    return found


def _constraint_schema(constraint: object, annotation: Any) -> Schema:
    match constraint:
        case sdk.IdPrefix(prefix=prefix):
            return {"pattern": f"^{prefix}"}
        case sdk.Format(name=name):
            return {"format": name}
        case sdk.MinLength(characters=characters):
            return {"minLength": characters}
        case sdk.Limits(minimum=minimum, maximum=maximum) if annotation is int:
            return {"minimum": minimum, "maximum": maximum}
        case sdk.Limits(minimum=minimum, maximum=maximum):
            return {"minItems": minimum, "maxItems": maximum}
        case sdk.MinItems(items=items):
            return {"minItems": items}
        case sdk.Default(value=value):
            return {"default": value}
    return {}


def _flat_members(annotation: Any) -> list[Any]:
    members: list[Any] = []
    for member in get_args(annotation):
        members += _flat_members(member) if sdk.is_union(member) else [member]
    return members


def _any_of(shapes: list[Shape]) -> Shape:
    converters = {shape.schema["type"]: shape.convert for shape in shapes}
    return Shape(
        {"anyOf": [shape.schema for shape in shapes]}, lambda value: converters.get(_json_type(value), unchanged)(value)
    )


def _json_type(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "null")


def _nullable(shape: Shape) -> Shape:
    schema, convert = shape.schema, shape.convert
    if "anyOf" in schema or "$ref" in schema:
        schema = {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}
    elif "type" in schema:
        schema = {**schema, "type": [schema["type"], "null"]}
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    if convert is unchanged:
        return Shape(schema, unchanged)
    return Shape(schema, lambda value: None if value is None else convert(value))


def _response_schema(schema: Schema) -> Schema:
    """Return the schema of a field in a response, without the limits that apply to requests."""
    unbounded = {key: value for key, value in schema.items() if key not in ("minLength", "maxLength")}
    if unbounded.get("pattern") in (YEARS, DATE_YEARS):
        del unbounded["pattern"]
    if "items" in unbounded:
        unbounded["items"] = _response_schema(unbounded["items"])
    return unbounded


def open_schema(schema: Any) -> Any:
    """Return a copy of a schema that allows unknown fields."""
    if isinstance(schema, dict):
        return {key: open_schema(value) for key, value in schema.items() if key != "additionalProperties"}
    return [open_schema(item) for item in schema] if isinstance(schema, list) else schema


REQUESTS = Shapes()
shape_of: Callable[[Any], Shape] = REQUESTS.of
object_shape: Callable[[Mapping[str, Any], Iterable[str]], Shape] = REQUESTS.of_object
