"""From the SDK's annotations: the JSON Schema that a request must fit, and its values as the rules take them.

The schemas are those of the OpenAPI document, so what is promised is what is enforced.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, Required, TypeVar, get_args, get_origin, is_typeddict

import attrs

from followup import NotGiven
from followup._for_mockserver import (
    ABSENT_IF_NONE,
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
from followup_mockserver.schema.timestamps import parse_timestamp

T = TypeVar("T")
Schema = dict[str, Any]
Convert = Callable[[Any], Any]

MAX_STRING_LENGTH = 5_000
MAX_BODY_BYTES = 1024 * 1024
DATE = "date"
TIMESTAMP = "date-time"
HTTPS_URL = "https-url"

YEARS = "^(?!0000|0001|9999)"
"""The years at the ends of the calendar are rejected: another offset, or a reminder, would leave the calendar."""
DATE_YEARS = "^(?!0000)"
"""RFC 3339 has a year 0, which the calendar does not."""


@attrs.frozen
class Shape:
    """What an annotation means on the wire.

    Attributes:
        schema: its JSON Schema.
        convert: from valid JSON to the value that a rule takes.
    """

    schema: Schema
    convert: Convert


def _same(value: T) -> T:
    return value


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation of the SDK: of an operation's parameter, an input dict or a result's field."""
    metadata = getattr(annotation, "__metadata__", ())
    annotation = bare(annotation)
    if get_origin(annotation) in (Required, NotRequired):
        return shape_of(get_args(annotation)[0])
    if is_union(annotation):
        return _union_shape(annotation)
    shape = _plain_shape(annotation)
    for mark in metadata:
        shape.schema.update(_mark_schema(mark, annotation))
    return shape


def _plain_shape(annotation: Any) -> Shape:
    if get_origin(annotation) is Literal:
        return Shape({"type": "string", "enum": list(get_args(annotation))}, _same)
    if is_typeddict(annotation):
        return _typed_dict_shape(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return Shape(_result_schema(annotation), _same)
    origin = get_origin(annotation)
    if origin is Mapping:
        return Shape({"type": "object"}, _same)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        items = shape_of(get_args(annotation)[0])
        return Shape({"type": "array", "items": items.schema}, lambda value: [items.convert(item) for item in value])
    schema, convert = _SCALARS[annotation]
    return Shape(dict(schema), convert)


_SCALARS: dict[Any, tuple[Schema, Convert]] = {
    str: ({"type": "string", "maxLength": MAX_STRING_LENGTH}, _same),
    bool: ({"type": "boolean"}, _same),
    int: ({"type": "integer"}, _same),
    float: ({"type": "number"}, float),
    datetime: ({"type": "string", "format": TIMESTAMP, "pattern": YEARS}, parse_timestamp),
    date: ({"type": "string", "format": DATE, "pattern": DATE_YEARS}, date.fromisoformat),
    Any: ({}, _same),
}


def _mark_schema(mark: object, annotation: Any) -> Schema:
    match mark:
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
    arms = [arm for arm in _flat_arms(annotation) if arm is not NotGiven]
    nullable = NoneType in arms
    arms = [arm for arm in arms if arm is not NoneType]
    kinds = [bare(arm) for arm in arms]
    # A datetime or a date may go in as text too, and text stands for the values of an enum that are not known yet.
    for kind in (datetime, date):
        if kind in kinds:
            arms = [kind]
    literals = [arm for arm in arms if get_origin(arm) is Literal]
    if literals and all(get_origin(arm) is Literal or arm is str for arm in arms):
        values = [value for literal in literals for value in get_args(literal)]
        shape = Shape({"type": "string", "enum": values}, _same)
    else:
        shapes = [shape_of(arm) for arm in arms]
        shape = shapes[0] if len(shapes) == 1 else _one_of(shapes)
    return _nullable(shape) if nullable else shape


def _flat_arms(annotation: Any) -> list[Any]:
    arms: list[Any] = []
    for arm in get_args(annotation):
        arms += _flat_arms(arm) if is_union(arm) else [arm]
    return arms


def _one_of(shapes: list[Shape]) -> Shape:
    converters = {shape.schema["type"]: shape.convert for shape in shapes}
    return Shape(
        {"anyOf": [shape.schema for shape in shapes]}, lambda value: converters.get(_json_type(value), _same)(value)
    )


def _json_type(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "null")


def _nullable(shape: Shape) -> Shape:
    schema, convert = shape.schema, shape.convert
    if "anyOf" in schema:
        nullable: Schema = {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    elif "type" in schema:
        nullable = {**schema, "type": [schema["type"], "null"]}
        if "enum" in schema:
            nullable["enum"] = [*schema["enum"], None]
    else:
        nullable = schema
    return Shape(nullable, lambda value: None if value is None else convert(value))


def _typed_dict_shape(declared: Any) -> Shape:
    # None in an input dict means that the key is omitted; it is never null on the wire.
    annotations = {key: without_none(annotation) for key, annotation in annotations_of(declared).items()}
    required = [key for key in annotations if get_origin(annotations[key]) is Required]
    return object_shape(annotations, required)


def object_shape(annotations: Mapping[str, Any], required: Iterable[str]) -> Shape:
    """The shape of an object with these fields, by their snake_case names."""
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
    schemas = {wire: _answer_schema(shape_of(annotations[name]).schema) for name, wire in names.items()}
    for name in absent:
        schemas[names[name]] = _answer_schema(shape_of(without_none(annotations[name])).schema)
    return {
        "type": "object",
        "properties": schemas,
        "required": [wire for name, wire in names.items() if name not in absent],
    }


def _answer_schema(schema: Schema) -> Schema:
    """The schema of a field in a response, which is not bounded as that of a request."""
    unbounded = {key: value for key, value in schema.items() if key not in ("minLength", "maxLength")}
    if unbounded.get("pattern") in (YEARS, DATE_YEARS):
        del unbounded["pattern"]
    if "items" in unbounded:
        unbounded["items"] = _answer_schema(unbounded["items"])
    return unbounded


def open_schema(schema: Any) -> Any:
    """The schema without its rejection of unknown fields."""
    if isinstance(schema, dict):
        return {key: open_schema(value) for key, value in schema.items() if key != "additionalProperties"}
    return [open_schema(item) for item in schema] if isinstance(schema, list) else schema
