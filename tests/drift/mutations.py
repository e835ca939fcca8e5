"""Changes of our own contract, each with the differences that it must cause: class and place, written by hand."""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from drift.documents import Document, component, operation, parameter, request, resolved, response, served_document

from followup_mockserver.judge.drift.comparison import compare_document
from followup_mockserver.judge.drift.differences import Report

BREAKING = "breaking"
MOCK = "mock differs"
ADDED = "added"
WORDING = "wording"

Expected = tuple[str, str]
"""Class and place of a difference."""


class Mutation(NamedTuple):
    """A change of the contract.

    Attributes:
        change: changes a document.
        expected: the differences that it causes, all of them.
        tells_apart: whether each witness is a value that only one of the documents accepts, by its schemas alone.
    """

    change: Callable[[Document], Any]
    expected: frozenset[Expected]
    tells_apart: bool
    name: str

    def __str__(self) -> str:
        return self.name


def mutated(*mutations: Mutation) -> Document:
    """Return our own contract with these changes."""
    document = served_document()
    for each in mutations:
        each.change(document)
    return document


@functools.cache
def report_of(mutation: Mutation) -> Report:
    """Return the report about our own contract with a change."""
    return compare_document(mutated(mutation))


MUTATIONS: list[Mutation] = []


def causes(*expected: Expected, tells_apart: bool = True) -> Callable[[Callable[[Document], Any]], Any]:
    def add(change: Callable[[Document], Any]) -> Any:
        MUTATIONS.append(Mutation(change, frozenset(expected), tells_apart, change.__name__))
        return change

    return add


# --- requests: the contract is stricter --------------------------------------------------------------------------


@causes((BREAKING, "POST /v1/patients request body.consent"))
def a_new_required_field_of_a_request(document: Document) -> None:
    schema = request(document, "POST /v1/patients")
    schema["properties"]["consent"] = {"type": "boolean"}
    schema["required"].append("consent")


@causes((BREAKING, "POST /v1/patients request body.email"))
def an_optional_field_of_a_request_is_required(document: Document) -> None:
    request(document, "POST /v1/patients")["required"].append("email")


# The maximum is written as another keyword, which is a second difference, of wording.
@causes(
    (BREAKING, "GET /v1/visits request query.limit"), (WORDING, "GET /v1/visits request query.limit"), tells_apart=False
)
def an_exclusive_maximum_of_openapi_3_0(document: Document) -> None:
    parameter(document, "GET /v1/visits", "limit")["schema"]["exclusiveMaximum"] = True


@causes((BREAKING, "GET /v1/doctors request query.clinic"))
def a_new_required_query_parameter(document: Document) -> None:
    new = {"name": "clinic", "in": "query", "required": True, "schema": {"type": "string"}}
    operation(document, "GET /v1/doctors")["parameters"].append(new)


@causes((BREAKING, "GET /v1/account request cookie.session"))
def a_new_required_cookie(document: Document) -> None:
    new = {"name": "session", "in": "cookie", "required": True, "schema": {"type": "string"}}
    operation(document, "GET /v1/account")["parameters"].append(new)


@causes((BREAKING, "GET /v1/patients request query.dni"))
def an_optional_query_parameter_is_required(document: Document) -> None:
    parameter(document, "GET /v1/patients", "dni")["required"] = True


@causes((BREAKING, "POST /v1/visits request header.Idempotency-Key"))
def a_removed_idempotency_key(document: Document) -> None:
    parameters = operation(document, "POST /v1/visits")["parameters"]
    parameters.remove(parameter(document, "POST /v1/visits", "Idempotency-Key"))


@causes(
    (BREAKING, "POST /v1/events request body.occurredAt"),
    (BREAKING, "POST /v1/events request body[].occurredAt"),
    (BREAKING, "POST /v1/events request body.events[].occurredAt"),
)
def a_required_field_in_each_event(document: Document) -> None:
    component(document, "EventInput")["required"].append("occurredAt")


@causes((BREAKING, "POST /v1/events request body"), (BREAKING, "POST /v1/events request body.events"))
def smaller_batches(document: Document) -> None:
    union = request(document, "POST /v1/events")["anyOf"]
    union[1]["maxItems"] = 50
    union[2]["properties"]["events"]["maxItems"] = 50


