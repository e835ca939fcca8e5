"""Compares the requests of two operations: parameters, body and credentials."""

from collections.abc import Iterator, Mapping
from typing import Any

from followup_mockserver.judge.drift.comparer import Comparer
from followup_mockserver.judge.drift.contracts import BEARER, Body, Operation, Parameter
from followup_mockserver.judge.drift.differences import Difference, DifferenceClass, Direction
from followup_mockserver.judge.drift.media import JSON
from followup_mockserver.judge.drift.samples import NoSampleError, sample
from followup_mockserver.judge.drift.schemas import Schema, Schemas

_ALWAYS_SENT = {"idempotency-key", "service-version"}
"""Headers that the SDK sends with each request of an operation that has them, although they are optional."""

_IN_TEXT: Schema = {"type": ["string", "number", "boolean", "array", "object"]}
"""The values of a parameter. A URL or a header cannot contain null."""
_PATH_SEGMENT: Schema = {"type": ["string", "number"], "minLength": 1, "pattern": "^[^/]+$"}


def compare_parameters(comparer: Comparer, ours: Operation, theirs: Operation) -> Iterator[Difference]:
    """Iterate over the differences of the parameters in path, query, headers and cookies."""
    for place in ours.parameters:
        yield from compare_place(comparer, "request", ours, theirs, place, f"{ours.where} request {place}")


def compare_place(
    comparer: Comparer, direction: Direction, ours: Operation, theirs: Operation, place: str, where: str
) -> Iterator[Difference]:
    """Iterate over the differences of the parameters in one place, which are compared as one object."""
    one, other = ours.parameters[place], dict(theirs.parameters[place])
    if direction == "request":
        other.pop("user-agent", None)  # every client sends one
    for key in _ALWAYS_SENT & one.keys() & other.keys():
        if direction == "request" and other[key].required:
            detail = (
                "required: the contract requires this header. The SDK always sends it; the mock does not require it."
            )
            yield Difference(class_="mock differs", where=f"{where}.{one[key].name}", detail=detail, witness={})
            other[key] = Parameter(one[key].name, one[key].required, other[key].schema)
    names = {key: each.name for key, each in {**other, **one}.items()}
    our_schema, their_schema = (
        _object_of(of, {key: _schema(key, of, against, place) for key in of}, names)
        for of, against in ((one, other), (other, one))
    )
    yield from comparer.compare(direction, our_schema, their_schema, where)


def _object_of(parameters: Mapping[str, Parameter], schemas: Mapping[str, Schema], names: Mapping[str, str]) -> Schema:
    """Return the schema of the parameters in one place as one object. No side accepts unknown parameters."""
    return {
        "type": "object",
        "properties": {names[key]: schema for key, schema in schemas.items()},
        "required": sorted(names[key] for key, parameter in parameters.items() if parameter.required),
        "additionalProperties": {"not": {}},
    }


def _schema(key: str, of: Mapping[str, Parameter], against: Mapping[str, Parameter], place: str) -> Schema:
    """Return the schema of a parameter, in the form in which text is compared with other types."""
    schema = _as_text(of[key].schema)
    other = _as_text(against[key].schema) if key in against else {}
    if _is_plain_text(schema) and other.get("type") in ("integer", "number"):
        schema = {**_annotations(schema), "anyOf": [schema, other]}  # a number is sent as text
    return {"allOf": [schema, _PATH_SEGMENT if place == "path" else _IN_TEXT]}


def _as_text(schema: Schema) -> Schema:
    if schema.get("type") in ("boolean", ["boolean"]):
        return {**_annotations(schema), **_BOOLEAN}
    return schema


def _annotations(schema: Schema) -> Schema:
    return {key: each for key, each in schema.items() if key in ("title", "description", "default", "examples")}


_BOOLEAN: Schema = {"type": "string", "enum": ["true", "false"]}


def _is_plain_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and not schema.keys() & {"enum", "const", "pattern", "format"}


def compare_body(comparer: Comparer, ours: Operation, theirs: Operation, schemas: Schemas) -> Iterator[Difference]:
    """Iterate over the differences of the request body; ``schemas`` are those of the compared contract."""
    where = f"{ours.where} request body"
    one, other = ours.body, theirs.body
    if other is None:
        if one is not None:
            yield Difference(class_="breaking", where=where, detail="The contract has no request body.", witness={})
        return
    without = {"method": ours.method, "path": example_path(ours)}
    if one is None:
        class_: DifferenceClass = "breaking" if other.required else "added"
        detail = f"The contract {'requires' if other.required else 'allows'} a request body."
        with_body = without | {"body": _sample(other.media.json, schemas)}
        witness = without if other.required else with_body
        yield Difference(class_=class_, where=where, detail=detail, witness=witness)
        return
    if other.required and not one.required:
        detail = "required: the contract requires a body, SDK and mock do not"
        yield Difference(class_="breaking", where=where, detail=detail, witness=without)
    elif one.required and not other.required:
        detail = "required: the contract does not require a body, the mock does"
        yield Difference(class_="mock differs", where=where, detail=detail, witness=without)
    yield from _compare_media(comparer, one, other, where)


def _compare_media(comparer: Comparer, one: Body, other: Body, where: str) -> Iterator[Difference]:
    assert one.media.json is not None
    if other.media.json is None:
        listed = ", ".join(other.media.schemas) or "none"
        detail = f"media type: {listed} in the contract, {JSON} in SDK and mock"
        yield Difference(class_="breaking", where=where, detail=detail, witness={"Content-Type": JSON})
        return
    for name in other.media.others:
        detail = f"media type: the contract also allows {name}"
        yield Difference(class_="added", where=where, detail=detail, witness={"Content-Type": name})
    yield from comparer.compare("request", one.media.json, other.media.json, where)


def compare_security(ours: Operation, theirs: Operation) -> Iterator[Difference]:
    """Iterate over the differences of the credentials that an operation needs."""
    where = f"{ours.where} request security"
    request: dict[str, Any] = {"method": ours.method, "path": example_path(ours)}
    allowed = [each for each in theirs.security if set(each) <= {BEARER}]
    if not theirs.security or [] in allowed:
        detail = "The contract needs no API key; the mock does."
        yield Difference(class_="mock differs", where=where, detail=detail, witness=request)
    elif not allowed:
        needed = " or ".join(" and ".join(each) for each in theirs.security)
        witness = request | {"headers": {"Authorization": "Bearer <API key>"}}
        detail = f"credentials: {needed} in the contract, {BEARER} in SDK and mock"
        yield Difference(class_="breaking", where=where, detail=detail, witness=witness)
    for each in theirs.security:
        if allowed and each not in allowed:
            detail = f"The contract also allows {' and '.join(each)}."
            yield Difference(class_="added", where=where, detail=detail, witness=request | {"credentials": each})


def example_path(operation: Operation) -> str:
    """Return the path of an operation, with example ids."""
    path = operation.path
    for place in operation.parameters["path"].values():
        path = path.replace(path[path.find("{") : path.find("}") + 1], f"<{place.name}>", 1)
    return path


def _sample(schema: Schema | None, schemas: Schemas) -> Any:
    try:
        return None if schema is None else sample(schema, schemas)
    except NoSampleError:
        return None
