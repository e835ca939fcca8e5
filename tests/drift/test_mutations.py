"""Changes of our own contract, each with the differences that it must cause: class and place, written by hand."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from drift.documents import Document, component, operation, served_document

from followup_mockserver.lab.contract_check import compare_document

BREAKING = "breaking"
MOCK = "mock differs"
ADDED = "added"
WORDING = "wording"

GONE = object()
"""The part or the keyword is removed."""

Change = Callable[[Any], Any]
"""Returns the new value of a part of the document."""


def requires(name: str, **schema: str) -> Change:
    """Require a field of an object, which is a new one where it has a schema."""
    new = {name: schema} if schema else {}
    return lambda old: old | {"properties": old["properties"] | new, "required": [*old["required"], name]}


def optional(name: str) -> Change:
    """Require a field of an object no more."""
    return lambda old: old | {"required": [each for each in old["required"] if each != name]}


def without(name: str) -> Change:
    """Remove a field of an object."""

    def change(old: Any) -> Any:
        kept = {key: value for key, value in old["properties"].items() if key != name}
        return optional(name)(old) | {"properties": kept}

    return change


def renamed(name: str, new: str) -> Change:
    """Give a part of the document another name."""
    return lambda old: {(new if key == name else key): value for key, value in old.items()}


def with_parameter(name: str, place: str, **more: Any) -> Change:
    """Add a parameter."""
    return lambda old: [*old, {"name": name, "in": place, "schema": {"type": "string"}, **more}]


def smaller_batches(union: Any) -> Any:
    events = {**union[2]["properties"]["events"], "maxItems": 50}
    return [union[0], {**union[1], "maxItems": 50}, {**union[2], "properties": {"events": events}}]


BODY = {"content": {"application/json": {"schema": {"type": "object"}}}}
ACCOUNT = "paths /v1/account get"
SCHEMA = "requestBody content application/json schema"
BOOKED = f"paths /v1/appointments post {SCHEMA} properties patient anyOf"
PATIENT = f"paths /v1/patients post {SCHEMA}"
WEBHOOK = "components schemas WebhookEvent"
PING = "POST /v1/webhook_endpoints/{id}/ping request body"
_EVENTS = [f"POST /v1/events request body{each}.occurredAt" for each in ("[]", ".events[]")]
_SPECIALTIES = [
    "GET /v1/doctors/{id} response 200 body.specialty",
    "GET /v1/doctors response 200 body.data[].specialty",
]

PARTS: list[tuple[str, Any, str, list[str]]] = [
    (PATIENT, requires("consent", type="boolean"), BREAKING, ["POST /v1/patients request body.consent"]),
    (PATIENT, requires("email"), BREAKING, ["POST /v1/patients request body.email"]),
    (f"{PATIENT} properties nickname", {"type": "string"}, ADDED, ["POST /v1/patients request body.nickname"]),
    ("paths /v1/doctors get parameters", with_parameter("clinic", "query", required=True), BREAKING,
     ["GET /v1/doctors request query.clinic"]),
    (f"{ACCOUNT} parameters", with_parameter("session", "cookie", required=True), BREAKING,
     ["GET /v1/account request cookie.session"]),
    ("paths /v1/patients get parameters", with_parameter("stage", "query"), ADDED,
     ["GET /v1/patients request query.stage"]),
    ("paths /v1/patients get parameters dni required", True, BREAKING, ["GET /v1/patients request query.dni"]),
    ("paths /v1/visits post parameters Idempotency-Key", GONE, BREAKING,
     ["POST /v1/visits request header.Idempotency-Key"]),
    (f"{ACCOUNT} parameters Service-Version schema enum", ["2027-01-01"], f"{BREAKING}, {MOCK}",
     ["GET /v1/account request header.Service-Version"]),
    ("components schemas EventInput", requires("occurredAt"), BREAKING, _EVENTS),
    (f"paths /v1/events post {SCHEMA} anyOf", smaller_batches, BREAKING,
     ["POST /v1/events request body", "POST /v1/events request body.events"]),
    (BOOKED, lambda old: [each for each in old if each["type"] == "object"], BREAKING,
     ["POST /v1/appointments request body.patient"]),
    (f"{BOOKED} object properties email pattern", "@clinic[.]example$", BREAKING,
     ["POST /v1/appointments request body.patient.email"]),
    ("components schemas Doctor", without("specialty"), BREAKING, _SPECIALTIES),
    (WEBHOOK, optional("occurredAt"), BREAKING, ["webhook body.occurredAt"]),
    (f"{WEBHOOK} properties type enum", lambda old: [*old, "patient.deleted"], BREAKING, ["webhook body.type"]),
    ("webhooks event post parameters x-service-signature", GONE, BREAKING,
     ["webhook event header.x-service-signature"]),
    ("paths /v1/appointments/{id}/cancel post requestBody required", True, BREAKING,
     ["POST /v1/appointments/{id}/cancel request body"]),
    ("paths /v1/webhook_endpoints/{id}/ping post requestBody", {**BODY, "required": True}, BREAKING, [PING]),
    ("paths /v1/webhook_endpoints/{id}/ping post requestBody", BODY, ADDED, [PING]),
    ("paths /v1/treatments post requestBody", GONE, BREAKING, ["POST /v1/treatments request body"]),
    ("paths /v1/treatments post requestBody content", renamed("application/json", "multipart/form-data"), BREAKING,
     ["POST /v1/treatments request body"]),
    ("paths /v1/treatments post requestBody content",
     lambda old: old | {"application/x-www-form-urlencoded": old["application/json"]}, ADDED,
     ["POST /v1/treatments request body"]),
    ("paths /v1/patients post requestBody required", False, MOCK, ["POST /v1/patients request body"]),
    ("paths /v1/patients post parameters Idempotency-Key required", True, MOCK,
     ["POST /v1/patients request header.Idempotency-Key"]),
    ("paths /v1/patients post responses", renamed("200", "201"), MOCK, ["POST /v1/patients response 201"]),
    ("paths /v1/patients get parameters limit description", "How many.", WORDING,
     ["GET /v1/patients request query.limit"]),
    ("paths /v1/visits get parameters limit schema exclusiveMaximum", True, BREAKING,
     ["GET /v1/visits request query.limit"]),
    ("paths /v1/webhook_endpoints/{id} delete", GONE, BREAKING, ["DELETE /v1/webhook_endpoints/{id}"]),
    ("paths /v1/rooms", {"get": {"responses": {"200": {}}}}, ADDED, ["GET /v1/rooms"]),
    (f"{ACCOUNT} security", [], MOCK, ["GET /v1/account request security"]),
    (f"{ACCOUNT} responses 401 content", renamed("application/json", "application/problem+json"), MOCK,
     ["GET /v1/account response 401 body"]),
    (f"{ACCOUNT} responses 200 content", renamed("application/json", "application/xml"), BREAKING,
     ["GET /v1/account response 200 body"]),
    ("components schemas Account", requires("logo", type="string", format="uri"), ADDED,
     ["GET /v1/account response 200 body.logo"]),
    (f"{ACCOUNT} responses 200 content", GONE, BREAKING, ["GET /v1/account response 200 body"]),
    (f"{ACCOUNT} responses 200", GONE, BREAKING, ["GET /v1/account response 200"]),
    (f"{ACCOUNT} responses 422", {}, ADDED, ["GET /v1/account response 422"]),
    (f"{ACCOUNT} responses 200 description", "It.", WORDING, ["GET /v1/account response 200"]),
    (f"{ACCOUNT} summary", "Who?", WORDING, ["GET /v1/account"]),
    (f"{ACCOUNT} operationId", "getAccount", WORDING, ["GET /v1/account"]),
    (f"{ACCOUNT} tags", ["me"], WORDING, ["GET /v1/account"]),
    (f"{ACCOUNT} deprecated", True, WORDING, ["GET /v1/account"]),
    ("paths /v1/patients post responses 409", GONE, MOCK, ["POST /v1/patients response 409"]),
    ("info title", "Another API", WORDING, ["info"]),
    ("webhooks", GONE, WORDING, ["webhooks"]),
    ("components schemas Account properties serviceLines items enum", lambda old: [*old, "emergency"], BREAKING,
     ["GET /v1/account response 200 body.serviceLines[]"]),
    ("paths /v1/patients/{id} get parameters id schema pattern", "^pat_[A-Za-z0-9]{24}$", BREAKING,
     ["GET /v1/patients/{id} request path.id"]),
]  # fmt: skip
"""Other values of one part of the document: its path, the value, and classes and places of the differences.

