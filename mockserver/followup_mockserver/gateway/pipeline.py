"""The pipeline that handles a request: the steps, in ``STEPS`` and ``FINAL_STEPS``, and what runs them.

The steps here are the checks that precede every rule, and the faults that change a call. A ``ServiceError`` ends the
request.
"""

import logging
import math
from collections.abc import Callable, Mapping

from followup._for_mockserver import SERVICE_VERSION
from followup_mockserver.gateway import responding
from followup_mockserver.gateway.operations import FOLLOW_UP
from followup_mockserver.gateway.request import Exchange, Request, Response
from followup_mockserver.gateway.responding import error_response
from followup_mockserver.rules import events
from followup_mockserver.world.schema.errors import ServiceError, invalid
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.faults import INJECTED, Fault
from followup_mockserver.world.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.tenant_access import wait


def find_tenant(exchange: Exchange) -> None:
    """Find the tenant by the API key. A request with a missing or unknown key belongs to the default tenant."""
    value = exchange.key_value = bearer_token(exchange.request.headers)
    exchange.tenant = exchange.registry.by_key(value or "") or exchange.registry.default


def match_fault(exchange: Exchange) -> None:
    """Find the fault that applies to this call, if any, and count it. Apply one before the rule, except a delay."""
    with exchange.tenant.lock:
        fault = exchange.fault = exchange.tenant.faults.match(exchange.request.operation.name)
    if fault is not None and fault.when == "before" and fault.kind != "delay":
        apply(fault, exchange)


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the key of the ``Authorization: Bearer`` header, or None if there is no such header."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() or None if scheme.lower() == "bearer" else None


def authenticate(exchange: Exchange) -> None:
    """Reject a missing, unknown, revoked or expired API key (401; specification, section 5)."""
    tenant, value = exchange.tenant, exchange.key_value
    if value is None:
        raise _unauthorized("api_key_missing", "Send the API key as Authorization: Bearer <API_KEY>.")
    key = tenant.keys.get(value)
    if key is None:
        raise _unauthorized("api_key_invalid", "There is no such API key.")
    if key.revoked:
        raise _unauthorized("api_key_revoked", "The API key was revoked.")
    if key.expires_at is not None and tenant.now() >= key.expires_at:
        raise _unauthorized("api_key_expired", "The API key has expired.")
    exchange.key = key


def _unauthorized(code: str, message: str) -> ServiceError:
    # A 401 must have this header (RFC 9110, section 15.5.2).
    return ServiceError(401, "authentication_error", code, message, headers={"WWW-Authenticate": "Bearer"})


def authorize(exchange: Exchange) -> None:
    """Reject a key without the scope, or an organization without the service line, of the operation (403)."""
    row = exchange.request.operation.row
    if row.scope is not None and row.scope not in exchange.key.scopes:
        raise ServiceError(403, "permission_error", "scope_missing", f"The API key lacks the scope {row.scope}.")
    if row.line and FOLLOW_UP not in exchange.tenant.organization.service_lines:
        raise ServiceError(
            403, "permission_error", "service_line_missing", f"The organization lacks the service line {FOLLOW_UP}."
        )


def limit_rate(exchange: Exchange) -> None:
    """Reject a request above the rate limit of its key (429; specification, section 8)."""
    tenant = exchange.tenant
    if not tenant.rate_limiter.limit:
        return
    with tenant.lock:
        wait = tenant.rate_limiter.take(exchange.key.value, tenant.clock.advanced)
    if wait is not None:
        # In whole seconds, rounded up: a client that comes a moment too early is rejected again.
        raise ServiceError(
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            "Too many requests in a minute; Retry-After says when to try again.",
            headers={"Retry-After": str(max(1, math.ceil(wait)))},
        )


def check_version(exchange: Exchange) -> None:
    """Reject an unknown ``Service-Version`` (400)."""
    if exchange.request.headers.get("service-version", SERVICE_VERSION) != SERVICE_VERSION:
        raise invalid("version_unknown", f"The versions are: {SERVICE_VERSION}.", "Service-Version")


def apply_delay(exchange: Exchange) -> None:
    """Apply a delay while the idempotency key is claimed, so that a concurrent request gets a 409."""
    fault = exchange.fault
    if fault is not None and fault.when == "before" and fault.kind == "delay":
        apply(fault, exchange)


