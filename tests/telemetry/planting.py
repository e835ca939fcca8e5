"""Requests and responses of the 32 operations, with marks in every value that can hold one."""

import re
from collections.abc import Iterable
from typing import Any

from contract import specification as spec
from contract.samples import snake, snake_keys
from contract.specification import Field, Operation, Type

MARK = "zqxmark"
PHONE = "+54 9 11 5612-7734"
DOCUMENT = "30987654"
DAY = "1987-03-21"
KEY = f"fu_live_{MARK}"

MARKS = re.compile(rf"{MARK}|5612\D{{0,3}}7734|30\D{{0,3}}987\D{{0,3}}654|{DAY}", re.IGNORECASE)
"""What must not be exported; long enough not to be in a random id."""

ECHO = f"{MARK} {PHONE} {DOCUMENT} {DAY}"

_BY_NAME: dict[str, Any] = {"phone": PHONE, "dni": DOCUMENT}
_BY_FORMAT = {
    "date-time": f"{DAY}T10:00:00Z",
    "date": DAY,
    "email": f"{MARK}@clinic.example",
    "uri": f"https://{MARK}.example/hooks",
}
_BY_JSON: dict[str, Any] = {"boolean": True, "integer": 1, "object": {f"{MARK}Key": ECHO, "phone": PHONE}}


def planted(type: Type, name: str = "") -> Any:
    """Return a value of a type on the wire, marked if the type allows it."""
    if type.either:
        return planted(type.either[-1] if type.either[-1].fields else type.either[0], name)
    if type.items is not None:
        return [planted(type.items, name)]
    if type.fields:
        return planted_object(type.fields)
    if type.values:
        return type.values[0]
    if type.prefix:
        return f"{type.prefix}{MARK}1"
    if type.json == "string" and type.format is None:
        return _BY_NAME.get(name, f"{MARK} {name}")
    return _BY_FORMAT[type.format] if type.format else _BY_JSON[type.json]


def planted_object(fields: Iterable[Field]) -> dict[str, Any]:
    """Return an object with all of these fields."""
    return {field.name: planted(field.type, field.name) for field in fields}


def arguments_of(operation: Operation) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of an operation, all of them but the second cursor."""
    if operation.whole_body:
        event = snake_keys(planted_object(spec.EVENT.fields) | {"schemaVersion": 1}, spec.EVENT)
        return [event], {"idempotency_key": f"{MARK}-key"}
    fields = [each for each in operation.query or operation.body if each.name != "endingBefore"]
    keywords = {snake(each.name): snake_keys(planted(each.type, each.name), each.type) for each in fields}
    if operation.idem:
        keywords["idempotency_key"] = f"{MARK}-key"
    return [f"{operation.id}{MARK}1"] if operation.id else [], keywords


def response_of(operation: Operation) -> dict[str, Any]:
    """Return the body of a successful response."""
    if operation.list_of:
        item = planted_object(spec.RESULTS[operation.list_of])
        return {"object": "list", "data": [item], "hasMore": False, "url": f"{operation.path}?dni={DOCUMENT}"}
    body = planted_object(spec.RESULTS[operation.returns])
    return body | {"id": f"{operation.id}{MARK}1"} if operation.returns == "DeletedObject" else body
