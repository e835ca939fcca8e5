"""Compares a contract document with the contract that SDK and mock implement."""

import functools
from collections.abc import Iterator
from typing import Any

from followup_mockserver.contract.openapi import document as our_document
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.judge.drift.contracts import Contract, Operation, blank
from followup_mockserver.judge.drift.differences import Difference, Report
from followup_mockserver.judge.drift.operations import (
    Comparer,
    compare_body,
    compare_parameters,
    compare_place,
    compare_responses,
    compare_security,
    example_path,
)
from followup_mockserver.judge.drift.parts import compare_texts
from followup_mockserver.judge.drift.reading import DocumentError
from followup_mockserver.judge.drift.schemas import Schema


def compare_document(document: dict[str, Any]) -> Report:
    """Compare a contract document with the contract that SDK and mock implement.

    Args:
        document: an OpenAPI document, 3.0 or later.

    Returns:
        The differences, with a witness for each.

    Raises:
        DocumentError: the document is malformed.
    """
    try:
        return Report.of(_differences(_our_contract(), Contract(document, _known_paths())))
    except RecursionError:
        raise DocumentError("its references are nested too deeply") from None


@functools.cache
def _our_contract() -> Contract:
    return Contract(our_document(), _known_paths())


def _known_paths() -> set[str]:
    return {blank(operation.path) for operation in OPERATIONS.values()}


def _differences(ours: Contract, theirs: Contract) -> Iterator[Difference]:
    comparer = Comparer(ours, theirs)
    yield from compare_texts(_info(ours), _info(theirs), "info")
    for key, operation in ours.operations.items():
        other = theirs.operations.get(key)
        if other is None:
            detail = "The contract does not have this operation."
            yield Difference("breaking", operation.where, detail, _request(operation))
            continue
        yield from compare_texts(operation.texts, other.texts, operation.where)
        yield from compare_security(operation, other)
        yield from compare_parameters(comparer, operation, other)
        yield from compare_body(comparer, operation, other, theirs.requests)
        yield from compare_responses(comparer, operation, other, (ours.responses, theirs.responses))
    for key, operation in theirs.operations.items():
        if key not in ours.operations:
            detail = "The contract has this new operation."
            yield Difference("added", operation.where, detail, _request(operation))
    yield from _compare_webhooks(comparer, ours, theirs)


def _request(operation: Operation) -> dict[str, str]:
    return {"method": operation.method, "path": example_path(operation)}


def _info(contract: Contract) -> dict[str, Any]:
    info = contract.raw.object(contract.raw.document.get("info"), "info")
    return {name: info.get(name) for name in ("title", "version", "description")}


def _compare_webhooks(comparer: Comparer, ours: Contract, theirs: Contract) -> Iterator[Difference]:
    """Compare the webhooks. One contract may describe all types in one webhook, another one each type in its own."""
    (webhook,) = ours.webhooks.values()
    if not theirs.webhooks:
        yield Difference("wording", "webhooks", "The contract does not describe webhooks.")
        return
    bodies: list[Schema] = []
    for name, each in theirs.webhooks.items():
        yield from compare_place(comparer, "response", webhook, each, "header", f"webhook {name} header")
        if each.body is not None and each.body.media.json is not None:
            bodies.append(each.body.media.json)
    assert webhook.body is not None
    assert webhook.body.media.json is not None
    if bodies:
        yield from comparer.compare("response", webhook.body.media.json, _union(bodies), "webhook body")
    else:
        yield Difference("breaking", "webhook body", "The contract describes no JSON body.", "")


def _union(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