def apply_fault_after(exchange: Exchange) -> None:
    """Apply a fault that follows the rule: its effects remain."""
    fault = exchange.fault
    if fault is not None and fault.when == "after":
        apply(fault, exchange)


def break_response(exchange: Exchange) -> None:
    """Mark a response whose connection a fault drops, or that comes too late for the client."""
    fault = exchange.fault
    if exchange.late:
        exchange.response.broken = "late"
    elif fault is not None and fault.kind in ("disconnect", "truncate"):
        exchange.response.broken = fault.kind
        exchange.is_fault_applied = True


_TYPES = {401: "authentication_error", 403: "permission_error", 409: "idempotency_error", 429: "rate_limit_error"}


def apply(fault: Fault, exchange: Exchange) -> None:
    """Apply a fault to a call.

    A fault that breaks the connection after the rule has run is applied later, by the server.

    Raises:
        ServiceError: the error response.
    """
    exchange.is_fault_applied = True
    if fault.kind == "delay":
        _delay(fault.seconds, exchange)
    elif fault.kind == "status":
        raise _error(fault, exchange)
    elif fault.when == "before":
        raise ServiceError(500, "api_error", "fault", "The connection is dropped.")


def _delay(seconds: float, exchange: Exchange) -> None:
    """Let time pass. In virtual time, no more than the client waits: the request itself is handled in any case."""
    if not exchange.registry.has_virtual_time:
        exchange.registry.pause(seconds)
        exchange.late = exchange.request.client_has_left()
        return
    timeout = exchange.request.read_timeout
    if timeout is not None and timeout < seconds:
        exchange.late, seconds = True, timeout
    wait(exchange.tenant, seconds)


def _error(fault: Fault, exchange: Exchange) -> ServiceError:
    kind = "api_error" if fault.status >= 500 else _TYPES.get(fault.status, "invalid_request_error")
    headers = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
    is_batch = fault.status == 500 and exchange.request.operation.row.batch
    body = events.all_failed(exchange.sent_events(), INJECTED) if is_batch else {}
    code = "resource_missing" if fault.status == 404 else "fault"  # the specification fixes the code of a 404
    return ServiceError(fault.status, kind, code, INJECTED, headers=headers, body=body)


logger: logging.Logger = logging.getLogger("followup_mockserver")

STEPS: tuple[Callable[[Exchange], None], ...] = (
    find_tenant,
    # Before the key is checked: an outage does not depend on it.
    match_fault,
    authenticate,
    authorize,
    # The rate is that of a key, so it must be a valid one.
    limit_rate,
    check_version,
    # After all that rejects a request without looking at its body, and before a delay: a copy meets a 409 meanwhile.
    responding.claim_idempotency_key,
    apply_delay,
    responding.respond,
    apply_fault_after,
)
"""A ``ServiceError`` of a step skips those that follow."""

FINAL_STEPS: tuple[Callable[[Exchange], None], ...] = (
    responding.release_idempotency_key,
    break_response,
    responding.record_call,
)
"""They run for every response, also for an error."""

INTERNAL_ERROR = ServiceError(500, "api_error", "internal_error", "The mock server failed; see its log.")


class Gateway:
    """Handles the requests to the operations of a mock.

    Attributes:
        registry: the tenants of the mock.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry: Registry = registry

    def handle(self, request: Request) -> Response:
        """Handle a request, and return its response. Never raises; every request is recorded in the journal."""
        exchange = Exchange(request=request, registry=self.registry, began=RealTime.monotonic())
        try:
            for step in STEPS:
                step(exchange)
        except ServiceError as error:
            exchange.error = error
        except Exception:  # a bug in the mock: the client gets an error in the service's format, not an HTML page
            logger.exception("%s failed", request.operation.name)
            exchange.error = INTERNAL_ERROR
        if exchange.error is not None:
            exchange.response = error_response(exchange.error)
        for step in FINAL_STEPS:
            step(exchange)
        return exchange.response

    def reject(self, error: ServiceError) -> Response:
        """Return the response to a request that matches no operation, because of its path or its method."""
        response = error_response(error)
        tenant = self.registry.default
        with tenant.lock:
            response.headers |= {"Request-Id": tenant.ids.new(REQUEST_ID_PREFIX), "Service-Version": SERVICE_VERSION}
        return response
