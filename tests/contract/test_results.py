"""The mock's responses have exactly the fields of the specification's tables (section 2)."""

import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pytest
from contract import specification as spec
from contract.live import LiveService
from contract.specification import Field, Operation, Type

each_operation = pytest.mark.parametrize("operation", spec.OPERATIONS, ids=lambda operation: operation.name)


@each_operation
def test_section_2_the_fields_of_a_response(live: LiveService, operation: Operation) -> None:
    body = live.send(operation).json()
    if operation.list_of:
        assert (set(body), body["object"], body["url"]) == (set(spec.LIST_ENVELOPE), "list", operation.path)
        assert body["data"]
    fields = spec.RESULTS[operation.returns or operation.list_of]
    for result in body["data"] if operation.list_of else [body]:
        assert [*problems(result, fields, at_creation=operation.name == "webhook_endpoints.create")] == []


def test_section_4_the_fields_of_a_response_with_all_of_the_request(live: LiveService) -> None:
    for operation in spec.OPERATIONS:
        if operation.method == "POST" and operation.body_required and not operation.whole_body:
            result = live.send(operation, live.values(operation.body)).json()
            at_creation = operation.name == "webhook_endpoints.create"
            assert [*problems(result, spec.RESULTS[operation.returns], at_creation=at_creation)] == []
            for field in operation.body:
                if field.name in result and field.type.json == "string" and not field.type.format:
                    assert result[field.name] is not None, f"{operation.name} {field.name}"


def test_section_2_the_secret_is_shown_at_creation_alone(live: LiveService) -> None:
    create = next(each for each in spec.OPERATIONS if each.name == "webhook_endpoints.create")
    created = live.send(create).json()
    assert created["secret"].startswith(spec.SECRET_PREFIX)
    for operation in spec.OPERATIONS:
        if operation.name != create.name:
            assert created["secret"] not in live.send(operation).text


def test_section_4_results_of_events_name_what_they_made(live: LiveService) -> None:
    operation = next(each for each in spec.OPERATIONS if each.name == "events.create")
    made = live.send(operation, [live.event(each, id=each) for each in spec.INBOUND_TYPES]).json()
    assert [*problems(made, spec.RESULTS["EventBatch"])] == []
    assert [each["id"] for each in made["results"]] == [*spec.INBOUND_TYPES]
    for each in made["results"]:
        stored = live.api.get(f"/v1/events/{each['event']}").json()
        assert [*problems(stored, spec.RESULTS["Event"])] == []
        assert (stored["type"], stored["sourceRef"], stored["result"]) == (each["id"], each["id"], each["result"])


def problems(value: Any, fields: tuple[Field, ...], *, path: str = "", at_creation: bool = False) -> Iterator[str]:
    """Return the differences between an object of a response and its table."""
    expected = {field.name for field in fields if field.required or (at_creation and field.name == "secret")}
    if set(value) != expected:
        yield f"{path or 'the object'} has {sorted(value)}, not {sorted(expected)}"
        return
    for field in fields:
        if field.name not in value or (field.nullable and value[field.name] is None):
            continue
        yield from problems_of_type(value[field.name], field.type, f"{path}{field.name}")


PYTHON_TYPES: dict[str, type] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "object": dict,
    "array": list,
}
UTC_WITH_MILLISECONDS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def problems_of_type(value: Any, expected: Type, path: str) -> Iterator[str]:
    if type(value) is not PYTHON_TYPES[expected.json]:
        yield f"{path} is {value!r}, not of type {expected.json}"
        return
    if expected.values and value not in expected.values:
        yield f"{path} is {value!r}, not one of {expected.values}"
    if expected.prefix and not re.fullmatch(f"{expected.prefix}.+", value):
        yield f"{path} is {value!r}, which does not begin with {expected.prefix}"
    if expected.format == "date-time":
        datetime.fromisoformat(value)
        if not UTC_WITH_MILLISECONDS.fullmatch(value):
            yield f"{path} is {value!r}, not in UTC with milliseconds"
    if expected.format == "date":
        date.fromisoformat(value)
    if expected.items:
        for position, item in enumerate(value):
            yield from problems_of_type(item, expected.items, f"{path}[{position}]")
    if expected.fields:
        yield from problems(value, expected.fields, path=f"{path}.")
