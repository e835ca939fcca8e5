"""The OpenAPI document of the control API, generated from its routes and the signatures of their functions.

A route that is added to ``ROUTES`` is in the document at once; it needs an example if its body has a required field.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_origin

import attrs

from followup import NOT_GIVEN, __version__
from followup._for_mockserver import Model, annotations_of, camel, descriptions_in, is_optional, without_none
from followup_mockserver.contract.openapi import error_schema, response_of
from followup_mockserver.contract.operations import for_any_language
from followup_mockserver.http.control import health, input_of, restore_snapshot, save_snapshot
from followup_mockserver.http.control_routes import LONGEST_WAIT, PREFIX, ROUTES, TOKEN_HEADER
from followup_mockserver.schema.shapes import Schema, shape_of
from followup_mockserver.state.journal import OMITTED_IF_EMPTY

Document = dict[str, Any]

_STATUS: Schema = {"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}
_SNAPSHOT: Schema = {"type": "object", "description": "A snapshot: versioned, JSON-compatible, opaque."}
_OPENAPI: Schema = {"type": "object", "description": "An OpenAPI document."}


@attrs.frozen
class _Route:
    """A route of the control API.

    Attributes:
        path: path after the prefix, with the parameter in braces.
        function: has the documentation, and the input unless that is ``body``.
        response: schema of the successful response.
        body: schema of the body, where it is not derived from the function.
    """

    method: str
    path: str
    function: Callable[..., Any]
    response: Schema
    body: Schema | None = None


@functools.cache
def control_document() -> Document:
    """Return the OpenAPI 3.1 document of the control API."""
    schemas: dict[str, Schema] = {"Error": error_schema()}
    paths: dict[str, Any] = {}
    for route in _routes(schemas):
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Control API of the mock of the patient follow-up service",
            "version": __version__,
            "description": "The clock, faults, patients and staff in the hands of a test. It is not part of the "
            "contract of the service. A call acts on the organization of its API key, or on the default one.",
        },
        "servers": [{"url": "/"}],
        # Each is optional: without a key, a call acts on the default organization; most mocks have no token.
        "security": [{}, {"apiKey": []}, {"mockToken": []}, {"apiKey": [], "mockToken": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(path) for path in paths)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer"},
                "mockToken": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
            },
            "schemas": schemas,
        },
    }


def _routes(schemas: dict[str, Schema]) -> Iterator[_Route]:
    yield _Route("GET", "/health", health, _STATUS)
    yield _Route("GET", "/openapi.json", control_document, _OPENAPI)
    yield _Route("GET", "/snapshot", save_snapshot, _SNAPSHOT)
    yield _Route("PUT", "/snapshot", restore_snapshot, _STATUS, _SNAPSHOT)
    for method, path, function in ROUTES:
        response = _response_schema(annotations_of(function)["return"], schemas)
        yield _Route(method, path.replace("<path_id>", f"{{{_path_name(function)}}}"), function, response)


def _operation(route: _Route) -> Document:
    summary, _, description = _text(route.function).partition("\n\n")
    operation: Document = {
        "operationId": _operation_id(route),
        "tags": [_tag(PREFIX + route.path)],
        "summary": " ".join(summary.split()),
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {
            "200": response_of("The call succeeded.", route.response),
            "default": response_of(
                "The call was rejected; the message names the reason, param the field.",
                {"$ref": "#/components/schemas/Error"},
            ),
        },
    }
    if description:
        operation["description"] = description
    if (body := _body(route)) is not None:
        operation["requestBody"] = body
    if route.function is health:
        operation["security"] = [{}]
    return operation


def _operation_id(route: _Route) -> str:
    """Return an id such as ``postClockAdvance``; two functions can have the same name, two routes cannot."""
    words = re.findall(r"[A-Za-z]+", re.sub(r"\{\w+\}", "", route.path))
    collection, ends_with_id, _ = route.path.rpartition("/{")
    if ends_with_id and any((method, path) == (route.method, collection) for method, path, _ in ROUTES):
        words.append("one")  # the same method applies to all of them, too
    return camel("_".join([route.method.lower(), *words]))


def _tag(path: str) -> str:
    return path.removeprefix(f"{PREFIX}/").partition("/")[0]


def _text(function: Callable[..., Any]) -> str:
    """Return the docstring up to its first section."""
    return _for_http(re.split(r"\n(?:Args|Returns|Raises):\n", inspect.getdoc(function) or "")[0].strip())


_PHRASES = (
    (r"an aware datetime or an RFC 3339 timestamp", "an RFC 3339 timestamp"),
    (
        r"``update_organization\(activated_events=(\[[^]]*\])\)``",
        r'``PATCH /_mock/organization`` and ``{"activatedEvents": \1}``',
    ),
)
"""Phrases about the test controls in Python, and their replacements."""


def _for_http(text: str) -> str:
    for phrase, instead in _PHRASES:
        text = re.sub(phrase, instead, text)
    return for_any_language(text)


def _path_name(function: Callable[..., Any]) -> str:
    """Return the name of the parameter that is in the path; empty if there is none."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    return next((each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_ONLY), "")


