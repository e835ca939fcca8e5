"""The OpenAPI 3.1 document, generated from the table of operations (specification, section 9).

The gateway validates requests with the schemas of the document, under the options of the mock that serves it.
"""

import functools
import json
from typing import Any, cast

from followup import EventBatch, WebhookEvent
from followup import _for_mockserver as sdk
from followup_mockserver.deliveries import USER_AGENT
from followup_mockserver.gateway.operations import FOLLOW_UP, OPERATIONS, Operation
from followup_mockserver.rules.events import ENVELOPE
from followup_mockserver.world.schema.shapes import MAX_BODY_BYTES, MAX_HEAD_BYTES, open_schema, shape_of
from followup_mockserver.world.schema.validation import HTTPS_URL, Schema

Document = dict[str, Any]


_text = functools.partial(sdk.package_text, __name__)

_EXAMPLES = json.loads(_text("request_examples.json"))
"""Request bodies by operation."""

COMPONENTS = json.loads(_text("components.json"))
"""Components that no declaration has: the error, the credentials, headers, and responses that match no operation."""

_ERRORS = json.loads(_text("errors.json"))
"""The descriptions of error responses, by status."""


@functools.cache
def document(*, refuse_unknown_fields: bool = True, allow_http_webhooks: bool = False) -> Document:
    """Return the OpenAPI document of the 32 operations.

    Args:
        refuse_unknown_fields: the option of the mock; False allows further fields in every object.
        allow_http_webhooks: the option of the mock; True allows webhook URLs that begin with ``http``.
    """
    published: Document = _published(_document(), allow_http_webhooks=allow_http_webhooks)
    return published if refuse_unknown_fields else cast("Document", open_schema(published))


def _published(part: Any, *, allow_http_webhooks: bool) -> Any:
    """Return a part of the document, in which the mock's own string format is replaced by a standard one."""
    if isinstance(part, list):
        return [_published(each, allow_http_webhooks=allow_http_webhooks) for each in part]
    if not isinstance(part, dict):
        return part
    published = {name: _published(each, allow_http_webhooks=allow_http_webhooks) for name, each in part.items()}
    if part.get("format") == HTTPS_URL:
        scheme = "[Hh][Tt][Tt][Pp][Ss]?" if allow_http_webhooks else "[Hh][Tt][Tt][Pp][Ss]"
        published |= {"format": "uri", "pattern": f"^{scheme}://[^/?#@]+([/?#]|$)"}
    return published


def _document() -> Document:
    schemas: dict[str, Schema] = {**COMPONENTS["schemas"], "EventInput": ENVELOPE.schema}
    paths: dict[str, Any] = {}
    for operation in OPERATIONS.values():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    schemas["WebhookEvent"] = shape_of(WebhookEvent).schema
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Patient follow-up integration API",
            "version": sdk.SERVICE_VERSION,
            "description": _text("service_rules.md"),
        },
        "servers": [{"url": "/"}, {"url": "/api"}],
        "security": [{"apiKey": []}],
        "tags": [{"name": group} for group in dict.fromkeys(each.group for each in OPERATIONS.values())],
        "paths": paths,
        "webhooks": {"event": _webhook()},
        "components": {**COMPONENTS, "schemas": schemas},
    }


def _operation(operation: Operation, schemas: dict[str, Schema]) -> Document:
    description = operation.description
    described: Document = {
        "operationId": operation.name,
        "tags": [operation.group],
        "summary": description.partition("\n\n")[0],
        "description": description,
        "parameters": _parameters(operation),
        "responses": _responses(operation, schemas),
    }
    if operation.row.scope:
        described["x-scope"] = operation.row.scope
    if operation.row.line:
        described["x-service-line"] = FOLLOW_UP
    body = _request_body(operation)
    if body is not None:
        described["requestBody"] = body
    return described


def _parameters(operation: Operation) -> list[Document]:
    meanings = operation.meanings
    parameters: list[Document] = [
        {
            "name": parameter.wire_name,
            "in": parameter.place,
            "required": parameter.place == "path" or parameter.required,
            "description": meanings.get(parameter.name, "Id of the object."),
            "schema": _as_text(shape_of(parameter.kinds).schema),
        }
        for parameter in operation.declaration.parameters
        if parameter.place in ("path", "query")
    ]
    version = {"type": "string", "enum": [sdk.SERVICE_VERSION]}
    parameters.append(_header("Service-Version", "Version of the API, as a date.", version))
    if operation.declaration.idempotent:
        schema = {"type": "string", "pattern": sdk.IDEMPOTENCY_KEY}
        parameters.append(_header("Idempotency-Key", "A repetition with the same key takes effect only once.", schema))
    return parameters


def _as_text(schema: Schema) -> Schema:
    """Return the schema of a path or query parameter, in which booleans are strings."""
    return {"type": "string", "enum": ["true", "false"]} if schema == {"type": "boolean"} else schema


