"""The pipeline that handles a request: ``STEPS`` from top to bottom, then ``FINAL_STEPS``."""

import hashlib
import json
import logging
import math
import re
from collections.abc import Callable
from typing import Any

from followup._for_mockserver import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE, SERVICE_VERSION, encode
from followup_mockserver.gateway import auth
from followup_mockserver.gateway.fault_responses import apply
from followup_mockserver.gateway.parsing import parser
from followup_mockserver.gateway.request import Exchange, Request, Response
from followup_mockserver.options import Options
from followup_mockserver.schema.errors import ServiceError, invalid, missing
from followup_mockserver.state import observers
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.copies import copied
from followup_mockserver.state.journal import REQUEST_ID_PREFIX, CallDetails, CallOutcome, JournalEntry
from followup_mockserver.state.registry import Registry

logger = logging.getLogger("followup_mockserver")

VERSIONS = (SERVICE_VERSION,)
"""Values of ``Service-Version`` that a request may send (specification, section 9)."""

_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY)


class Gateway:
    """Handles the requests to the operations of a mock.

    Args:
        registry: the tenants of the mock.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        options = registry.options
        self._parser = parser(
            refuse_unknown_fields=options.refuse_unknown_fields, allow_http_webhooks=options.allow_http_webhooks
        )

    @property
    def options(self) -> Options:
        """The options of the mock."""
        return self._registry.options

    def handle(self, request: Request) -> Response:
        """Handle a request, and return its response. Never raises; every request is recorded in the journal."""
        exchange = Exchange(request=request, registry=self._registry, parser=self._parser, began=RealTime.monotonic())
        try:
            for step in STEPS:
                step(exchange)
        except ServiceError as error:
            exchange.error = error
        except Exception:  # a bug in the mock: the client gets an error in the service's format, not an HTML page
            logger.exception("%s failed", request.operation.name)
            exchange.error = _INTERNAL_ERROR
        if exchange.error is not None:
            exchange.response = error_response(exchange.error)
        for step in FINAL_STEPS:
            step(exchange)
        return exchange.response

    def reject(self, error: ServiceError) -> Response:
        """Return the response to a request that matches no operation, because of its path or its method."""
        response = error_response(error)
        tenant = self._registry.default
        with tenant.lock:
            response.headers |= {"Request-Id": tenant.ids.new(REQUEST_ID_PREFIX), "Service-Version": SERVICE_VERSION}
        return response


_INTERNAL_ERROR = ServiceError(500, "api_error", "internal_error", "The mock server failed; see its log.")


def error_response(error: ServiceError) -> Response:
    """Return an error response in the service's format (specification, section 7)."""
    return Response(status=error.status, headers=dict(error.headers), body=_json_bytes(error.as_json()))


# --- the steps; a ServiceError skips those that follow -----------------------------------------------------------


def find_tenant(exchange: Exchange) -> None:
    """Find the tenant by the API key. A request with a missing or unknown key belongs to the default tenant."""
    value = exchange.key_value = auth.bearer_token(exchange.request.headers)
    exchange.known_tenant = exchange.registry.by_key(value) if value else None
    exchange.tenant = exchange.known_tenant or exchange.registry.default


def match_fault(exchange: Exchange) -> None:
    """Find the fault that applies to this call, if any, and count it."""
    tenant = exchange.tenant
    if tenant.faults:
        with tenant.lock:
            exchange.fault = tenant.faults.match(exchange.request.operation.name)


def apply_fault(exchange: Exchange) -> None:
    """Apply a fault that precedes the rule, except a delay."""
    fault = exchange.fault
    if fault is not None and fault.when == "before" and fault.kind != "delay":
        apply(fault, exchange)


def authenticate(exchange: Exchange) -> None:
    """Reject a missing or invalid API key (401)."""
    exchange.key = auth.authenticate(exchange.known_tenant, exchange.key_value)


def authorize(exchange: Exchange) -> None:
    """Reject a key without the scope, or an organization without the service line, of the operation (403)."""
    auth.authorize(exchange.tenant, exchange.key, exchange.request.operation)


def limit_rate(exchange: Exchange) -> None:
    """Reject a request above the rate limit of its key (429; specification, section 8)."""
    tenant = exchange.tenant
    if not tenant.rate_limiter.limit:
        return
    with tenant.lock:
        wait = tenant.rate_limiter.take(exchange.key.value, tenant.clock.advanced)
    if wait is not None:
        raise ServiceError(
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            "Too many requests in a minute; Retry-After says when to try again.",
            headers={"Retry-After": str(max(1, math.ceil(wait)))},
        )


def check_version(exchange: Exchange) -> None:
    """Reject an unknown ``Service-Version`` (400)."""
    version = exchange.request.headers.get("service-version")
    if version is not None and version not in VERSIONS:
        raise invalid("version_unknown", f"The versions are: {', '.join(VERSIONS)}.", "Service-Version")