@causes((BREAKING, "POST /v1/appointments request body.patient"))
def a_union_without_one_type(document: Document) -> None:
    patient = request(document, "POST /v1/appointments")["properties"]["patient"]
    patient["anyOf"] = [each for each in patient["anyOf"] if each["type"] == "object"]


@causes((BREAKING, "POST /v1/appointments request body.patient.email"))
def a_field_within_a_union_is_narrower(document: Document) -> None:
    patient = request(document, "POST /v1/appointments")["properties"]["patient"]
    (reference,) = (each for each in patient["anyOf"] if each["type"] == "object")
    reference["properties"]["email"]["pattern"] = "@clinic[.]example$"


@causes(
    (BREAKING, "POST /v1/intake_requests request body.hospitalized"),
    (MOCK, "POST /v1/intake_requests request body.hospitalized"),
)
def another_type_of_a_request(document: Document) -> None:
    schema = request(document, "POST /v1/intake_requests")["properties"]
    schema["hospitalized"] = {"type": "string", "description": schema["hospitalized"].get("description")}


@causes((BREAKING, "POST /v1/treatments request body"), tells_apart=False)
def another_media_type_of_a_request(document: Document) -> None:
    content = operation(document, "POST /v1/treatments")["requestBody"]["content"]
    content["multipart/form-data"] = content.pop("application/json")


@causes((BREAKING, "GET /v1/account request security"), tells_apart=False)
def other_credentials(document: Document) -> None:
    document["components"]["securitySchemes"]["basic"] = {"type": "http", "scheme": "basic"}
    operation(document, "GET /v1/account")["security"] = [{"basic": []}]


@causes((BREAKING, "PATCH /v1/appointments/{id}"), (ADDED, "PUT /v1/appointments/{id}"), tells_apart=False)
def another_method(document: Document) -> None:
    item = document["paths"]["/v1/appointments/{id}"]
    item["put"] = item.pop("patch")


@causes(
    (BREAKING, "GET /v1/account request header.Service-Version"),
    (MOCK, "GET /v1/account request header.Service-Version"),
)
def another_version(document: Document) -> None:
    parameter(document, "GET /v1/account", "Service-Version")["schema"]["enum"] = ["2027-01-01"]


# --- requests: the contract is looser ----------------------------------------------------------------------------


@causes((MOCK, "POST /v1/patients request body.phone"))
def a_required_field_of_a_request_is_optional(document: Document) -> None:
    request(document, "POST /v1/patients")["required"].remove("phone")


# --- responses: the contract is looser ---------------------------------------------------------------------------


@causes(
    (BREAKING, "GET /v1/doctors/{id} response 200 body.specialty"),
    (BREAKING, "GET /v1/doctors response 200 body.data[].specialty"),
)
def a_removed_field_of_a_response(document: Document) -> None:
    del component(document, "Doctor")["properties"]["specialty"]
    component(document, "Doctor")["required"].remove("specialty")


@causes((BREAKING, "GET /v1/account response 200 body.name"))
def a_field_of_a_response_is_optional(document: Document) -> None:
    component(document, "Account")["required"].remove("name")


@causes((BREAKING, "GET /v1/account response 200 body"))
def a_list_instead_of_an_object(document: Document) -> None:
    content = operation(document, "GET /v1/account")["responses"]["200"]["content"]["application/json"]
    content["schema"] = {"anyOf": [content["schema"], {"type": "array", "items": content["schema"]}]}


@causes((BREAKING, "GET /v1/account response 200 body"), tells_apart=False)
def another_media_type_of_a_response(document: Document) -> None:
    content = operation(document, "GET /v1/account")["responses"]["200"]["content"]
    content["application/xml"] = content.pop("application/json")


@causes((BREAKING, "webhook body.occurredAt"))
def a_webhook_without_its_time(document: Document) -> None:
    component(document, "WebhookEvent")["required"].remove("occurredAt")


@causes((BREAKING, "webhook body.type"))
def a_new_type_of_webhook(document: Document) -> None:
    component(document, "WebhookEvent")["properties"]["type"]["enum"].append("patient.deleted")


@causes((BREAKING, "webhook event header.x-service-signature"))
def a_webhook_without_signature(document: Document) -> None:
    parameters = document["webhooks"]["event"]["post"]["parameters"]
    parameters[:] = [each for each in parameters if each["name"] != "x-service-signature"]


# --- responses: the contract is narrower -------------------------------------------------------------------------