def _header(name: str, description: str, schema: Schema, *, required: bool = False) -> Document:
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def _request_body(operation: Operation) -> Document | None:
    if not operation.takes_body or (operation.body is not None and not operation.body.schema["properties"]):
        return None
    schema = _batch_schema(operation) if operation.body is None else dict(operation.body.schema)
    if operation.body is not None:
        described = {sdk.camel(name): {"description": text} for name, text in operation.meanings.items()}
        schema["properties"] = {
            name: {**each, **described.get(name, {})} for name, each in operation.body.schema["properties"].items()
        }
    media: Document = {"schema": schema}
    if operation.name in _EXAMPLES:
        media["example"] = _EXAMPLES[operation.name]
    return {"required": operation.body_required, "content": {"application/json": media}}


def _batch_schema(operation: Operation) -> Schema:
    event = _reference("EventInput")
    (parameter,) = (each for each in operation.declaration.parameters if each.place == "whole_body")
    array = next(each for each in shape_of(parameter.kinds).schema["anyOf"] if each["type"] == "array")
    batch = {**array, "items": event}
    wrapped = {"type": "object", "properties": {"events": batch}, "required": ["events"], "additionalProperties": False}
    # Not oneOf: if unknown fields are allowed, an object can be an event and have ``events`` as well.
    return {"anyOf": [event, batch, wrapped]}


def _responses(operation: Operation, schemas: dict[str, Schema]) -> Document:
    replayed = ["Idempotent-Replayed"] if operation.declaration.idempotent else []
    responses = {
        "200": response_of("The operation succeeded.", _success_schema(operation, schemas), *_ALWAYS, *replayed)
    }
    applies = {"404": operation.has_path_id, "409": operation.declaration.idempotent, "415": operation.takes_body}
    for status, description in _ERRORS.items():
        if applies.get(status, True):
            headers = [*_ALWAYS, *(["Retry-After"] if status == "429" else [])]
            text = description.format(body=MAX_BODY_BYTES, head=MAX_HEAD_BYTES)
            responses[status] = response_of(text, _error_of(operation, status), *headers)
    return responses


def response_of(description: str, schema: Schema, *headers: str) -> Document:
    """Return a response in JSON with the headers of these names."""
    response: Document = {"description": description, "content": {"application/json": {"schema": schema}}}
    if headers:
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    return response


def _error_of(operation: Operation, status: str) -> Schema:
    error = _reference("Error")
    if operation.declaration.batch_error is None or status not in ("400", "500"):
        return error
    results = {"object": {"const": "event_batch"}, "results": shape_of(EventBatch).schema["properties"]["results"]}
    return {"allOf": [error, {"type": "object", "properties": results}]}


def _success_schema(operation: Operation, schemas: dict[str, Schema]) -> Schema:
    declaration = operation.declaration
    item: type[sdk.Model] = declaration.item_type or declaration.returns
    schemas.setdefault(item.__name__, shape_of(item).schema)
    reference = _reference(item.__name__)
    if declaration.item_type is None:
        return reference
    return {
        "type": "object",
        "properties": {
            "object": {"const": "list"},
            "data": {"type": "array", "items": reference},
            "hasMore": {"type": "boolean"},
            "url": {"const": operation.path},
        },
        "required": ["object", "data", "hasMore", "url"],
    }


_ALWAYS = ("Request-Id", "Service-Version")
"""Headers of every response."""


def _webhook() -> Document:
    signature = (
        "sha256= and the HMAC-SHA256 of <timestamp>.<raw body>, keyed with the endpoint's secret, in lowercase "
        "hexadecimal digits."
    )
    headers: list[tuple[str, str, Schema]] = [
        (sdk.SIGNATURE_HEADER, signature, {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"}),
        (sdk.TIMESTAMP_HEADER, "Time of sending, in seconds since the epoch.", {"type": "integer", "minimum": 0}),
        (sdk.EVENT_TYPE_HEADER, "The type of the event.", shape_of(WebhookEvent).schema["properties"]["type"]),
        (sdk.ATTEMPT_HEADER, "Number of the attempt, from 1.", {"type": "integer", "minimum": 1}),
        ("user-agent", f"{USER_AGENT}.", {"type": "string", "const": USER_AGENT}),
    ]
    return {
        "post": {
            "summary": "Receive a signed event.",
            "description": _text("receivers_duty.md"),
            "x-signature-test-vectors": json.loads(_text("signature_vectors.json")),
            "parameters": [_header(*each, required=True) for each in headers],
            "requestBody": {"required": True, "content": {"application/json": {"schema": _reference("WebhookEvent")}}},
            "responses": {"2XX": {"description": "Received. Any other response is a failed attempt."}},
        }
    }


def _reference(schema: str) -> Schema:
    return {"$ref": f"#/components/schemas/{schema}"}
