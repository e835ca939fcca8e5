"""Records each call, and reports it to the observers of this process."""

import json

from followup._for_mockserver import SERVICE_VERSION
from followup_mockserver.gateway.request import Exchange
from followup_mockserver.state import observers
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.copies import copied
from followup_mockserver.state.faults import OPERATION_OF_EVENTS
from followup_mockserver.state.journal import REQUEST_ID_PREFIX, CallDetails, CallOutcome, JournalEntry


def record_call(exchange: Exchange) -> None:
    """Record the call in the journal, under its request id. A request that reached no rule gets a new one."""
    request, response, tenant = exchange.request, exchange.response, exchange.tenant
    error, fault = exchange.error, exchange.fault if exchange.is_fault_applied else None
    accepted = _accepted(exchange)
    with tenant.lock:
        request_id = exchange.request_id or tenant.ids.new(REQUEST_ID_PREFIX)
        key, method = request.headers.get("idempotency-key"), request.operation.method
        exchange.entry = JournalEntry(
            operation=request.operation.name,
            method=method,
            path=request.path,
            status=0 if response.broken == "disconnect" else response.status,
            request_id=request_id,
            idempotency_key=key,
            at=tenant.now(),
            error_code=None if error is None else error.code,
            param=None if error is None else error.param,
            attempt=tenant.journal.next_attempt(key, method, request.path),
            replayed=exchange.is_replay,
            fault=None if fault is None else fault.kind,
            events=len(accepted),
            refused=accepted.count(False),
            ignored_keys=exchange.ignored_keys,
        )
        tenant.journal.record(
            exchange.entry,
            CallOutcome(
                about=exchange.about or request.path_id,
                replay_of=exchange.replay_of if exchange.is_replay else None,
                fault=copied(fault),
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


def _accepted(exchange: Exchange) -> list[bool]:
    """Return for each event of a batch whether the service accepted it; empty for a response without results."""
    fault = exchange.fault if exchange.is_fault_applied else None
    if exchange.request.operation.name != OPERATION_OF_EVENTS or (fault is not None and fault.kind == "status"):
        return []  # a fault invents its results
    return [result["accepted"] for result in json.loads(exchange.response.body).get("results", ())]


def report_call(exchange: Exchange) -> None:
    """Report the call to the observers of this process."""
    if not observers.observers:
        return
    entry = exchange.entry
    call = observers.EndedCall(
        operation=entry.operation,
        method=entry.method,
        path=exchange.request.path,
        status=None if exchange.response.broken else exchange.response.status,
        error_code=entry.error_code,
        param=entry.param,
        attempt=entry.attempt,
        replayed=entry.replayed,
        fault=entry.fault,
        events=entry.events,
        refused=entry.refused,
        seconds=RealTime.monotonic() - exchange.began,
        ignored_keys=exchange.ignored_keys,
    )
    for observer in observers.observers:
        observer.call_ended(call)
