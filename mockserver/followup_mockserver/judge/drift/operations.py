"""Compares two operations: their requests and their responses."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from followup_mockserver.judge.drift.alternatives import canonical
from followup_mockserver.judge.drift.contracts import BEARER, JSON, Body, Contract, Operation, Parameter, Response
from followup_mockserver.judge.drift.differences import Difference, DifferenceClass, Direction
from followup_mockserver.judge.drift.parts import compare_texts
from followup_mockserver.judge.drift.samples import NoSampleError, sample
from followup_mockserver.judge.drift.schema_comparison import Message, compare_schemas
from followup_mockserver.judge.drift.schemas import Schema, Schemas


class Comparer:
    """Compares schemas of two contracts.

    Args:
        ours: the contract that SDK and mock implement.
        theirs: the compared contract.
    """

    def __init__(self, ours: Contract, theirs: Contract) -> None:
        self._ours = ours
        self._theirs = theirs
        self._known: dict[tuple[Direction, str, str], list[Difference]] = {}

    def compare(self, direction: Direction, ours: Schema, theirs: Schema, where: str) -> Iterator[Difference]:
        """Iterate over the differences of two schemas, each of its own contract.

        Raises:
            DocumentError: a schema is invalid or too large.
        """
        key = (direction, canonical(ours), canonical(theirs))
        if key not in self._known:
            our_schemas, their_schemas = (
                each.requests if direction == "request" else each.responses for each in (self._ours, self._theirs)
            )
            self._known[key] = compare_schemas(direction, Message(ours, our_schemas), Message(theirs, their_schemas))
        yield from (attrs.evolve(each, where=where + each.where) for each in self._known[key])


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
            yield Difference("mock differs", f"{where}.{one[key].name}", detail, {})
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
            yield Difference("breaking", where, "The contract has no request body.", {})
        return
    without = {"method": ours.method, "path": example_path(ours)}
    if one is None:
        class_: DifferenceClass = "breaking" if other.required else "added"
        detail = f"The contract {'requires' if other.required else 'allows'} a request body."
        with_body = without | {"body": _sample(other.media.json, schemas)}
        witness = without if other.required else with_body
        yield Difference(class_, where, detail, witness)
        return
    if other.required and not one.required:
        detail = "required: the contract requires a body, SDK and mock do not"
        yield Difference("breaking", where, detail, without)
    elif one.required and not other.required:
        detail = "required: the contract does not require a body, the mock does"
        yield Difference("mock differs", where, detail, without)
    yield from _compare_media(comparer, one, other, where)


def _compare_media(comparer: Comparer, one: Body, other: Body, where: str) -> Iterator[Difference]:
    assert one.media.json is not None
    if other.media.json is None:
        listed = ", ".join(other.media.schemas) or "none"
        detail = f"media type: {listed} in the contract, {JSON} in SDK and mock"
        yield Difference("breaking", where, detail, {"Content-Type": JSON})
        return
    for name in other.media.others:
        detail = f"media type: the contract also allows {name}"
        yield Difference("added", where, detail, {"Content-Type": name})
    yield from comparer.compare("request", one.media.json, other.media.json, where)


def compare_security(ours: Operation, theirs: Operation) -> Iterator[Difference]:
    """Iterate over the differences of the credentials that an operation needs."""
    where = f"{ours.where} request security"
    request: dict[str, Any] = {"method": ours.method, "path": example_path(ours)}
    allowed = [each for each in theirs.security if set(each) <= {BEARER}]
    if not theirs.security or [] in allowed:
        detail = "The contract needs no API key; the mock does."
        yield Difference("mock differs", where, detail, request)
    elif not allowed:
        needed = " or ".join(" and ".join(each) for each in theirs.security)
        witness = request | {"headers": {"Authorization": "Bearer <API key>"}}
        detail = f"credentials: {needed} in the contract, {BEARER} in SDK and mock"
        yield Difference("breaking", where, detail, witness)
    for each in theirs.security:
        if allowed and each not in allowed:
            detail = f"The contract also allows {' and '.join(each)}."
            yield Difference("added", where, detail, request | {"credentials": each})


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


_SUCCESS = "200"


def compare_responses(
    comparer: Comparer, ours: Operation, theirs: Operation, schemas: tuple[Schemas, Schemas]
) -> Iterator[Difference]:
    """Iterate over the differences of the responses; ``schemas`` are those of our contract and of the other."""
    for status, response in ours.responses.items():
        where = f"{ours.where} response {status}"
        found = _response(theirs, status)
        if found is not None:
            yield from _compare_bodies(comparer, response, found, where)
            yield from _compare_headers(response, found, where)
            yield from compare_texts({"description": response.description}, {"description": found.description}, where)
        elif status != _SUCCESS or not _successes(theirs):
            yield _removed(status, response, where, schemas[0])
    yield from _compare_new(comparer, ours, theirs, schemas[1])


def _response(operation: Operation, status: str) -> Response | None:
    """Return the response of a status: its own, that of its range, or the default."""
    candidates = (status, f"{status[0]}XX", "default")
    return next((operation.responses[each] for each in candidates if each in operation.responses), None)


def _successes(operation: Operation) -> list[str]:
    return [status for status in operation.responses if status.startswith("2")]


def _removed(status: str, response: Response, where: str, schemas: Schemas) -> Difference:
    if status == _SUCCESS:
        return Difference("breaking", where, "The contract has no response for success.", {"status": 200})
    body = None if response.media.json is None else _sample(response.media.json, schemas)
    witness = {"status": int(status), "body": body}
    detail = "The contract does not have this status; the mock responds with it."
    return Difference("mock differs", where, detail, witness)


def _compare_new(comparer: Comparer, ours: Operation, theirs: Operation, schemas: Schemas) -> Iterator[Difference]:
    has_ours = _response(theirs, _SUCCESS) is not None
    for status, response in theirs.responses.items():
        if status in ours.responses or not status.isdecimal():
            continue
        where = f"{ours.where} response {status}"
        witness: Any = {"status": int(status)}
        if status not in _successes(theirs):
            yield Difference("added", where, "The contract has this new status.", witness)
            continue
        class_: DifferenceClass = "added" if has_ours else "mock differs"
        also = "also " if has_ours else ""
        detail = f"The contract {also}has the status {status} for success, the mock responds with 200."
        if response.media.json is not None:
            witness["body"] = _sample(response.media.json, schemas)
        yield Difference(class_, where, detail, witness)
        yield from _compare_bodies(comparer, ours.responses[_SUCCESS], response, where)


def _compare_bodies(comparer: Comparer, ours: Response, theirs: Response, where: str) -> Iterator[Difference]:
    assert ours.media.json is not None
    where = f"{where} body"
    schema: Schema | None = theirs.media.json
    if schema is None and theirs.media.other_json is not None:
        name, schema = theirs.media.other_json  # the SDK decodes any JSON
        detail = f"media type: {name} in the contract, {JSON} in the mock"
        yield Difference("mock differs", where, detail, {"Content-Type": JSON})
    if schema is None:
        listed = ", ".join(theirs.media.schemas)
        problem = (
            f"The contract has a body of {listed} instead of JSON." if listed else "The contract describes no body."
        )
        witness = {"Content-Type": next(iter(theirs.media.schemas))} if listed else ""
        yield Difference("breaking", where, problem, witness)
        return
    if theirs.media.json is not None:
        for name in theirs.media.others:
            detail = f"media type: the contract also has {name}"
            yield Difference("added", where, detail, {"Content-Type": name})
    yield from comparer.compare("response", ours.media.json, schema, where)


def _compare_headers(ours: Response, theirs: Response, where: str) -> Iterator[Difference]:
    """Compare the names of the headers. The SDK needs none of them, and reads them leniently."""
    for key in ours.headers.keys() - theirs.headers.keys():
        detail = "The contract does not describe this header; the SDK does not need it."
        yield Difference("wording", f"{where} header.{ours.headers[key]}", detail)
    for key in theirs.headers.keys() - ours.headers.keys():
        detail = "The contract has this new header."
        yield Difference("added", f"{where} header.{theirs.headers[key]}", detail, {theirs.headers[key]: "…"})
