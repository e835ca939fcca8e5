"""The checks that precede every rule, and the faults that change a call. A ``ServiceError`` ends the request."""

import math

from followup._for_mockserver import SERVICE_VERSION
from followup_mockserver.gateway import auth
from followup_mockserver.gateway.fault_responses import apply
from followup_mockserver.gateway.request import Exchange
from followup_mockserver.schema.errors import ServiceError, invalid

VERSIONS = (SERVICE_VERSION,)
"""Values of ``Service-Version`` that a request may send (specification, section 9)."""


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
