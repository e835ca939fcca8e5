"""Shapes: JSON Schemas, and conversions from JSON to arguments of rules, derived from the SDK's annotations.

The OpenAPI document has the same schemas, so it describes exactly the requests that the mock accepts.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, Required, TypeVar, get_args, get_origin, is_typeddict

import attrs

from followup import NotGiven
from followup._for_mockserver import (
    ABSENT_IF_NONE,
    MAX_REQUEST_BYTES,
    Default,
    Format,
    IdPrefix,
    Limits,
    MinItems,
    MinLength,
    Model,
    annotations_of,
    bare,
    camel,
    is_union,
    wire_fields,
    without_none,
)
from followup_mockserver.schema.formats import parse_timestamp

T = TypeVar("T")
Schema = dict[str, Any]
Convert = Callable[[Any], Any]

MAX_STRING_LENGTH = 5_000
MAX_BODY_BYTES = MAX_REQUEST_BYTES
MAX_HEAD_BYTES = 64 * 1024
"""The maximum size of request line and headers together. A filter in the query may have 5,000 characters of any script,
each of them percent-encoded."""

DATE = "date"
TIMESTAMP = "date-time"
EXACT_TIMESTAMP = "exact-timestamp"
HTTPS_URL = "https-url"

_LARGEST_NUMBER = 1e300
"""Stands for any larger number: a whole number in JSON may be too large for a float. Each argument has a smaller range
of its own."""

YEARS = "^(?!0000|0001|9999)"
"""The first and the last year are rejected: in another time zone, such a time may be outside of the calendar."""
DATE_YEARS = "^(?!0000)"
"""RFC 3339 allows the year 0, Python does not."""


@attrs.frozen
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


def shape_of(annotation: Any) -> Shape:
    """Return the shape of an annotation of the SDK, such as that of a parameter or of the field of a result."""
    metadata = getattr(annotation, "__metadata__", ())
    annotation = bare(annotation)
    if get_origin(annotation) in (Required, NotRequired):
        return shape_of(get_args(annotation)[0])
    if is_union(annotation):
        return _union_shape(annotation)
    shape = _plain_shape(annotation)
    for constraint in metadata:
        shape.schema.update(_constraint_schema(constraint, annotation))
    return shape


def _plain_shape(annotation: Any) -> Shape:
    if get_origin(annotation) is Literal:
        return Shape({"type": "string", "enum": list(get_args(annotation))}, unchanged)
    if is_typeddict(annotation):
        return _typed_dict_shape(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return Shape(_result_schema(annotation), unchanged)
    origin = get_origin(annotation)
    if origin is Mapping:
        return Shape({"type": "object"}, unchanged)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        items = shape_of(get_args(annotation)[0])
        return Shape({"type": "array", "items": items.schema}, lambda value: [items.convert(item) for item in value])
    schema, convert = _SCALARS[annotation]
    return Shape(dict(schema), convert)


# Shapes are made when they are first needed, and freezegun may have replaced the names of this module by then.
_TIMES = (datetime, date)
_SCALARS: dict[Any, tuple[Schema, Convert]] = {
    str: ({"type": "string", "maxLength": MAX_STRING_LENGTH}, unchanged),
    bool: ({"type": "boolean"}, unchanged),
    int: ({"type": "integer"}, unchanged),
    float: ({"type": "number"}, lambda value: float(max(-_LARGEST_NUMBER, min(value, _LARGEST_NUMBER)))),
    datetime: ({"type": "string", "format": TIMESTAMP, "pattern": YEARS}, parse_timestamp),
    date: ({"type": "string", "format": DATE, "pattern": DATE_YEARS}, date.fromisoformat),
    Any: ({}, unchanged),
}


def _constraint_schema(constraint: object, annotation: Any) -> Schema:
    match constraint:
        case IdPrefix(prefix=prefix):
            return {"pattern": f"^{prefix}"}
        case Format(name=name):
            return {"format": name}
        case MinLength(characters=characters):
            return {"minLength": characters}
        case Limits(minimum=minimum, maximum=maximum) if annotation is int:
            return {"minimum": minimum, "maximum": maximum}
        case Limits(minimum=minimum, maximum=maximum):
            return {"minItems": minimum, "maxItems": maximum}
        case MinItems(items=items):
            return {"minItems": items}
        case Default(value=value):
            return {"default": value}
    return {}


def _union_shape(annotation: Any) -> Shape:
    members = [member for member in _flat_members(annotation) if member is not NotGiven]
    has_null = NoneType in members
    members = [member for member in members if member is not NoneType]
    kinds = [bare(member) for member in members]
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
        shapes = [shape_of(member) for member in members]
        shape = shapes[0] if len(shapes) == 1 else _any_of(shapes)
    return nullable(shape) if has_null else shape


def _flat_members(annotation: Any) -> list[Any]:
    members: list[Any] = []
    for member in get_args(annotation):
        members += _flat_members(member) if is_union(member) else [member]
    return members


def _any_of(shapes: list[Shape]) -> Shape:
    converters = {shape.schema["type"]: shape.convert for shape in shapes}
    return Shape(
        {"anyOf": [shape.schema for shape in shapes]},
        lambda value: converters.get(_json_type(value), unchanged)(value),
    )


def _json_type(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "null")


def nullable(shape: Shape) -> Shape:
    """Return the shape of a value, or of null."""
    schema, convert = shape.schema, shape.convert
    if "anyOf" in schema:
        nullable: Schema = {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    elif "type" in schema:
        nullable = {**schema, "type": [schema["type"], "null"]}
        if "enum" in schema:
            nullable["enum"] = [*schema["enum"], None]
    else:
        nullable = schema
    if convert is unchanged:
        return Shape(nullable, unchanged)
    return Shape(nullable, lambda value: None if value is None else convert(value))


def _typed_dict_shape(declared: Any) -> Shape:
    # In an input dict, None means that the key is omitted; the request never contains null.
    annotations = {key: without_none(annotation) for key, annotation in annotations_of(declared).items()}
    required = [key for key in annotations if get_origin(annotations[key]) is Required]
    return object_shape(annotations, required)


def object_shape(annotations: Mapping[str, Any], required: Iterable[str]) -> Shape:
    """Return the shape of an object.

    Args:
        annotations: annotations of the fields, by their snake_case names.
        required: names of the required fields.
    """
    shapes = {name: shape_of(annotation) for name, annotation in annotations.items()}
    names = {camel(name): name for name in annotations}
    schema: Schema = {
        "type": "object",
        "properties": {camel(name): shape.schema for name, shape in shapes.items()},
        "additionalProperties": False,
    }
    if required := [camel(name) for name in required]:
        schema["required"] = required

    def convert(value: Mapping[str, Any]) -> dict[str, Any]:
        return {names[key]: shapes[names[key]].convert(item) for key, item in value.items() if key in names}

    return Shape(schema, convert)


def _result_schema(cls: type[Model]) -> Schema:
    annotations = annotations_of(cls)
    names = wire_fields(cls)
    absent = {field.name for field in attrs.fields(cls) if field.metadata.get(ABSENT_IF_NONE)}
    schemas = {wire: _response_schema(shape_of(annotations[name]).schema) for name, wire in names.items()}
    for name in absent:
        schemas[names[name]] = _response_schema(shape_of(without_none(annotations[name])).schema)
    return {
        "type": "object",
        "properties": schemas,
        "required": [wire for name, wire in names.items() if name not in absent],
    }


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