@causes(
    (MOCK, "POST /v1/webhook_endpoints response 200 body.secret"),
    (MOCK, "GET /v1/webhook_endpoints/{id} response 200 body.secret"),
    (MOCK, "PATCH /v1/webhook_endpoints/{id} response 200 body.secret"),
    (MOCK, "GET /v1/webhook_endpoints response 200 body.data[].secret"),
)
def an_optional_field_of_a_response_is_required(document: Document) -> None:
    component(document, "WebhookEndpoint")["required"].append("secret")


@causes((MOCK, "POST /v1/patients response 201"), tells_apart=False)
def another_status_for_success(document: Document) -> None:
    responses = operation(document, "POST /v1/patients")["responses"]
    responses["201"] = responses.pop("200")


# --- responses: the SDK decodes what the mock never sends ---------------------------------------------------------


# --- additions ---------------------------------------------------------------------------------------------------


@causes((ADDED, "GET /v1/patients request query.stage"))
def a_new_optional_query_parameter(document: Document) -> None:
    new = {"name": "stage", "in": "query", "schema": {"type": "string", "enum": ["lost"]}}
    operation(document, "GET /v1/patients")["parameters"].append(new)


@causes((ADDED, "GET /v1/account response 200 body.logo"), tells_apart=False)
def a_new_required_field_of_a_response(document: Document) -> None:
    component(document, "Account")["properties"]["logo"] = {"type": "string", "format": "uri"}
    component(document, "Account")["required"].append("logo")


@causes((ADDED, "GET /v1/account request security"), tells_apart=False)
def another_way_to_authenticate(document: Document) -> None:
    document["components"]["securitySchemes"]["basic"] = {"type": "http", "scheme": "basic"}
    operation(document, "GET /v1/account")["security"] = [{"apiKey": []}, {"basic": []}]


@causes((ADDED, "POST /v1/treatments request body"), tells_apart=False)
def one_more_media_type(document: Document) -> None:
    content = operation(document, "POST /v1/treatments")["requestBody"]["content"]
    content["application/x-www-form-urlencoded"] = content["application/json"]


# --- texts -------------------------------------------------------------------------------------------------------


@causes((WORDING, "GET /v1/patients request query.limit"), tells_apart=False)
def another_description_of_a_parameter(document: Document) -> None:
    parameter(document, "GET /v1/patients", "limit")["description"] = "How many."


@causes((ADDED, "POST /v1/patients request body.nickname"))
def a_new_optional_field_of_a_request(document: Document) -> None:
    request(document, "POST /v1/patients")["properties"]["nickname"] = {"type": "string"}


@causes((BREAKING, "POST /v1/visits request body.notes"))
def a_removed_field_of_a_request(document: Document) -> None:
    del request(document, "POST /v1/visits")["properties"]["notes"]


@causes((MOCK, "POST /v1/patients request header.Idempotency-Key"), tells_apart=False)
def a_header_that_the_sdk_always_sends_is_required(document: Document) -> None:
    parameter(document, "POST /v1/patients", "Idempotency-Key")["required"] = True


@causes((BREAKING, "GET /v1/account response 200 body.livemode"), (MOCK, "GET /v1/account response 200 body.livemode"))
def another_type_of_a_response(document: Document) -> None:
    component(document, "Account")["properties"]["livemode"] = {"type": "integer"}


# --- parts of the document --------------------------------------------------------------------------------------------

GONE = object()
"""The part or the keyword is removed."""

BODY = {"content": {"application/json": {"schema": {"type": "object"}}}}
ACCOUNT = "paths /v1/account get"
PING = "POST /v1/webhook_endpoints/{id}/ping request body"
_PATIENT = ("POST /v1/patients", "GET /v1/patients/{id}", "PATCH /v1/patients/{id}")
_EMAILS = [f"{each} response 200 body.email" for each in _PATIENT] + ["GET /v1/patients response 200 body.data[].email"]

