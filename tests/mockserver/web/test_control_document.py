"""The OpenAPI document of the control API: complete, valid, and true for each call and its example."""

import re
from typing import Any

import httpx
import jsonschema_rs
import pytest
from openapi_spec_validator import validate
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport

DOCUMENT: dict[str, Any] = (
    httpx.Client(transport=InProcessTransport(MockService().app), base_url="http://mock")
    .get("/_mock/openapi.json")
    .raise_for_status()
    .json()
)

CALLS = {
    f"{method.upper()} {path}": (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
each_call = pytest.mark.parametrize(("method", "path", "operation"), CALLS.values(), ids=CALLS)


def test_the_document_is_valid() -> None:
    validate(DOCUMENT)
    assert DOCUMENT["openapi"] == "3.1.0"


def test_every_route_is_documented_and_no_other() -> None:
    routes = {
        f"{method} {re.sub('<[^>]+>', '{}', rule.rule)}"
        for rule in MockService().app.url_map.iter_rules()
        if rule.endpoint.startswith("control.")
        for method in rule.methods or ()
        if method not in ("HEAD", "OPTIONS")
    }
    assert {re.sub(r"\{\w+\}", "{}", name) for name in CALLS} == routes


@pytest.fixture
def ids(service: MockService, client: FollowUp) -> dict[str, str]:
    """The ids of existing objects, by the name of the route's group."""
    service.mount("https://clinic.example/hooks", lambda request: httpx.Response(204))
    endpoint = client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
    appointment = client.appointments.create(patient={"phone": "+54 9 11 5555-0000"}, start_at="2030-01-01T10:00:00Z")
    intake = client.intake_requests.create(
        patient={"dni": "30123456", "full_name": "Ana", "phone": "+5491155550000"},
        coverage={"insurer": "Salud Sur"},
        address="Calle 1",
        requested_service="home nursing",
    )
    service.advance()
    return {
        "api_keys": service.add_api_key(name="other").value,
        "appointments": appointment.id,
        "doctors": client.doctors.list().data[0].id,
        "explain": appointment.id,
        "timeline": appointment.id,
        "faults": service.add_fault(operation="*", kind="delay", seconds=0.001).id,
        "intake_requests": intake.id,
        "patients": appointment.patient,
        "webhook_deliveries": service.deliveries[0].id,
        "webhook_endpoints": endpoint.id,
    }


@each_call
def test_every_example_gets_the_documented_response(
    api: Api, ids: dict[str, str], method: str, path: str, operation: dict[str, Any]
) -> None:
    path = re.sub(r"\{\w+\}", lambda _: ids[path.split("/")[2]], path)
    body = example_of(operation)
    if path == "/_mock/snapshot" and method == "PUT":
        body = api.get(path).json()
    query = {each["name"]: each["schema"]["default"] for each in operation["parameters"] if "default" in each["schema"]}
    response = api.request(method, path, json=body, params=query)
    assert response.status_code == 200, response.text
    check(operation["responses"]["200"], response)


@each_call
def test_an_unknown_field_is_rejected_as_documented(
    api: Api, ids: dict[str, str], method: str, path: str, operation: dict[str, Any]
) -> None:
    if path in ("/_mock/health", "/_mock/openapi.json"):
        return  # they have no input, and ignore any
    path = re.sub(r"\{\w+\}", lambda _: ids[path.split("/")[2]], path)
    body = {**(example_of(operation) or {}), "unknown": 1}
    sent = {"params": {"unknown": "1"}} if method in ("GET", "PUT") else {"json": body}
    response = api.request(method, path, **sent)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "unknown")
    check(operation["responses"]["default"], response)


def example_of(operation: dict[str, Any]) -> Any:
    return operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")


OPTIONAL = {"secret", "ignoredKeys", "changedDuplicates", "possibleDuplicateOf"}


def check(described: dict[str, Any], response: httpx.Response) -> None:
    """Assert that the document describes a response, and all of its fields."""
    schema = {**described["content"]["application/json"]["schema"], "components": DOCUMENT["components"]}
    errors = [str(each) for each in jsonschema_rs.Draft202012Validator(schema).iter_errors(response.json())]
    assert errors == []
    for item in items_in(response.json()):
        properties, required = fields_of(schema)
        assert not properties or item.keys() == properties - (OPTIONAL - item.keys())
        assert properties - required <= OPTIONAL


def items_in(body: Any) -> list[dict[str, Any]]:
    return body["data"] if isinstance(body, dict) and isinstance(body.get("data"), list) else [body]


def fields_of(schema: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Return the names of the fields of an object or of the items of a list, and of those that are always there."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    properties = schema.get("properties", {})
    if "items" in properties.get("data", {}):
        return fields_of(properties["data"]["items"])
    return set(properties), set(schema.get("required", ()))
