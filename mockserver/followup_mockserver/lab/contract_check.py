"""Compares a contract document with the contract that SDK and mock implement, operation by operation."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import attrs

from followup._for_mockserver import camel
from followup_mockserver.gateway.openapi import document as our_document
from followup_mockserver.lab import contract_document as documents
from followup_mockserver.lab.contract_schemas import (
    KINDS,
    Comparer,
    Difference,
    DifferenceClass,
    Direction,
    changed,
    compare_texts,
)

_ALWAYS_SENT = {"idempotency-key", "service-version"}
"""Headers that the SDK sends with each request of an operation that has them, although they are optional."""

_IN_TEXT = {"type": [each for each in KINDS if each != "null"]}
"""The values of a parameter. A URL or a header cannot contain null."""

_SUCCESS = "200"
_JSON_TYPES = (documents.JSON, "application/*", "*/*")
CLASSES: tuple[DifferenceClass, ...] = get_args(DifferenceClass)
"""All classes, the most serious first."""


@attrs.frozen
class Report:
    """The result of a comparison.

    Attributes:
        differences: the differences, the most serious first, and those of a class in the order of the contract.
    """

    differences: tuple[Difference, ...]

    def of_class(self, class_: DifferenceClass) -> list[Difference]:
        """Return the differences of a class."""
        return [each for each in self.differences if each.class_ == class_]

    @property
    def is_compatible(self) -> bool:
        """Whether SDK and mock still fit the compared contract."""
        return not self.of_class("breaking") and not self.of_class("mock differs")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data; the ``witness`` of a difference is always null."""
        shown = [
            {"class": each.class_, "where": each.where, "detail": each.detail, "witness": None}
            for each in self.differences
        ]
        return {"differences": shown, **{camel(each.replace(" ", "_")): len(self.of_class(each)) for each in CLASSES}}


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
        found = [*_Comparison(documents.Raw(our_document()), documents.Raw(document)).differences()]
    except RecursionError:
        raise documents.DocumentError("its references are nested too deeply") from None
    return Report(tuple(sorted(found, key=lambda each: CLASSES.index(each.class_))))


