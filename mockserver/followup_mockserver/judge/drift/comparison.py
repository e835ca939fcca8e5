"""Compares a contract document with the contract that SDK and mock implement, operation by operation."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from followup_mockserver.contract.openapi import document as our_document
from followup_mockserver.judge.drift import contracts
from followup_mockserver.judge.drift.alternatives import canonical
from followup_mockserver.judge.drift.contracts import ByMediaType, Contract, Operation, Parameter, Response
from followup_mockserver.judge.drift.differences import Difference, DifferenceClass, Report, compare_texts
from followup_mockserver.judge.drift.reading import DocumentError
from followup_mockserver.judge.drift.schema_comparison import compare_schemas
from followup_mockserver.judge.drift.schemas import NOTHING, Direction, Message, Schema


class _Comparer:
    """Compares schemas of two contracts, equal pairs only once."""

    def __init__(self, ours: Contract, theirs: Contract) -> None:
        self._contracts = ours, theirs
        self._known: dict[tuple[Direction, str, str], list[Difference]] = {}

    def compare(self, direction: Direction, ours: Schema, theirs: Schema, where: str) -> Iterator[Difference]:
        """Iterate over the differences of two schemas, each of its own contract."""
        key = (direction, canonical(ours), canonical(theirs))
        if key not in self._known:
            our_schemas, their_schemas = (
                each.requests if direction == "request" else each.responses for each in self._contracts
            )
            self._known[key] = compare_schemas(direction, Message(ours, our_schemas), Message(theirs, their_schemas))
        yield from (attrs.evolve(each, where=where + each.where) for each in self._known[key])


def compare_document(document: dict[str, Any]) -> Report:
    """Compare a contract document with the contract that SDK and mock implement.

    Args:
        document: an OpenAPI document, 3.0 or later.

    Returns:
        The differences.

    Raises:
        DocumentError: the document is malformed.
    """
    try:
        return Report.of(_differences(_our_contract(), Contract(document)))
    except RecursionError:
        raise DocumentError("its references are nested too deeply") from None


@functools.cache
def _our_contract() -> Contract:
    return Contract(our_document())


def _differences(ours: Contract, theirs: Contract) -> Iterator[Difference]:
    comparer = _Comparer(ours, theirs)
    yield from compare_texts(_info(ours), _info(theirs), "info")
    for key, operation in ours.operations.items():
        other = theirs.operations.get(key)
        if other is None:
            yield Difference("breaking", operation.where, "The contract does not have this operation.")
            continue
        yield from compare_texts(operation.texts, other.texts, operation.where)
        yield from _compare_security(operation, other)
        for place in operation.parameters:
            where = f"{operation.where} request {place}"
            yield from _compare_place(comparer, "request", operation, other, place, where)
        yield from _compare_body(comparer, operation, other)
        yield from _compare_responses(comparer, operation, other)
    for key, operation in theirs.operations.items():
        if key not in ours.operations:
            yield Difference("added", operation.where, "The contract has this new operation.")
    yield from _compare_webhooks(comparer, ours, theirs)


def _info(contract: Contract) -> dict[str, Any]:
    info = contract.raw.object(contract.raw.document.get("info"), "info")
    return {name: info.get(name) for name in ("title", "version", "description")}


def _compare_webhooks(comparer: _Comparer, ours: Contract, theirs: Contract) -> Iterator[Difference]:
    """Compare the webhooks. One contract may describe all types in one webhook, another one each type in its own."""
    (webhook,) = ours.webhooks.values()
    if not theirs.webhooks:
        yield Difference("wording", "webhooks", "The contract does not describe webhooks.")
        return
    bodies: list[Schema] = []
    for name, each in theirs.webhooks.items():
        yield from _compare_place(comparer, "response", webhook, each, "header", f"webhook {name} header")
        if each.body is not None and each.body.json is not None:
            bodies.append(each.body.json)
    assert webhook.body is not None
    assert webhook.body.json is not None
    if bodies:
        schema = bodies[0] if len(bodies) == 1 else {"anyOf": bodies}
        yield from comparer.compare("response", webhook.body.json, schema, "webhook body")
    else:
        yield Difference("breaking", "webhook body", "The contract describes no JSON body.")


_ALWAYS_SENT = {"idempotency-key", "service-version"}
"""Headers that the SDK sends with each request of an operation that has them, although they are optional."""

_IN_TEXT: Schema = {"type": ["string", "number", "boolean", "array", "object"]}
"""The values of a parameter. A URL or a header cannot contain null."""
_PATH_SEGMENT: Schema = {"type": ["string", "number"], "minLength": 1, "pattern": "^[^/]+$"}


def _compare_place(
    comparer: _Comparer, direction: Direction, ours: Operation, theirs: Operation, place: str, where: str
) -> Iterator[Difference]:
    """Iterate over the differences of the parameters in one place, which are compared as one object."""
    one, other = ours.parameters[place], dict(theirs.parameters[place])
    if direction == "request":
        other.pop("user-agent", None)  # every client sends one
    for key in _ALWAYS_SENT & one.keys() & other.keys():
        if direction == "request" and other[key].required:
            detail = "required: the contract requires this header, which the SDK always sends; the mock does not"
            yield Difference("mock differs", f"{where}.{one[key].name}", detail)
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
        "additionalProperties": NOTHING,
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
        return {**_annotations(schema), "type": "string", "enum": ["true", "false"]}
    return schema


def _annotations(schema: Schema) -> Schema:
    return {key: each for key, each in schema.items() if key in ("title", "description", "default", "examples")}


def _is_plain_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and not schema.keys() & {"enum", "const", "pattern", "format"}


def _compare_body(comparer: _Comparer, ours: Operation, theirs: Operation) -> Iterator[Difference]:
    where = f"{ours.where} request body"
    one, other = ours.body, theirs.body
    if other is None:
        if one is not None:
            yield Difference("breaking", where, "The contract has no request body.")
        return
    if one is None:
        class_: DifferenceClass = "breaking" if theirs.body_required else "added"
        detail = f"The contract {'requires' if theirs.body_required else 'allows'} a request body."
        yield Difference(class_, where, detail)
        return
    if theirs.body_required and not ours.body_required:
        yield Difference("breaking", where, "required: the contract requires a body, SDK and mock do not")
    elif ours.body_required and not theirs.body_required:
        yield Difference("mock differs", where, "required: the contract does not require a body, the mock does")
    yield from _compare_media(comparer, "request", one, other, where)


def _compare_media(
    comparer: _Comparer, direction: Direction, ours: ByMediaType, theirs: ByMediaType, where: str
) -> Iterator[Difference]:
    """Iterate over the differences of two bodies. The SDK sends one media type, and decodes any JSON."""
    assert ours.json is not None
    schema = theirs.json
    if schema is not None:
        for name in theirs.others:
            yield Difference("added", where, f"media type: the contract also has {name}")
    elif direction == "response" and theirs.other_json is not None:
        name, schema = theirs.other_json
        yield Difference("mock differs", where, f"media type: {name} in the contract, {contracts.JSON} in the mock")
    if schema is None:
        listed = ", ".join(theirs.schemas) or "none"
        yield Difference("breaking", where, f"media type: {listed} in the contract, {contracts.JSON} in SDK and mock")
    else:
        yield from comparer.compare(direction, ours.json, schema, where)


def _compare_security(ours: Operation, theirs: Operation) -> Iterator[Difference]:
    where = f"{ours.where} request security"
    allowed = [each for each in theirs.security if set(each) <= {contracts.BEARER}]
    if not theirs.security or [] in allowed:
        yield Difference("mock differs", where, "The contract needs no API key; the mock does.")
    elif not allowed:
        needed = " or ".join(" and ".join(each) for each in theirs.security)
        yield Difference(
            "breaking", where, f"credentials: {needed} in the contract, {contracts.BEARER} in SDK and mock"
        )
    for each in theirs.security:
        if allowed and each not in allowed:
            yield Difference("added", where, f"The contract also allows {' and '.join(each)}.")


_SUCCESS = "200"


def _compare_responses(comparer: _Comparer, ours: Operation, theirs: Operation) -> Iterator[Difference]:
    for status, response in ours.responses.items():
        where = f"{ours.where} response {status}"
        found = _response(theirs, status)
        if found is not None:
            yield from _compare_media(comparer, "response", response.media, found.media, f"{where} body")
            yield from compare_texts({"description": response.description}, {"description": found.description}, where)
        elif status != _SUCCESS:
            yield Difference("mock differs", where, "The contract does not have this status; the mock does.")
        elif not any(each.startswith("2") for each in theirs.responses):
            yield Difference("breaking", where, "The contract has no response for success.")
    yield from _compare_new(comparer, ours, theirs)


def _response(operation: Operation, status: str) -> Response | None:
    """Return the response of a status: its own, that of its range, or the default."""
    candidates = (status, f"{status[0]}XX", "default")
    return next((operation.responses[each] for each in candidates if each in operation.responses), None)


def _compare_new(comparer: _Comparer, ours: Operation, theirs: Operation) -> Iterator[Difference]:
    has_ours = _response(theirs, _SUCCESS) is not None
    for status, response in theirs.responses.items():
        if status in ours.responses or not status.isdecimal():
            continue
        where = f"{ours.where} response {status}"
        if not status.startswith("2"):
            yield Difference("added", where, "The contract has this new status.")
            continue
        class_: DifferenceClass = "added" if has_ours else "mock differs"
        yield Difference(class_, where, f"The contract has the status {status} for success, the mock has 200.")
        media = ours.responses[_SUCCESS].media
        yield from _compare_media(comparer, "response", media, response.media, f"{where} body")