def _path_parameters(route: _Route) -> Iterator[Document]:
    for name in re.findall(r"\{(\w+)\}", route.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": descriptions_in(route.function).get(name, "Id of the object."),
            "schema": {"type": "string"},
        }


def _query_parameters(route: _Route) -> Iterator[Document]:
    if route.method != "GET" or route.function not in _FUNCTIONS:
        return
    properties = _properties(route.function)
    for name, schema in properties.items():
        description = schema.pop("description", "")
        yield {"name": name, "in": "query", "required": False, "description": description, "schema": _in_query(schema)}


def _body(route: _Route) -> Document | None:
    if route.body is not None:
        return {"required": True, "content": {"application/json": {"schema": route.body}}}
    if route.method == "GET" or route.function not in _FUNCTIONS:
        return None
    schema = input_of(route.function)[0].schema
    if not schema["properties"]:
        return None
    media: Document = {"schema": {**schema, "properties": _properties(route.function)}}
    example = REQUEST_EXAMPLES.get((route.method, route.path))
    if example is not None:
        media["example"] = example
    return {"required": "required" in schema, "content": {"application/json": media}}


_FUNCTIONS = frozenset(function for _, _, function in ROUTES)


def _properties(function: Callable[..., Any]) -> dict[str, Schema]:
    """Return the schemas of the input of a function, with descriptions and defaults."""
    parameters = {camel(each.name): each for each in inspect.signature(function).parameters.values()}
    texts = {camel(name): text for name, text in descriptions_in(function).items()}
    return {
        name: {**schema, **_meaning(texts.get(name)), **_default(parameters[name].default), **_limits(name)}
        for name, schema in input_of(function)[0].schema["properties"].items()
    }


def _meaning(text: str | None) -> Schema:
    return {"description": _for_http(text)} if text else {}


def _default(value: Any) -> Schema:
    is_shown = value not in (None, NOT_GIVEN, inspect.Parameter.empty)
    return {"default": list(value) if isinstance(value, tuple) else value} if is_shown else {}


def _limits(name: str) -> Schema:
    return {"minimum": 0, "maximum": LONGEST_WAIT} if name == "wait" else {}


def _in_query(schema: Schema) -> Schema:
    """Return the schema of a query parameter, which cannot be null."""
    kinds = schema.get("type")
    plain = {**schema, "type": kinds[0]} if isinstance(kinds, list) else schema
    return {**plain, "enum": [each for each in plain["enum"] if each is not None]} if "enum" in plain else plain