class _Comparison:
    """A comparison of two documents."""

    def __init__(self, ours: documents.Raw, theirs: documents.Raw) -> None:
        self._ours = ours
        self._theirs = theirs
        directions: tuple[Direction, Direction] = ("request", "response")
        self._comparers = {each: Comparer(each, ours, theirs) for each in directions}

    def differences(self) -> Iterator[Difference]:
        yield from compare_texts(_info(self._ours), _info(self._theirs), "info")
        ours, theirs = documents.operations(self._ours), documents.operations(self._theirs)
        for key, operation in ours.items():
            if key in theirs:
                yield from self._compare_operation(operation, theirs[key])
            else:
                yield Difference("breaking", operation.where, "The contract does not have this operation.")
        for key, operation in theirs.items():
            if key not in ours:
                yield Difference("added", operation.where, "The contract has this new operation.")
        yield from self._compare_webhooks()

    def _compare_operation(self, ours: documents.Operation, theirs: documents.Operation) -> Iterator[Difference]:
        yield from compare_texts(ours.texts, theirs.texts, ours.where)
        yield from _compare_security(ours.security, theirs.security, f"{ours.where} request security")
        for place in documents.PLACES:
            yield from self._compare_parameters("request", ours, theirs, place, f"{ours.where} request {place}")
        yield from self._compare_body(ours, theirs, f"{ours.where} request body")
        yield from self._compare_responses(ours, theirs)

    def _compare_parameters(
        self, direction: Direction, ours: documents.Operation, theirs: documents.Operation, place: str, where: str
    ) -> Iterator[Difference]:
        """Iterate over the differences of the parameters in one place, which are compared as one object."""
        one, other = ours.parameters(place), theirs.parameters(place)
        if direction == "request":
            # Every client sends this one, whether the contract lists it or not.
            other.pop("user-agent", None)
            for key in _ALWAYS_SENT & one.keys() & other.keys():
                if other[key].get("required") is True and not one[key].get("required"):
                    detail = "required: the contract requires this header, and the SDK sends it; the mock does not"
                    yield Difference("mock differs", f"{where}.{one[key]['name']}", detail)
                    other[key]["required"] = False
        names = {key: each["name"] for key, each in {**other, **one}.items()}
        our_object, their_object = _object_of(one, names, self._ours), _object_of(other, names, self._theirs)
        yield from self._comparers[direction].compare(our_object, their_object, where)

    def _compare_body(self, ours: documents.Operation, theirs: documents.Operation, where: str) -> Iterator[Difference]:
        one, other = ours.body, theirs.body
        needs_one, needs_other = ((each or {}).get("required") is True for each in (one, other))
        if needs_other and not needs_one:
            yield Difference("breaking", where, "required: the contract requires a body, SDK and mock do not")
        elif one is not None and other is None:
            yield Difference("breaking", where, "The contract has no request body.")
        elif one is None and other is not None:
            yield Difference("added", where, "The contract allows a request body.")
        elif needs_one and not needs_other:
            yield Difference("mock differs", where, "required: the contract does not require a body, the mock does")
        if one is not None and other is not None:
            media = ours.schemas(one, where), theirs.schemas(other, where)
            yield from self._compare_media("request", *media, where)

    def _compare_media(
        self, direction: Direction, ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str
    ) -> Iterator[Difference]:
        """Iterate over the differences of two bodies. The SDK sends one media type, and decodes any JSON."""
        others = [each for each in theirs if direction == "response" and each.endswith("+json")]
        name = next((each for each in (*_JSON_TYPES, *others) if each in theirs), None)
        if name is None or name in others:
            class_: DifferenceClass = "breaking" if name is None else "mock differs"
            yield Difference(class_, where, changed("media type", [documents.JSON], theirs))
        if name is None:
            return
        for each in theirs.keys() - {*_JSON_TYPES, name}:
            yield Difference("added", where, f"media type: the contract also has {each}")
        yield from self._comparers[direction].compare(ours[documents.JSON], theirs[name], where)

    def _compare_responses(self, ours: documents.Operation, theirs: documents.Operation) -> Iterator[Difference]:
        one, other = ours.responses, theirs.responses
        successes = [each for each in other if each.startswith("2")]
        for status, response in one.items():
            where = f"{ours.where} response {status}"
            # A document may have a status of its own for success, such as 201, which the SDK accepts as well.
            names = (status, f"{status[0]}XX", "DEFAULT", *(successes if status == _SUCCESS else ()))
            name = next((each for each in names if each in other), None)
            if name is None:
                class_: DifferenceClass = "breaking" if status == _SUCCESS else "mock differs"
                yield Difference(class_, where, "The contract does not have this status; the mock does.")
                continue
            if name not in names[:3]:
                where = f"{ours.where} response {name}"
                yield Difference(
                    "mock differs", where, f"The contract has this status for success, the mock has {status}."
                )
            media = ours.schemas(response, where), theirs.schemas(other[name], where)
            yield from self._compare_media("response", *media, f"{where} body")
            yield from compare_texts({"description": response.get("description")}, other[name], where)
            successes = [each for each in successes if each != name]
        for status in other:
            where = f"{ours.where} response {status}"
            if status.isdecimal() and status not in one and (status in successes or status[0] != "2"):
                yield Difference("added", where, "The contract has this new status.")
            if status in successes and _SUCCESS in one:
                media = ours.schemas(one[_SUCCESS], where), theirs.schemas(other[status], where)
                yield from self._compare_media("response", *media, f"{where} body")

    def _compare_webhooks(self) -> Iterator[Difference]:
        """Compare the webhooks. One contract may describe all types in one, another one each type in its own."""
        (webhook,) = documents.webhooks(self._ours)
        found = documents.webhooks(self._theirs)
        if not found:
            yield Difference("wording", "webhooks", "The contract does not describe webhooks.")
            return
        bodies = []
        for each in found:
            yield from self._compare_parameters("response", webhook, each, "header", f"{each.where} header")
            schemas = each.schemas(each.body or {}, each.where)
            bodies += [schemas[name] for name in _JSON_TYPES if name in schemas][:1]
        if bodies:
            ours = webhook.schemas(webhook.body or {}, webhook.where)[documents.JSON]
            schema = bodies[0] if len(bodies) == 1 else {"anyOf": bodies}
            yield from self._comparers["response"].compare(ours, schema, "webhook body")
        else:
            yield Difference("breaking", "webhook body", "The contract describes no JSON body.")


def _info(raw: documents.Raw) -> dict[str, Any]:
    info = raw.object(raw.document.get("info"), "info")
    return {name: info.get(name) for name in ("title", "version", "description")}


def _object_of(
    parameters: Mapping[str, dict[str, Any]], names: Mapping[str, str], raw: documents.Raw
) -> dict[str, Any]:
    """Return the schema of the parameters in one place as one object. No side accepts unknown parameters."""
    return {
        "type": "object",
        "properties": {names[key]: _parameter_schema(each, raw) for key, each in parameters.items()},
        "required": [
            names[key] for key, each in parameters.items() if each.get("in") == "path" or each.get("required") is True
        ],
        "additionalProperties": False,
    }


def _parameter_schema(parameter: dict[str, Any], raw: documents.Raw) -> dict[str, Any]:
    schema = raw.object(parameter.get("schema"), "parameters")
    for union in schema.keys() & {"anyOf", "oneOf"}:
        members = raw.list(schema[union], "parameters")
        schema = {**schema, union: [_as_text(raw.object(each, "parameters")) for each in members]}
    return {"allOf": [_as_text(schema), _IN_TEXT], "description": parameter.get("description", "")}


def _as_text(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the texts of a boolean instead of a boolean."""
    is_boolean = schema.get("type") in ("boolean", ["boolean"])
    return {**schema, "type": "string", "enum": ["true", "false"]} if is_boolean else schema


def _compare_security(ours: list[list[str]], theirs: list[list[str]], where: str) -> Iterator[Difference]:
    if not theirs or [] in theirs:
        yield Difference("mock differs", where, "The contract needs no API key; the mock does.")
    elif [documents.BEARER] not in theirs:
        yield Difference("breaking", where, changed("credentials", map(" and ".join, ours), map(" and ".join, theirs)))
