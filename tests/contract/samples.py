"""Values of the specification's types, and requests made of them."""

import re
from collections.abc import Iterable
from typing import Any

from contract.specification import TRUE_OR_FALSE, Field, Operation, Type

_BY_NAME: dict[str, Any] = {"phone": "+54 9 11 5555-0000", "data": {"anything": "goes"}, "payload": {"id": "whd_1"}}
_BY_FORMAT = {
    "date-time": "2026-10-01T10:00:00Z",
    "date": "1980-05-17",
    "email": "ana@clinic.example",
    "uri": "https://clinic.example/hooks",
}
_BY_JSON: dict[str, Any] = {"string": "text", "boolean": True, "integer": 1, "object": {"anything": "goes"}}


def value_of(field: Field) -> Any:
    """Return a value of a field on the wire, with all its optional parts."""
    return _BY_NAME[field.name] if field.name in _BY_NAME else of_type(field.type)


def of_type(type: Type) -> Any:
    """Return a value of a type on the wire."""
    if type.either:
        return of_type(type.either[-1] if type.either[-1].fields else type.either[0])
    if type.items is not None:
        return [of_type(type.items)]
    if type.fields:
        return object_of(type.fields)
    if type.values:
        return type.values[0]
    if type.prefix:
        return f"{type.prefix}1"
    return _BY_FORMAT[type.format] if type.format else _BY_JSON[type.json]


def object_of(fields: Iterable[Field], **others: Any) -> dict[str, Any]:
    """Return an object with all of these fields."""
    return {field.name: value_of(field) for field in fields} | others


def snake(name: str) -> str:
    """Return a name in snake_case: ``startAtGte`` as ``start_at_gte``."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def snake_keys(value: Any, type: Type) -> Any:
    """Return a value on the wire as an argument of the SDK: with snake_case keys in known objects, and booleans."""
    if type is TRUE_OR_FALSE:
        return value == "true"
    if isinstance(value, list):
        return [snake_keys(item, type.items) for item in value]
    arms = [arm for arm in type.either or (type,) if arm.fields]
    if isinstance(value, dict) and arms:
        fields = {field.name: field.type for arm in arms for field in arm.fields}
        return {snake(name): snake_keys(item, fields[name]) for name, item in value.items()}
    return value


def path_of(operation: Operation, id: str | None = None) -> str:
    """Return the path of an operation for an object with this id."""
    return operation.path.replace("{id}", id or f"{operation.id}1")