PARTS: list[tuple[str, Any, str, list[str]]] = [
    ("paths /v1/appointments/{id}/cancel post requestBody required", True, BREAKING,
     ["POST /v1/appointments/{id}/cancel request body"]),
    ("paths /v1/webhook_endpoints/{id}/ping post requestBody", {**BODY, "required": True}, BREAKING, [PING]),
    ("paths /v1/webhook_endpoints/{id}/ping post requestBody", BODY, ADDED, [PING]),
    ("paths /v1/treatments post requestBody", GONE, BREAKING, ["POST /v1/treatments request body"]),
    ("paths /v1/patients post requestBody required", False, MOCK, ["POST /v1/patients request body"]),
    ("paths /v1/webhook_endpoints/{id} delete", GONE, BREAKING, ["DELETE /v1/webhook_endpoints/{id}"]),
    ("paths /v1/rooms", {"get": {"responses": {"200": {}}}}, ADDED, ["GET /v1/rooms"]),
    (f"{ACCOUNT} security", [], MOCK, ["GET /v1/account request security"]),
    (f"{ACCOUNT} responses 200 content", GONE, BREAKING, ["GET /v1/account response 200 body"]),
    (f"{ACCOUNT} responses 200", GONE, BREAKING, ["GET /v1/account response 200"]),
    (f"{ACCOUNT} responses 422", {}, ADDED, ["GET /v1/account response 422"]),
    (f"{ACCOUNT} responses 200 headers X-Cost", {}, ADDED, ["GET /v1/account response 200 header.X-Cost"]),
    (f"{ACCOUNT} responses 200 headers Request-Id", GONE, WORDING,
     ["GET /v1/account response 200 header.Request-Id"]),
    (f"{ACCOUNT} responses 200 description", "It.", WORDING, ["GET /v1/account response 200"]),
    (f"{ACCOUNT} summary", "Who?", WORDING, ["GET /v1/account"]),
    (f"{ACCOUNT} operationId", "getAccount", WORDING, ["GET /v1/account"]),
    (f"{ACCOUNT} tags", ["me"], WORDING, ["GET /v1/account"]),
    (f"{ACCOUNT} deprecated", True, WORDING, ["GET /v1/account"]),
    ("paths /v1/patients post responses 409", GONE, MOCK, ["POST /v1/patients response 409"]),
    ("info title", "Another API", WORDING, ["info"]),
    ("webhooks", GONE, WORDING, ["webhooks"]),
    ("components schemas Patient properties email format", GONE, MOCK, _EMAILS),
    ("components schemas Event properties data additionalProperties", False, MOCK,
     ["GET /v1/events/{id} response 200 body.data", "GET /v1/events response 200 body.data[].data"]),
    ("components schemas Doctor properties createdAt format", GONE, BREAKING,
     ["GET /v1/doctors/{id} response 200 body.createdAt", "GET /v1/doctors response 200 body.data[].createdAt"]),
]  # fmt: skip
"""Other values of one part of the document: its path, the value, and class and places of the differences."""


def with_part(document: Any, path: str, value: Any) -> None:
    *parents, last = path.split()
    for each in parents:
        document = document[each]
    if value is GONE:
        del document[last]
    else:
        document[last] = value


for _path, _value, _class, _places in PARTS:
    _change = functools.partial(with_part, path=_path, value=_value)
    MUTATIONS.append(Mutation(_change, frozenset((_class, each) for each in _places), False, f"{_path} {_class}"))

# --- keywords of one schema ------------------------------------------------------------------------------------------