def _response_schema(annotation: Any, schemas: dict[str, Schema]) -> Schema:
    """Return the schema of a result, as ``http.control`` encodes it."""
    if annotation in (None, type(None)):
        return _STATUS
    schema = _value_schema(annotation, schemas)
    if get_origin(annotation) is list:
        return {"type": "object", "properties": {"data": schema}, "required": ["data"]}
    return schema


def _value_schema(annotation: Any, schemas: dict[str, Schema]) -> Schema:
    if is_optional(annotation):
        inner = _value_schema(without_none(annotation), schemas)
        return {"anyOf": [inner, {"type": "null"}]}
    if get_origin(annotation) is list:
        return {"type": "array", "items": _value_schema(get_args(annotation)[0], schemas)}
    if get_origin(annotation) is Mapping:
        return {"type": "object"}
    if annotation is bytes:
        return {"type": "string"}
    if isinstance(annotation, type) and issubclass(annotation, Model):
        schemas.setdefault(annotation.__name__, shape_of(annotation).schema)
        return _reference(annotation)
    if isinstance(annotation, type) and attrs.has(annotation):
        if annotation.__name__ not in schemas:
            schemas[annotation.__name__] = _object_schema(annotation, schemas)
        return _reference(annotation)
    return shape_of(annotation).schema


def _object_schema(kind: type[attrs.AttrsInstance], schemas: dict[str, Schema]) -> Schema:
    annotations = annotations_of(kind)
    fields = attrs.fields(kind)
    return {
        "type": "object",
        "properties": {camel(each.name): _value_schema(annotations[each.name], schemas) for each in fields},
        "required": [camel(each.name) for each in fields if not each.metadata.get(OMITTED_IF_EMPTY)],
    }


def _reference(kind: type[Any]) -> Schema:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


_PATIENT = {"phone": "+54 9 11 5555-0000", "fullName": "Ana Pérez"}

REQUEST_EXAMPLES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("POST", "/clock/advance"): {"hours": 3},
    ("POST", "/deliveries/disturb"): {"kind": "duplicate", "type": "appointment.created"},
    ("POST", "/webhook_endpoints"): {"url": "http://127.0.0.1:8000/hooks", "enabledEvents": ["*"]},
    ("POST", "/doctors"): {"fullName": "Dra. Julia Gómez", "externalId": "D-9"},
    ("PATCH", "/doctors/{id}"): {"active": False},
    ("PATCH", "/patients/{id}"): {"optedOut": True},
    ("POST", "/patients/{id}/handoff"): {"reason": "Asks for a person."},
    ("POST", "/appointments"): {"patient": _PATIENT, "startAt": "2030-01-01T14:30:00Z", "source": "agent"},
    ("POST", "/appointments/{id}/reschedule"): {"startAt": "2030-01-02T14:30:00Z"},
    ("POST", "/appointments/{id}/cancel"): {"reason": "The patient is travelling."},
    ("POST", "/visits"): {"patient": _PATIENT, "visitedAt": "2026-09-28T15:00:00Z"},
    ("POST", "/events"): {
        "event": {"id": "row-1", "type": "patient.upserted", "data": {"patient": _PATIENT}},
        "source": "import",
    },
    ("POST", "/intake_requests/{id}/answer"): {"address": "Calle 1", "coverage": {"insurer": "Salud Sur"}},
    ("POST", "/intake_requests/{id}/discard"): {"reason": "Another clinic has admitted the patient."},
    ("POST", "/organizations"): {"name": "Laboratory", "keys": [{"name": "tests", "scopes": ["patients:read"]}]},
    ("PATCH", "/organization"): {"serviceLines": ["follow_up"], "reminderHours": [24, 3]},
    ("POST", "/api_keys"): {"name": "read only", "scopes": ["patients:read"]},
    ("PATCH", "/api_keys/{value}"): {"revoked": True},
    ("POST", "/faults"): {"operation": "patients.create", "kind": "status", "status": 503, "times": 2},
    ("POST", "/trigger"): {"type": "webhook.ping"},
}
"""Request bodies by method and path."""
