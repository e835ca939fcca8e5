"""Makes the response of a request that has passed all checks: a replay, or the result of the rule."""

import json
from typing import Any

from followup._for_mockserver import encode
from followup_mockserver.gateway.request import Exchange, Response
from followup_mockserver.schema.errors import ServiceError, invalid, missing
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.journal import REQUEST_ID_PREFIX


def respond(exchange: Exchange) -> None:
    """Replay the response of the idempotency key, or run the rule of the operation."""
    if exchange.replayed is not None:
        exchange.response = Response(status=200, headers={"Idempotent-Replayed": "true"}, body=exchange.replayed)
        exchange.about = json.loads(exchange.replayed).get("id")
    else:
        exchange.response = Response(status=200, body=_run_rule(exchange))


def error_response(error: ServiceError) -> Response:
    """Return an error response in the service's format (specification, section 7)."""
    return Response(status=error.status, headers=dict(error.headers), body=_json_bytes(error.as_json()))


def _run_rule(exchange: Exchange) -> bytes:
    """Under the tenant's lock, find the object (404), parse the input (400), run the rule and encode its result."""
    request, tenant = exchange.request, exchange.tenant
    operation = request.operation
    with tenant.lock:
        found = (_find(exchange),) if operation.has_path_id else ()
        arguments = exchange.parser.arguments(operation, request.query, request.headers, request.body)
        if operation.row.takes_key:
            arguments["key"] = exchange.key
        exchange.request_id = tenant.cause = tenant.ids.new(REQUEST_ID_PREFIX)
        try:
            result = operation.row.rule(tenant, *found, **arguments)
        finally:
            tenant.cause = None
            exchange.ignored_keys, tenant.ignored_keys = tenant.ignored_keys, []
        exchange.about = getattr(result, "id", None)
        body = _json_bytes(_encoded(exchange, result))
        if exchange.claimed is not None:
            tenant.idempotency.finish(exchange.claimed, body, exchange.request_id)
            exchange.claimed = None
        tenant.notify()
    return body


def _find(exchange: Exchange) -> Any:
    """Return the object whose id is in the path.

    Raises:
        ServiceError: 400: an id of the wrong type; 404: there is no such object.
    """
    request = exchange.request
    kind, path_id = request.operation.declaration.id_prefix, request.path_id or ""
    assert kind is not None
    if not path_id.startswith(kind.prefix):
        raise invalid("parameter_invalid", f"This must be an id that begins with {kind.prefix}.", "id")
    found = getattr(exchange.tenant, request.operation.group).get(path_id)
    if found is None:
        raise missing(kind.object.replace("_", " "), param="id")
    return found


def _encoded(exchange: Exchange, result: Any) -> Any:
    if not isinstance(result, PageResult):
        return encode(result)
    url = exchange.request.operation.path
    return {"object": "list", "data": [encode(item) for item in result.items], "hasMore": result.has_more, "url": url}


def _json_bytes(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
