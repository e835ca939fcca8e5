"""Compares the responses of two operations: statuses, bodies and headers."""

from collections.abc import Iterator
from typing import Any

from followup_mockserver.judge.drift.comparer import Comparer
from followup_mockserver.judge.drift.contracts import Operation, Response
from followup_mockserver.judge.drift.differences import Difference, DifferenceClass
from followup_mockserver.judge.drift.media import JSON
from followup_mockserver.judge.drift.samples import NoSampleError, sample
from followup_mockserver.judge.drift.schemas import Schema, Schemas
from followup_mockserver.judge.drift.texts import compare_texts

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
        return Difference(
            class_="breaking", where=where, detail="The contract has no response for success.", witness={"status": 200}
        )
    body = None if response.media.json is None else _sample(response.media.json, schemas)
    witness = {"status": int(status), "body": body}
    detail = "The contract does not have this status; the mock responds with it."
    return Difference(class_="mock differs", where=where, detail=detail, witness=witness)


def _compare_new(comparer: Comparer, ours: Operation, theirs: Operation, schemas: Schemas) -> Iterator[Difference]:
    has_ours = _response(theirs, _SUCCESS) is not None
    for status, response in theirs.responses.items():
        if status in ours.responses or not status.isdecimal():
            continue
        where = f"{ours.where} response {status}"
        witness: Any = {"status": int(status)}
        if status not in _successes(theirs):
            yield Difference(class_="added", where=where, detail="The contract has this new status.", witness=witness)
            continue
        class_: DifferenceClass = "added" if has_ours else "mock differs"
        also = "also " if has_ours else ""
        detail = f"The contract {also}has the status {status} for success, the mock responds with 200."
        if response.media.json is not None:
            witness["body"] = _sample(response.media.json, schemas)
        yield Difference(class_=class_, where=where, detail=detail, witness=witness)
        yield from _compare_bodies(comparer, ours.responses[_SUCCESS], response, where)


def _compare_bodies(comparer: Comparer, ours: Response, theirs: Response, where: str) -> Iterator[Difference]:
    assert ours.media.json is not None
    where = f"{where} body"
    schema: Schema | None = theirs.media.json
    if schema is None and theirs.media.other_json is not None:
        name, schema = theirs.media.other_json  # the SDK decodes any JSON
        detail = f"media type: {name} in the contract, {JSON} in the mock"
        yield Difference(class_="mock differs", where=where, detail=detail, witness={"Content-Type": JSON})
    if schema is None:
        listed = ", ".join(theirs.media.schemas)
        problem = (
            f"The contract has a body of {listed} instead of JSON." if listed else "The contract describes no body."
        )
        witness = {"Content-Type": next(iter(theirs.media.schemas))} if listed else ""
        yield Difference(class_="breaking", where=where, detail=problem, witness=witness)
        return
    if theirs.media.json is not None:
        for name in theirs.media.others:
            detail = f"media type: the contract also has {name}"
            yield Difference(class_="added", where=where, detail=detail, witness={"Content-Type": name})
    yield from comparer.compare("response", ours.media.json, schema, where)


def _compare_headers(ours: Response, theirs: Response, where: str) -> Iterator[Difference]:
    """Compare the names of the headers. The SDK needs none of them, and reads them leniently."""
    for key in ours.headers.keys() - theirs.headers.keys():
        detail = "The contract does not describe this header; the SDK does not need it."
        yield Difference(class_="wording", where=f"{where} header.{ours.headers[key]}", detail=detail)
    for key in theirs.headers.keys() - ours.headers.keys():
        detail = "The contract has this new header."
        yield Difference(
            class_="added",
            where=f"{where} header.{theirs.headers[key]}",
            detail=detail,
            witness={theirs.headers[key]: "…"},
        )


def _sample(schema: Schema, schemas: Schemas) -> Any:
    try:
        return sample(schema, schemas)
    except NoSampleError:
        return None
