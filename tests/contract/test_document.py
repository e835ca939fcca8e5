"""The OpenAPI document of the mock agrees with the specification."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from contract import specification as spec
from contract.specification import Field, Operation, Type
from openapi_spec_validator import OpenAPIV31SpecValidator
from support.http import Api

from followup import WebhookSignatureError, verify_signature
from followup_mockserver import MockServer, MockService
from followup_mockserver.service import InProcessTransport

Document = dict[str, Any]
Schema = dict[str, Any]

each_operation = pytest.mark.parametrize("operation", spec.OPERATIONS, ids=lambda operation: operation.name)


@pytest.fixture(scope="module")
def document() -> Document:
    service = MockService()
    with httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url) as http:
        served: Document = http.get(spec.CONTRACT_PATH).json()
    return served


def described(document: Document, operation: Operation) -> Document:
    found: Document = document["paths"][operation.path][operation.method.lower()]
    return found


def test_section_9_it_is_valid_openapi_3_1_of_the_current_version(document: Document) -> None:
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["version"] == spec.SERVICE_VERSION


def test_section_4_it_has_the_32_operations_and_no_other(document: Document) -> None:
    assert {
        (each["operationId"], method.upper(), path)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    } == {(each.name, each.method, each.path) for each in spec.OPERATIONS}


@each_operation
def test_sections_4_5_and_7_scope_parameters_and_errors_of_an_operation(
    document: Document, operation: Operation
) -> None:
    found = described(document, operation)
    assert found.get("x-scope") == operation.scope
    assert found.get("x-service-line") == (spec.FOLLOW_UP if operation.line else None)
    path = [Field("id", spec.an_id(operation.id))] if operation.id else []
    assert parameters(found["parameters"], "path", document) == normal(path)
    assert parameters(found["parameters"], "query", document) == normal(operation.query)
    headers = {each["name"]: each for each in found["parameters"] if each["in"] == "header"}
    assert set(headers) == {spec.VERSION_HEADER} | ({spec.IDEMPOTENCY_HEADER} if operation.idem else set())
    assert not any(each.get("required") for each in headers.values())
    assert headers[spec.VERSION_HEADER]["schema"]["enum"] == [spec.SERVICE_VERSION]
    applies = {"403": operation.scope, "404": operation.id, "409": operation.idem}
    statuses = {"400", "401", "429", "500", *(status for status, applied in applies.items() if applied)}
    assert statuses <= set(found["responses"])
    assert "Retry-After" in found["responses"]["429"]["headers"]


NULLABLE = {
    "patients.update": {"fullName", "email", "dni", "externalId", "dateOfBirth"},
    "appointments.update": {"doctor", "type"},
    "webhook_endpoints.update": {"description"},
}
"""The fields of bodies that may be null: only those that an update can empty."""


@each_operation
def test_section_4_body_of_an_operation(document: Document, operation: Operation) -> None:
    found = described(document, operation).get("requestBody")
    if not operation.body and not operation.whole_body:
        assert found is None
        return
    assert found["required"] is operation.body_required
    schema = found["content"]["application/json"]["schema"]
    nullable = NULLABLE.get(operation.name, ())
    fields = (each._replace(nullable=each.name in nullable) for each in operation.body)
    expected = operation.whole_body or spec.an_object(*fields)
    assert read_type(schema, document) == normal_type(expected)


@each_operation
def test_section_4_response_of_an_operation(document: Document, operation: Operation) -> None:
    success = described(document, operation)["responses"]["200"]
    schema = success["content"]["application/json"]["schema"]
    if operation.list_of:
        assert set(schema["required"]) == set(schema["properties"]) == set(spec.LIST_ENVELOPE)
        assert schema["properties"]["object"]["const"] == "list"
        assert schema["properties"]["url"]["const"] == operation.path
        schema = schema["properties"]["data"]["items"]
    assert schema == {"$ref": f"#/components/schemas/{operation.returns or operation.list_of}"}
    assert {spec.REQUEST_ID_HEADER, spec.VERSION_HEADER} <= set(success["headers"])


@pytest.mark.parametrize("name", spec.RESULTS)
def test_section_2_fields_of_a_result(document: Document, name: str) -> None:
    schema = document["components"]["schemas"][name]
    assert read_type(schema, document) == normal_type(spec.an_object(*spec.RESULTS[name]))


@pytest.mark.parametrize(
    "path", ["/v1/patients", "/v1/appointments", "/v1/visits", "/v1/intake_requests", "/v1/treatments", "/v1/events"]
)
def test_the_examples_are_accepted(api: Api, document: Document, path: str) -> None:
    # The example of a visit names the appointment of the other example.
    for each in ("/v1/appointments", path) if path == "/v1/visits" else (path,):
        example = document["paths"][each]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert api.post(each, example).status_code == 200


def test_section_6_2_body_and_headers_of_a_webhook(document: Document) -> None:
    (webhook,) = document["webhooks"].values()
    schema = webhook["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert read_type(schema, document) == normal_type(spec.an_object(*spec.WEBHOOK_BODY))
    headers = {each["name"].lower(): each for each in webhook["post"]["parameters"]}
    assert set(headers) == set(spec.WEBHOOK_HEADERS)
    assert all(each["in"] == "header" and each["required"] for each in headers.values())
    assert headers["user-agent"]["schema"]["const"] == spec.WEBHOOK_USER_AGENT
    assert headers["x-service-event-type"]["schema"]["enum"] == [*spec.OUTBOUND_TYPES]


def test_section_6_2_the_document_alone_states_the_duty_of_a_receiver(document: Document) -> None:
    (webhook,) = document["webhooks"].values()
    duty = webhook["post"]["description"]
    waits = ["none", "1 min", "5 min", "30 min", "2 h", "5 h", "10 h", "1 d", "1 d"]
    assert re.findall(r"^\| (\d) \| (.*) \|$", duty, re.MULTILINE) == [
        (str(at), each) for at, each in enumerate(waits, 1)
    ]


def test_no_text_of_the_document_is_for_python_alone(document: Document) -> None:
    words = r"``|\b(datetime|None|True|False|snake_case|kwargs|dict|iterable|[Ss]pecification)\b|(matches|is) null"
    texts = re.findall(r'"(?:description|summary)": "(.*?)(?<!\\)"', json.dumps(document, ensure_ascii=False))
    assert len(texts) > 400
    assert [each for each in texts if re.search(words, each)] == []


def test_section_6_2_the_test_vectors_of_the_document_are_right(document: Document) -> None:
    (webhook,) = document["webhooks"].values()
    vectors = webhook["post"]["x-signature-test-vectors"]["vectors"]
    assert {each["valid"] for each in vectors} == {True, False}
    for each in vectors:
        body, timestamp, signature = each["body"].encode(), each["timestamp"], each["signature"]
        signed = hmac.new(each["secret"].encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        fresh = re.fullmatch("[0-9]+", timestamp) is not None and abs(int(timestamp) - each["now"]) <= 300
        assert each["valid"] == (fresh and signature == f"sha256={signed}"), each["name"]
        headers = {"x-service-timestamp": timestamp, "x-service-signature": signature}
        try:
            verify_signature(body, headers, each["secret"], now=each["now"])
        except WebhookSignatureError:
            assert not each["valid"], each["name"]
        else:
            assert each["valid"], each["name"]


def test_section_8_limits(document: Document) -> None:
    for each in spec.OPERATIONS:
        if each.list_of:
            (limit,) = (one for one in described(document, each)["parameters"] if one["name"] == "limit")
            assert limit["schema"]["minimum"] == spec.SMALLEST_PAGE
            assert limit["schema"]["maximum"] == spec.LARGEST_PAGE
            assert limit["schema"]["default"] == spec.DEFAULT_PAGE
    events = document["paths"]["/v1/events"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    arrays = [each for each in walk(events, document) if each.get("type") == "array"]
    assert {(each["minItems"], each["maxItems"]) for each in arrays} == {(1, spec.EVENTS_PER_BATCH)}


def test_an_endpoint_has_at_least_one_event(document: Document) -> None:
    for path, method in (("/v1/webhook_endpoints", "post"), ("/v1/webhook_endpoints/{id}", "patch")):
        schema = document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["properties"]["enabledEvents"]["minItems"] == 1


# --- reading the document ------------------------------------------------------------------------------------------


def read_type(schema: Schema, document: Document) -> Type:
    """Return the type that a schema describes."""
    schema = resolved(schema, document)
    arms = [arm for arm in schema.get("anyOf", schema.get("oneOf", [])) if arm != {"type": "null"}]
    if len(arms) > 1:
        return normal_type(spec.either(*(read_type(arm, document) for arm in arms)))
    if arms:
        schema = resolved(arms[0], document)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    (json,) = (kind for kind in kinds if kind != "null")
    values = [schema["const"]] if json == "string" and "const" in schema else schema.get("enum", [])
    prefix = schema.get("pattern", "").removeprefix("^")
    fields = [
        Field(
            name=name,
            type=read_type(each, document),
            nullable=allows_null(each, document),
            required=name in schema.get("required", []),
            default=each.get("default"),
        )
        for name, each in schema.get("properties", {}).items()
    ]
    return Type(
        json=json,
        format=schema.get("format"),
        values=tuple(sorted(value for value in values if value is not None)),
        prefix=prefix if prefix in spec.ID_PREFIXES.values() else None,
        items=read_type(schema["items"], document) if "items" in schema else None,
        fields=normal(fields),
    )


def resolved(schema: Schema, document: Document) -> Schema:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def allows_null(schema: Schema, document: Document) -> bool:
    schema = resolved(schema, document)
    return "null" in schema.get("type", []) or {"type": "null"} in schema.get("anyOf", [])


def parameters(found: list[Document], place: str, document: Document) -> tuple[Field, ...]:
    return normal(
        Field(
            each["name"],
            read_type(each["schema"], document),
            allows_null(each["schema"], document),
            required=each["required"],
            default=each["schema"].get("default"),
        )
        for each in found
        if each["in"] == place
    )


def normal(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return the fields, and the values of their enums, in a fixed order."""
    return tuple(sorted((each._replace(type=normal_type(each.type)) for each in fields), key=lambda each: each.name))


def normal_type(type: Type) -> Type:
    return type._replace(
        values=tuple(sorted(type.values)),
        items=type.items and normal_type(type.items),
        fields=normal(type.fields),
        either=tuple(sorted((normal_type(each) for each in type.either), key=repr)),
    )


def walk(schema: Any, document: Document) -> Iterable[Schema]:
    """Iterate over the schemas inside a schema."""
    if isinstance(schema, dict):
        schema = resolved(schema, document)
        yield schema
        for each in schema.values():
            yield from walk(each, document)
    elif isinstance(schema, list):
        for each in schema:
            yield from walk(each, document)


def test_section_8_an_attempt_has_10_seconds() -> None:
    # That attempts end then is proved with shorter limits; here is the limit that users get.
    assert MockService._attempt_timeout == MockServer._attempt_timeout == spec.WEBHOOK_ATTEMPT_SECONDS
