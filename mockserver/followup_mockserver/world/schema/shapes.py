"""Shapes of requests and responses, derived from the SDK's annotations.

The OpenAPI document has the same schemas, so it describes exactly the requests that the mock accepts.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any

import attrs

from followup import _for_mockserver as sdk
from followup_mockserver.world.schema import validation
from followup_mockserver.world.schema.formats import parse_date, parse_timestamp

MAX_STRING_LENGTH = 5_000
MAX_BODY_BYTES = sdk.MAX_REQUEST_BYTES
MAX_HEAD_BYTES = 64 * 1024
"""The maximum size of request line and headers together. A filter in the query may have 5,000 characters of any script,
each of them percent-encoded."""

_LARGEST_NUMBER = 1e300
"""Stands for any larger number: a whole number in JSON may be too large for a float. Each argument has a smaller range
of its own."""

LARGEST_INTEGER = 2**53
"""The bound of numbers that count something in a snapshot: every JSON implementation can represent them."""

Scalar = tuple[validation.Schema, Callable[[Any], Any] | None]
"""The schema of a type, and the conversion of its values; None: they are the same in JSON and in Python."""


class Shapes:
    """Derives shapes from annotations: those of requests, and the schemas of responses."""

    scalars: Mapping[Any, Scalar] = {
        str: ({"type": "string", "maxLength": MAX_STRING_LENGTH}, None),
        bool: ({"type": "boolean"}, None),
        int: ({"type": "integer"}, None),
        float: ({"type": "number"}, lambda value: float(max(-_LARGEST_NUMBER, min(value, _LARGEST_NUMBER)))),
        datetime: ({"type": "string", "format": validation.TIMESTAMP, "pattern": validation.YEARS}, parse_timestamp),
        date: ({"type": "string", "format": validation.DATE, "pattern": validation.DATE_YEARS}, parse_date),
        Any: ({}, None),
    }

    def of(self, annotation: Any) -> validation.Shape:
        """Return the shape of an annotation, such as that of a parameter or of the field of a result."""
        kinds = sdk.kinds_of(annotation)
        shapes = [self._of_kind(each) for each in kinds.intended]
        if len(shapes) == 1:
            return _nullable(shapes[0]) if kinds.nullable else shapes[0]
        members = [*shapes, *([validation.Shape({"type": "null"})] if kinds.nullable else [])]
        return validation.Shape({"anyOf": [each.schema for each in members]}, members=members)

    def of_object(self, annotations: Mapping[str, Any], required: Iterable[str]) -> validation.Shape:
        """Return the shape of an object.

        Args:
            annotations: annotations of the fields, by their snake_case names.
            required: names of the required fields.
        """
        return validation.object_of(
            {sdk.camel(name): self.of(annotation) for name, annotation in annotations.items()},
            [sdk.camel(name) for name in required],
            names={sdk.camel(name): name for name in annotations},
        )

    def of_class(self, cls: Any) -> validation.Shape:
        """Return the shape of a result class of the SDK."""
        kinds, names = sdk.kinds_in(cls), sdk.wire_fields(cls)
        absent = {field.name for field in attrs.fields(cls) if field.metadata.get(sdk.ABSENT_IF_NONE)}
        shapes = {
            wire: self.of(kinds[name].without_none() if name in absent else kinds[name]) for name, wire in names.items()
        }
        schema = {
            "type": "object",
            "properties": {wire: _response_schema(shape.schema) for wire, shape in shapes.items()},
            "required": [wire for name, wire in names.items() if name not in absent],
        }
        return validation.Shape(schema)

    def _of_kind(self, kind: sdk.Kind) -> validation.Shape:
        shape = self._of_form(kind)
        for mark in kind.marks:
            shape.schema.update(_constraint_schema(mark, kind))
        return shape

    def _of_form(self, kind: sdk.Kind) -> validation.Shape:
        match kind.form:
            case "choice":
                return validation.Shape({"type": "string", "enum": [*kind.values]})
            case "input":
                # In an input dict, None means that the key is omitted; the request never contains null.
                fields = {key: each.without_none() for key, each in sdk.kinds_in(kind.type).items()}
                return self.of_object(fields, [key for key, each in fields.items() if each.required])
            case "result":
                return self.of_class(kind.type)
            case "mapping" if kind.items and kind.items.types == {Any}:
                return validation.Shape({"type": "object"})
            case "mapping":
                return validation.mapping_of(self.of(kind.items))
            case "list":
                return validation.array_of(self.of(kind.items), tuple if kind.type is tuple else list)
        schema, convert = self.scalars[kind.type]
        # A copy, because the constraints of one parameter are added to it.
        return validation.Shape(dict(schema), None if convert is None else lambda value, _how, _path: convert(value))


def _constraint_schema(constraint: object, kind: sdk.Kind) -> validation.Schema:
    match constraint:
        case sdk.IdPrefix(prefix=prefix):
            return {"pattern": f"^{prefix}"}
        case sdk.Format(name=name):
            return {"format": name}
        case sdk.MinLength(characters=characters):
            return {"minLength": characters}
        case sdk.Limits(minimum=minimum, maximum=maximum) if kind.form == "scalar":
            return {"minimum": minimum, "maximum": maximum}
        case sdk.Limits(minimum=minimum, maximum=maximum):
            return {"minItems": minimum, "maxItems": maximum}
        case sdk.MinItems(items=items):
            return {"minItems": items}
        case sdk.Constant(value=value):
            return {"default": value, "const": value}
        case sdk.Default(value=value):
            return {"default": value}
    return {}


def _nullable(shape: validation.Shape) -> validation.Shape:
    schema = shape.schema
    if "type" in schema:
        schema = {**schema, "type": [schema["type"], "null"]}
        # In JSON Schema every keyword must hold, so null has to be among the values of an enum too.
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return attrs.evolve(shape, schema=schema)


def _response_schema(schema: validation.Schema) -> validation.Schema:
    """Return the schema of a field in a response, without the limits that apply to requests."""
    unbounded = {key: value for key, value in schema.items() if key not in ("minLength", "maxLength")}
    if unbounded.get("pattern") in (validation.YEARS, validation.DATE_YEARS):
        del unbounded["pattern"]
    if "items" in unbounded:
        unbounded["items"] = _response_schema(unbounded["items"])
    return unbounded


def open_schema(schema: Any) -> Any:
    """Return a copy of a schema that allows unknown fields."""
    if isinstance(schema, dict):
        return {key: open_schema(value) for key, value in schema.items() if key != "additionalProperties"}
    return [open_schema(item) for item in schema] if isinstance(schema, list) else schema


_REQUESTS = Shapes()
shape_of: Callable[[Any], validation.Shape] = _REQUESTS.of
object_shape: Callable[[Mapping[str, Any], Iterable[str]], validation.Shape] = _REQUESTS.of_object


def shape_of_parameters(parameters: Iterable[sdk.Parameter], *, partial: bool = False) -> validation.Shape:
    """Return the shape of an object with these parameters of an operation, all of them optional if it is partial."""
    parameters = [*parameters]
    kinds = {each.name: each.kinds for each in parameters}
    return object_shape(kinds, [each.name for each in parameters if each.required and not partial])
