"""The SDK's operations and result classes are those of the specification (sections 2 and 4), on both clients."""

import asyncio
import inspect
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import attrs
import httpx
import pytest
from contract import specification as spec
from contract.samples import object_of, path_of, snake, snake_keys, value_of
from contract.specification import Field, Operation, Type

import followup
from followup import AsyncFollowUp, AsyncPage, FollowUp, Page, WebhookEvent

each_operation = pytest.mark.parametrize("operation", spec.OPERATIONS, ids=lambda operation: operation.name)
each_result = pytest.mark.parametrize("name", spec.RESULTS)
both_clients = pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])

OPTIONS: Any = {"api_key": "k", "base_url": "https://service.example", "max_retries": 0}


def method_of(client: Any, operation: Operation) -> Any:
    group, method = operation.name.split(".")
    return getattr(getattr(client, group), method)


def parameters_of(operation: Operation) -> tuple[Field, ...]:
    return operation.query or operation.body


@both_clients
@each_operation
def test_section_4_an_operation_takes_the_parameters_of_its_row(kind: type[Any], operation: Operation) -> None:
    signature = inspect.signature(method_of(kind(**OPTIONS), operation))
    expected = {"id": "positional, required"} if operation.id else {}
    expected |= {
        snake(each.name): "keyword, required" if each.required else "keyword, optional"
        for each in parameters_of(operation)
    }
    if operation.whole_body:
        expected["events"] = "positional, required"
    if operation.idem:
        expected["idempotency_key"] = "keyword, optional"
    assert {name: place(each) for name, each in signature.parameters.items()} == expected


def place(parameter: inspect.Parameter) -> str:
    keyword = "keyword" if parameter.kind is inspect.Parameter.KEYWORD_ONLY else "positional"
    return f"{keyword}, {'required' if parameter.default is inspect.Parameter.empty else 'optional'}"


@both_clients
@each_operation
def test_section_4_a_call_is_the_request_and_the_result_of_its_row(kind: type[Any], operation: Operation) -> None:
    # The two cursors exclude each other.
    sent = object_of(each for each in parameters_of(operation) if each.name != "endingBefore")
    event = object_of(spec.EVENT.fields)
    if operation.whole_body:
        call = snake_keys(event, spec.EVENT)
        request, result = one_call(kind, operation, [call], {})
    else:
        types = {each.name: each.type for each in parameters_of(operation)}
        arguments = {snake(name): snake_keys(value, types[name]) for name, value in sent.items()}
        request, result = one_call(kind, operation, [f"{operation.id}1"] if operation.id else [], arguments)
    assert request.method == operation.method
    assert request.url.path == path_of(operation)
    query = dict(parse_qsl(request.url.query.decode()))
    assert query == ({name: on_the_query(value) for name, value in sent.items()} if operation.query else {})
    if operation.body or operation.whole_body:
        assert json.loads(request.content) == (event if operation.whole_body else sent)
        assert request.headers["content-type"] == "application/json"
    else:
        assert request.content == b""
    assert (spec.IDEMPOTENCY_HEADER in request.headers) is operation.idem
    assert request.headers[spec.VERSION_HEADER] == spec.SERVICE_VERSION
    assert request.headers["authorization"] == "Bearer k"
    if operation.list_of:
        assert type(result) is (Page if kind is FollowUp else AsyncPage)
        (result,) = result.data
    assert type(result).__name__ == (operation.returns or operation.list_of)


@each_operation
def test_section_4_a_list_begins_before_an_id(operation: Operation) -> None:
    if operation.list_of:
        cursor = value_of(next(each for each in operation.query if each.name == "endingBefore"))
        request, _ = one_call(FollowUp, operation, [], {"ending_before": cursor})
        assert request.url.query.decode() == f"endingBefore={cursor}"