CHANGED_KEYWORDS: list[tuple[str, str, dict[str, Any]]] = [
    (
        BREAKING,
        "GET /v1/appointments request query.status",
        {"enum": ["confirmed", "rescheduled", "cancelled", "completed"]},
    ),
    (BREAKING, "GET /v1/patients request query.limit", {"maximum": 50}),
    (BREAKING, "GET /v1/account response 200 body.name", {"type": ["string", "null"]}),
    (BREAKING, "GET /v1/visits request query.limit", {"minimum": 5}),
    (BREAKING, "GET /v1/events request query.limit", {"multipleOf": 10}),
    (BREAKING, "POST /v1/patients request body.fullName", {"maxLength": 200}),
    (BREAKING, "POST /v1/patients request body.dni", {"minLength": 7}),
    (BREAKING, "POST /v1/patients request body.phone", {"pattern": "^\\+[1-9]\\d{6,14}$"}),
    (BREAKING, "POST /v1/patients request body.externalId", {"format": "uuid"}),
    (BREAKING, "POST /v1/webhook_endpoints request body.enabledEvents", {"minItems": 2}),
    (BREAKING, "POST /v1/webhook_endpoints request body.enabledEvents", {"uniqueItems": True}),
    (BREAKING, "POST /v1/intake_requests request body.contacts[].email", {"maxLength": 10}),
    (BREAKING, "PATCH /v1/patients/{id} request body.email", {"type": "string"}),
    (BREAKING, "GET /v1/patients/{id} request path.id", {"pattern": "^pat_[A-Za-z0-9]{24}$"}),
    (BREAKING, "POST /v1/treatments request body", {"dependentRequired": {"name": ["dosage"]}}),
    (MOCK, "GET /v1/patients request query.limit", {"maximum": 500}),
    (MOCK, "POST /v1/patients request body.fullName", {"maxLength": GONE}),
    (MOCK, "POST /v1/patients request body.dni", {"minLength": GONE}),
    (MOCK, "POST /v1/patients request body.email", {"format": GONE}),
    (MOCK, "POST /v1/webhook_endpoints request body.url", {"pattern": GONE}),
    (MOCK, "POST /v1/patients request body", {"additionalProperties": GONE}),
    (MOCK, "POST /v1/patients request body.dateOfBirth", {"type": ["string", "null"]}),
    (MOCK, "GET /v1/visits/{id} request path.id", {"pattern": GONE}),
    (MOCK, "GET /v1/doctors request query.limit", {"default": 25}),
    (MOCK, "GET /v1/patients request query.limit", {"minimum": GONE, "maximum": GONE, "type": "string"}),
    (BREAKING, "GET /v1/account response 200 body.serviceLines[]", {"enum": ["follow_up", "network", "emergency"]}),
    (BREAKING, "GET /v1/account response 200 body.id", {"pattern": GONE}),
    (BREAKING, "GET /v1/account response 200 body.apiKey", {"type": GONE}),
    (MOCK, "GET /v1/account response 200 body.serviceLines[]", {"enum": ["follow_up"]}),
    (MOCK, "GET /v1/account response 200 body.apiKey.prefix", {"pattern": "^(test|live)_"}),
    (MOCK, "GET /v1/account response 200 body.timeZone", {"maxLength": 64}),
    (MOCK, "GET /v1/patients response 200 body.data", {"maxItems": 100}),
    (MOCK, "GET /v1/patients response 200 body.url", {"const": GONE, "type": "string"}),
    (WORDING, "POST /v1/patients request body.phone", {"description": "Mobile number."}),
    (WORDING, "GET /v1/account response 200 body.name", {"title": "Name"}),
    (WORDING, "GET /v1/account response 200 body.name", {"examples": ["Clínica Sur"]}),
    (WORDING, "GET /v1/account response 200 body", {"additionalProperties": False}),
    (WORDING, "POST /v1/patients request body.phone", {"format": "phone"}),
    (WORDING, "GET /v1/patients request query.limit", {"exclusiveMinimum": 0, "minimum": GONE}),
    (WORDING, "GET /v1/patients request query.limit", {"multipleOf": 1}),
    (WORDING, "POST /v1/patients request body.email", {"minLength": GONE}),
    (WORDING, "POST /v1/webhook_endpoints request body.url", {"pattern": "^[hH][tT][tT][pP][sS]://[^/?#@]+([/?#]|$)"}),
]
"""Changes of the keywords of one schema: class and place of the difference, and the keywords."""

_PLACE = re.compile(r"(\w+ \S+) (?:request (\w+)|response (\d+) body)(.*)")


def schema_at(document: Document, where: str) -> Document:
    """Return the schema at the place of a difference, with its references resolved."""
    found = _PLACE.fullmatch(where)
    assert found
    name, part, status, path = found.groups()
    if part not in ("body", None):
        schema: Document = parameter(document, name, path.removeprefix("."))["schema"]
        return schema
    schema = request(document, name) if part else response(document, name, status)
    for field, _ in re.findall(r"\.(\w+)|(\[\])", path):
        schema = resolved(document, schema["properties"][field] if field else schema["items"])
    return schema


def with_keywords(document: Document, where: str, keywords: dict[str, Any]) -> None:
    schema = schema_at(document, where)
    schema |= keywords
    for name in [name for name, value in schema.items() if value is GONE]:
        del schema[name]


for _class, _where, _keywords in CHANGED_KEYWORDS:
    _change = functools.partial(with_keywords, where=_where, keywords=_keywords)
    _tells_apart = _class != WORDING and not {"default", "const"} & _keywords.keys()
    _name = f"{_where} {' '.join(_keywords)} {_class}"
    MUTATIONS.append(Mutation(_change, frozenset({(_class, _where)}), _tells_apart, _name))