A step of a path is a key, or the name or type of an item of a list.
"""


def position(holder: Any, step: str) -> Any:
    """Return the key of a part, or the position of an item by its name or type."""
    if isinstance(holder, dict):
        return step
    return next(number for number, each in enumerate(holder) if step in (each.get("name"), each.get("type")))


def with_part(document: Any, path: str, value: Any) -> None:
    *parents, last = path.split()
    for each in parents:
        document = document[position(document, each)]
    key = position(document, last)
    if value is GONE:
        del document[key]
    else:
        document[key] = value(document[key]) if callable(value) else value


def test_our_own_contract_has_no_differences() -> None:
    assert compare_document(served_document()).differences == ()


def differences(document: Document) -> set[tuple[str, str]]:
    return {(each.class_, each.where) for each in compare_document(document).differences}


@pytest.mark.parametrize(("path", "value", "classes", "places"), PARTS, ids=[f"{each[0]} {each[2]}" for each in PARTS])
def test_a_change_is_reported_in_its_class_and_place(path: str, value: Any, classes: str, places: list[str]) -> None:
    document = served_document()
    with_part(document, path, value)
    assert differences(document) == {*itertools.product(classes.split(", "), places)}
    assert compare_document(document).is_compatible is not any(each in classes for each in (BREAKING, MOCK))


def test_another_method_and_other_credentials() -> None:
    document = served_document()
    with_part(document, "paths /v1/appointments/{id}", renamed("patch", "put"))
    document["components"]["securitySchemes"]["basic"] = {"type": "http", "scheme": "basic"}
    operation(document, "GET /v1/account")["security"] = [{"basic": []}]
    assert differences(document) == {
        (BREAKING, "PATCH /v1/appointments/{id}"),
        (ADDED, "PUT /v1/appointments/{id}"),
        (BREAKING, "GET /v1/account request security"),
    }


def test_every_response_for_success_is_compared() -> None:
    document = served_document()
    with_part(document, f"{ACCOUNT} responses 202", {"description": "Later."})
    assert differences(document) == {
        (ADDED, "GET /v1/account response 202"),
        (BREAKING, "GET /v1/account response 202 body"),
    }


def test_one_type_of_webhook_is_missing() -> None:
    document = served_document()
    schema = component(document, "WebhookEvent")
    schema["oneOf"] = [{"properties": {"type": {"const": each}}} for each in schema["properties"]["type"]["enum"][1:]]
    found = compare_document(document).differences
    assert {each.class_ for each in found} == {MOCK}
    assert {each.where for each in found} == {"webhook body.type"}
    assert {each.detail for each in found} == {'enum: the contract lacks "intake.requested"'}