def on_the_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def one_call(
    kind: type[Any], operation: Operation, args: list[Any], arguments: dict[str, Any]
) -> tuple[httpx.Request, Any]:
    """Call an operation, and return its request and its result."""
    requests: list[httpx.Request] = []
    result = object_of(spec.RESULTS[operation.returns or operation.list_of])
    if operation.id and "id" in result:
        result["id"] = args[0] if operation.returns != "WebhookDelivery" or operation.id == "whd_" else "whd_1"

    def respond(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        page = {"object": "list", "data": [result], "hasMore": False, "url": operation.path}
        return httpx.Response(200, json=page if operation.list_of else result)

    transport = httpx.MockTransport(respond)
    if kind is FollowUp:
        with httpx.Client(transport=transport) as http:
            returned = method_of(FollowUp(**OPTIONS, http_client=http), operation)(*args, **arguments)
    else:

        async def call() -> Any:
            async with httpx.AsyncClient(transport=transport) as http:
                return await method_of(AsyncFollowUp(**OPTIONS, http_client=http), operation)(*args, **arguments)

        returned = asyncio.run(call())
    (request,) = requests
    return request, returned


@each_result
def test_section_2_a_result_has_the_fields_of_its_table(name: str) -> None:
    fields = spec.RESULTS[name]
    wire = body_of(name)
    decoded = decode(name, wire)
    for path, field, at, value in walk(fields, decoded, wire):
        assert getattr(at, snake(field.name)) == in_python(value, field.type), path
        assert not at.extra, path


@each_result
def test_section_2_what_may_be_null_arrives_as_none(name: str) -> None:
    fields = spec.RESULTS[name]
    wire = body_of(name) | {field.name: None for field in fields if field.nullable}
    decoded = decode(name, wire)
    for field in fields:
        if field.nullable:
            assert getattr(decoded, snake(field.name)) is None


@each_result
def test_section_2_the_enums_are_literals_with_the_values_of_their_tables(name: str) -> None:
    assert_literals(getattr(followup, name), spec.RESULTS[name])


def test_section_6_2_the_type_of_a_webhook_event_is_one_of_13() -> None:
    assert len(spec.OUTBOUND_TYPES) == 13
    assert_literals(WebhookEvent, spec.WEBHOOK_BODY)
    assert {field.name for field in attrs.fields(WebhookEvent)} >= {snake(field.name) for field in spec.WEBHOOK_BODY}


def assert_literals(cls: type[Any], fields: tuple[Field, ...]) -> None:
    hints = get_type_hints(cls)
    for field in fields:
        narrowed = field.type.items or field.type
        if narrowed.values:
            assert set(literals(hints[snake(field.name)])) == set(narrowed.values), field.name


def literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for inner in get_args(annotation):
            yield from literals(inner)


def body_of(name: str) -> dict[str, Any]:
    """Return a result on the wire, with the id that it is retrieved by."""
    body = object_of(spec.RESULTS[name])
    return body | {"id": "we_1"} if name == "DeletedObject" else body


def decode(name: str, wire: dict[str, Any]) -> Any:
    """Return a result as the SDK decodes it from the response of an operation that returns it, or a list of it."""
    rows = [each for each in spec.OPERATIONS if name in (each.returns, each.list_of)]
    operation = min(rows, key=lambda row: (row.method != "GET", bool(row.id)))
    body = {"object": "list", "data": [wire], "hasMore": False, "url": ""} if operation.list_of else wire
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    with httpx.Client(transport=transport) as http:
        call = method_of(FollowUp(**OPTIONS, http_client=http), operation)
        if operation.whole_body:
            return call(snake_keys(object_of(spec.EVENT.fields), spec.EVENT))
        result = call(wire["id"]) if operation.id else call()
        return result.data[0] if operation.list_of else result


def walk(fields: tuple[Field, ...], decoded: Any, wire: Any, path: str = "") -> Iterator[tuple[str, Field, Any, Any]]:
    """Iterate over the leaves of a result: path, field, object, and value on the wire."""
    for field in fields:
        inner = (field.type.items or field.type).fields
        if not inner:
            yield f"{path}{field.name}", field, decoded, wire[field.name]
            continue
        attribute, value = getattr(decoded, snake(field.name)), wire[field.name]
        if field.type.items:
            attribute, value = attribute[0], value[0]
        yield from walk(inner, attribute, value, f"{path}{field.name}.")


def in_python(value: Any, type: Type) -> Any:
    match type.format:
        case "date-time":
            return datetime(2026, 10, 1, 10, tzinfo=UTC)
        case "date":
            return date(1980, 5, 17)
    return value