def claim_idempotency_key(exchange: Exchange) -> None:
    """Claim the idempotency key, or find the response to replay.

    Raises:
        ServiceError: 400: the key is invalid or was used for another request; 409: such a request is in progress.
    """
    request, tenant = exchange.request, exchange.tenant
    key = request.headers.get("idempotency-key")
    if key is None or not request.operation.declaration.idempotent:
        return
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        raise invalid("parameter_invalid", f"This {IDEMPOTENCY_KEY_RULE}.", "Idempotency-Key")
    fingerprint = _fingerprint(request)
    with tenant.lock:
        now = tenant.now()
        record = tenant.idempotency.find(key, now)
        if record is None:
            exchange.claimed = tenant.idempotency.begin(key, fingerprint, now)
        elif record.fingerprint != fingerprint:
            raise ServiceError(
                400,
                "idempotency_error",
                "idempotency_key_reused",
                "This key was used with another method, path or body; use a new one for a new request.",
                param="Idempotency-Key",
            )
        elif record.response is None:
            raise ServiceError(
                409,
                "idempotency_error",
                "idempotency_key_in_use",
                "Another request with this key is in progress; try again with the same key.",
                param="Idempotency-Key",
            )
        else:
            exchange.replayed, exchange.replay_of = record.response, record.request_id


def apply_delay(exchange: Exchange) -> None:
    """Apply a delay while the idempotency key is claimed, so that a concurrent request gets a 409."""
    fault = exchange.fault
    if fault is not None and fault.when == "before" and fault.kind == "delay":
        apply(fault, exchange)


def respond(exchange: Exchange) -> None:
    """Replay the response of the idempotency key, or run the rule of the operation."""
    if exchange.replayed is not None:
        exchange.response = Response(status=200, headers={"Idempotent-Replayed": "true"}, body=exchange.replayed)
        exchange.about = json.loads(exchange.replayed).get("id")
    else:
        exchange.response = Response(status=200, body=_run_rule(exchange))


def apply_fault_after(exchange: Exchange) -> None:
    """Apply a fault that follows the rule: its effects remain."""
    fault = exchange.fault
    if fault is not None and fault.when == "after":
        apply(fault, exchange)


STEPS: tuple[Callable[[Exchange], None], ...] = (
    find_tenant,
    match_fault,
    apply_fault,
    authenticate,
    authorize,
    limit_rate,
    check_version,
    claim_idempotency_key,
    apply_delay,
    respond,
    apply_fault_after,
)


# --- the final steps; they run for every response ----------------------------------------------------------------


def release_idempotency_key(exchange: Exchange) -> None:
    """Release the idempotency key of a request that failed, so that it can be used again."""
    if exchange.claimed is not None:
        with exchange.tenant.lock:
            exchange.tenant.idempotency.release(exchange.claimed)


def break_response(exchange: Exchange) -> None:
    """Mark a response whose connection a fault drops, or that comes too late for the client."""
    fault = exchange.fault
    if exchange.late:
        exchange.response.broken = "late"
    elif fault is not None and fault.kind in ("disconnect", "truncate"):
        exchange.response.broken = fault.kind
        exchange.is_fault_applied = True


def record_call(exchange: Exchange) -> None:
    """Record the call in the journal, under its request id. A request that reached no rule gets a new one."""
    request, response, tenant = exchange.request, exchange.response, exchange.tenant
    with tenant.lock:
        request_id = exchange.request_id or tenant.ids.new(REQUEST_ID_PREFIX)
        tenant.journal.record(
            JournalEntry(
                operation=request.operation.name,
                method=request.operation.method,
                path=request.path,
                status=0 if response.broken == "disconnect" else response.status,
                request_id=request_id,
                idempotency_key=request.headers.get("idempotency-key"),
                at=tenant.now(),
            ),
            CallOutcome(
                about=exchange.about or request.path_id,
                error_code=None if exchange.error is None else exchange.error.code,
                replayed=exchange.is_replay,
                replay_of=exchange.replay_of if exchange.is_replay else None,
                fault=copied(exchange.fault) if exchange.is_fault_applied else None,
            ),
            CallDetails(
                query=request.query,
                request_headers=request.headers,
                request_body=request.body,
                response_headers=response.headers,
                response_body=response.body,
                seconds=RealTime.monotonic() - exchange.began,
            ),
        )
        tenant.notify()
    response.headers["Request-Id"] = request_id
    response.headers["Service-Version"] = SERVICE_VERSION


def report_call(exchange: Exchange) -> None:
    """Report the call to the observers of this process."""
    if not observers.observers:
        return
    request, response, fault = exchange.request, exchange.response, exchange.fault
    call = observers.EndedCall(
        operation=request.operation.name,
        method=request.operation.method,
        path=request.path,
        status=None if response.broken else response.status,
        error_code=None if exchange.error is None else exchange.error.code,
        replayed=exchange.is_replay,
        fault=fault.kind if fault is not None and exchange.is_fault_applied else None,
        seconds=RealTime.monotonic() - exchange.began,
    )
    for observer in observers.observers:
        observer.call_ended(call)


FINAL_STEPS: tuple[Callable[[Exchange], None], ...] = (
    release_idempotency_key,
    break_response,
    record_call,
    report_call,
)


# --- helpers of the steps ----------------------------------------------------------------------------------------


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
        exchange.about = getattr(result, "id", None)
        body = _json_bytes(_encoded(exchange, result))
        if exchange.claimed is not None:
            tenant.idempotency.finish(exchange.claimed, body, exchange.request_id)
            exchange.claimed = None
        tenant.notify()
    return body


def _fingerprint(request: Request) -> bytes:
    source = b"\0".join((request.operation.method.encode(), request.path.encode(), request.body or b""))
    return hashlib.sha256(source).digest()


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
