"""Responds to a request that has passed all checks, by a replay or the rule of its operation, and records the call."""

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Any

from followup._for_mockserver import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE, SERVICE_VERSION, encode
from followup_mockserver.gateway.request import Exchange, Response, arguments_of
from followup_mockserver.world.schema.errors import KEY_REUSED, ServiceError, invalid, missing
from followup_mockserver.world.state import journal
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.collection import PageResult
from followup_mockserver.world.state.records import copied

_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY)


def claim_idempotency_key(exchange: Exchange) -> None:
    """Claim the idempotency key, or find the response to replay. A request without a key gets a fingerprint too.

    Raises:
        ServiceError: 400: the key is invalid or was used for another request; 409: such a request is in progress.
    """
    request, tenant = exchange.request, exchange.tenant
    key = request.headers.get("idempotency-key")
    if not request.operation.declaration.idempotent:
        return
    # NUL separates them: a path that contains it leads to no object, and to no response that is replayed.
    source = b"\0".join((request.operation.method.encode(), request.path.encode(), request.body or b""))
    fingerprint = exchange.fingerprint = hashlib.sha256(source).hexdigest()
    if key is None:
        return
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        raise invalid("parameter_invalid", f"This {IDEMPOTENCY_KEY_RULE}.", "Idempotency-Key")
    with tenant.lock:
        now = tenant.now()
        record = tenant.idempotency.find(key, now)
        if record is None:
            exchange.claimed = tenant.idempotency.begin(key, fingerprint, now)
        elif record.fingerprint != fingerprint:
            message = "This key was used with another method, path or body; use a new one for a new request."
            raise _key_error(400, KEY_REUSED, message)
        elif record.response is None:
            message = "Another request with this key is in progress; try again with the same key."
            raise _key_error(409, "idempotency_key_in_use", message)
        else:
            exchange.replayed, exchange.replay_of = record.response, record.request_id


def _key_error(status: int, code: str, message: str) -> ServiceError:
    return ServiceError(status, "idempotency_error", code, message, param="Idempotency-Key")


def release_idempotency_key(exchange: Exchange) -> None:
    """Release the idempotency key of a request that failed, so that it can be used again."""
    if exchange.claimed is not None:
        with exchange.tenant.lock:
            exchange.tenant.idempotency.release(exchange.claimed)


def respond(exchange: Exchange) -> None:
    """Replay the response of the idempotency key, or run the rule of the operation."""
    if exchange.replayed is not None:
        # The response is the stored text, not this: a replay is the same to the byte.
        exchange.result = json.loads(exchange.replayed)
        exchange.response = Response(
            status=200, headers={"Idempotent-Replayed": "true"}, body=exchange.replayed.encode()
        )
    else:
        exchange.response = Response(status=200, body=_run_rule(exchange))
    exchange.about = exchange.result.get("id")


def error_response(error: ServiceError) -> Response:
    """Return an error response in the service's format (specification, section 7)."""
    return Response(status=error.status, headers=dict(error.headers), body=_json_bytes(error.as_json()))


def _run_rule(exchange: Exchange) -> bytes:
    """Under the tenant's lock, find the object (404), parse the input (400), run the rule and encode its result."""
    request, tenant = exchange.request, exchange.tenant
    operation = request.operation
    with tenant.lock:
        found = (_find(exchange),) if operation.has_path_id else ()
        arguments = arguments_of(operation, exchange.registry.options, request.query, request.headers, request.body)
        exchange.body = arguments.get("body")
        if operation.row.takes_key:
            arguments["key"] = exchange.key
        exchange.request_id, exchange.at = tenant.ids.new(journal.REQUEST_ID_PREFIX), tenant.now()
        tenant.remarks = exchange.remarks
        with tenant.caused_by(exchange.request_id, exchange.at):
            result = operation.row.rule(tenant, *found, **arguments)
        exchange.result = _encoded(exchange, result)
        body = _json_bytes(exchange.result)
        # Under the lock of the effect: no copy of the request meets the one without the other.
        if exchange.claimed is not None:
            tenant.idempotency.finish(exchange.claimed, body.decode(), exchange.request_id)
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


# ``json.dumps`` makes a new encoder for each call with such arguments.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def record_call(exchange: Exchange) -> None:
    """Record the call in the journal, under its request id, and report it."""
    request, response, tenant = exchange.request, exchange.response, exchange.tenant
    error, fault = exchange.error, exchange.fault if exchange.is_fault_applied else None
    # A fault of kind status invents the results of a batch.
    results = () if fault is not None and fault.kind == "status" else exchange.results
    code = None if error is None else error.code
    is_replay = exchange.replayed is not None and error is None  # a fault may have replaced the response
    with tenant.lock:
        request_id = exchange.request_id or tenant.ids.new(journal.REQUEST_ID_PREFIX)
        key, method = request.headers.get("idempotency-key"), request.method
        entry = journal.JournalEntry(
            operation=request.operation.name,
            method=method,
            path=request.path,
            status=0 if response.broken == "disconnect" else response.status,
            request_id=request_id,
            idempotency_key=key,
            at=exchange.at or tenant.now(),
            error_code=code,
            param=None if error is None else error.param,
            attempt=1 if code == KEY_REUSED else tenant.journal.next_attempt(key, method, request.path),
            replayed=is_replay,
            fault=None if fault is None else fault.kind,
            events=len(results),
            refused=sum(not each["accepted"] for each in results),
            ignored_keys=(*exchange.remarks.ignored_keys,),
            changed_duplicates=(*exchange.remarks.changed_duplicates,),
        )
        call = journal.EndedCall(
            entry=entry,
            status=None if response.broken else response.status,
            seconds=RealTime.monotonic() - exchange.began,
            events=_events_of(exchange),
        )
        tenant.journal.record(
            call,
            journal.CallOutcome(
                about=exchange.about or request.path_id,
                replay_of=exchange.replay_of if is_replay else None,
                fault=None if fault is None else copied(fault),
                fingerprint=exchange.fingerprint if request.body else None,
            ),
            journal.CallDetails(
                query=request.query,
                request_headers=request.headers,
                request_body=request.body,
                response_headers=response.headers,
                response_body=response.body,
                seconds=call.seconds,
                real_at=datetime.now(UTC),
            ),
        )
        tenant.notify()
    response.headers["Request-Id"] = request_id
    response.headers["Service-Version"] = SERVICE_VERSION
    # Without the lock: an observer may be slow, such as a log that is written to a terminal.
    journal.report(call)


def _events_of(exchange: Exchange) -> list[tuple[str, str | None]]:
    """Return the events of a batch by their types, with the results as the client sees them."""
    types = [str(each.get("type")) if isinstance(each, dict) else "" for each in exchange.sent_events()]
    if exchange.response.broken:
        return [(each, None) for each in types]
    # An error may have no results.
    return [(each, result["status"]) for each, result in zip(types, exchange.results, strict=False)]
