"""Applies a fault to a call, with the response that the service would send (specification, section 7)."""

from followup_mockserver.gateway.parsing import parse_json
from followup_mockserver.gateway.request import Exchange, Request
from followup_mockserver.rules import events
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.state.access import wait
from followup_mockserver.state.faults import INJECTED, OPERATION_OF_EVENTS, Fault

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "idempotency_error",
    429: "rate_limit_error",
}
_CODES = {404: "resource_missing"}
"""Codes that the specification fixes. All other faults have the code ``fault``."""


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
        raise _error(fault, exchange.request)
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


def _error(fault: Fault, request: Request) -> ServiceError:
    kind = "api_error" if fault.status >= 500 else _TYPES.get(fault.status, "invalid_request_error")
    headers = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
    body = {}
    if fault.status == 500 and request.operation.name == OPERATION_OF_EVENTS:
        body = events.all_failed(_json(request), INJECTED)
    return ServiceError(fault.status, kind, _CODES.get(fault.status, "fault"), INJECTED, headers=headers, body=body)


def _json(request: Request) -> object:
    try:
        return parse_json(request.headers, request.body or b"")
    except ServiceError:
        return None
