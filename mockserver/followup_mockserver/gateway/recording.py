"""Records each call, and reports it to the observers of this process."""

from followup._for_mockserver import SERVICE_VERSION
from followup_mockserver.gateway.request import Exchange
from followup_mockserver.state import observers
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.copies import copied
from followup_mockserver.state.journal import REQUEST_ID_PREFIX, CallDetails, CallOutcome, JournalEntry


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
