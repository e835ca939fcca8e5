"""The way of a request through the service, read from top to bottom in ``STEPS``."""

import hashlib
import json
import logging
import math
import re
from collections.abc import Callable
from typing import Any

import attrs

from followup._annotations import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE, SERVICE_VERSION
from followup._codec.encode import encode
from followup_mockserver.gateway import auth
from followup_mockserver.gateway.fault_responses import carry_out
from followup_mockserver.gateway.parsing import Parser
from followup_mockserver.gateway.request import Answer, RawRequest
from followup_mockserver.schema.errors import ServiceError, invalid, missing
from followup_mockserver.settings import KeyRecord
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.idempotency import IdempotencyRecord
from followup_mockserver.state.journal import REQUEST_ID_PREFIX, CallDetails, JournalEntry
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.request_faults import Fault
from followup_mockserver.state.tenant import Tenant

logger = logging.getLogger("followup_mockserver")

VERSIONS = (SERVICE_VERSION,)
"""The dated versions that a request may ask for (specification, section 9)."""

_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY)


@attrs.define(kw_only=True)
class Exchange:
    """A request on its way; the steps fill in what they find out."""

    request: RawRequest
    parser: Parser
    began: float
    """When it arrived, in real time."""
    known_tenant: Tenant | None
    """The tenant of the key; None for a key that nobody has."""
    tenant: Tenant
    """The tenant of the key, or else the default one: faults and the journal are there also without a key."""
    key_value: str | None
    pause: Callable[[float], None]
    """Waits for so many seconds, or until the mock stops."""
    key: KeyRecord | None = None
    fault: Fault | None = None
    idempotency: IdempotencyRecord | None = None
    """Set while this request is the one that holds the key."""
    answer: Answer | None = None


class Gateway:
    """Answers the requests of a mock's operations."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._parser = Parser(registry.options)

    def handle(self, request: RawRequest) -> Answer:
        """The answer to a request; whatever happens, there is one, and it is in the journal."""
        began = RealTime.monotonic()
        value = auth.bearer_token(request.headers)
        known = self._registry.by_key(value) if value else None
        exchange = Exchange(
            request=request,
            parser=self._parser,
            began=began,
            known_tenant=known,
            tenant=known or self._registry.default,
            key_value=value,
            pause=self._registry.pause,
        )
        answer = _walk(exchange)
        _sign_off(exchange, answer)
        return answer


def _walk(exchange: Exchange) -> Answer:
    try:
        for step in STEPS:
            step(exchange)
    except ServiceError as error:
        _release_key(exchange)
        return error_answer(error)
    except Exception:  # the mock's own bug; the caller gets the service's 500, not a page of HTML
        _release_key(exchange)
        logger.exception("%s failed", exchange.request.operation.name)
        return error_answer(ServiceError(500, "api_error", "internal_error", "The mock server failed; see its log."))
    assert exchange.answer is not None
    return exchange.answer


def error_answer(error: ServiceError) -> Answer:
    """An error in the service's one format (specification, section 7)."""
    return Answer(status=error.status, headers=dict(error.headers), body=_json_bytes(error.as_json()))


def answer_outside(registry: Registry, error: ServiceError) -> Answer:
    """The answer to a request that is for no operation: an unknown path, or a wrong method."""
    answer = error_answer(error)
    tenant = registry.default
    with tenant.lock:
        answer.headers |= {"Request-Id": tenant.ids.new(REQUEST_ID_PREFIX), "Service-Version": SERVICE_VERSION}
    return answer


# --- the steps ---------------------------------------------------------------------------------------------------


def meet_fault(exchange: Exchange) -> None:
    tenant = exchange.tenant
    if not tenant.faults:
        return
    with tenant.lock:
        exchange.fault = tenant.faults.strike(exchange.request.operation.name)
    fault = exchange.fault
    if fault is not None and fault.when == "before" and fault.kind != "delay":
        carry_out(fault, exchange.request, exchange.pause)


def authenticate(exchange: Exchange) -> None:
    exchange.key = auth.authenticate(exchange.known_tenant, exchange.key_value)


def authorize(exchange: Exchange) -> None:
    assert exchange.key is not None
    auth.authorize(exchange.tenant, exchange.key, exchange.request.operation)


def limit_rate(exchange: Exchange) -> None:
    assert exchange.key is not None
    tenant = exchange.tenant
    if not tenant.rate_limiter.limit:
        return
    with tenant.lock:
        wait = tenant.rate_limiter.take(exchange.key.value, tenant.clock.moved)
    if wait is not None:
        raise ServiceError(
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            "Too many requests in a minute; Retry-After says when to try again.",
            headers={"Retry-After": str(max(1, math.ceil(wait)))},
        )


def check_version(exchange: Exchange) -> None:
    version = exchange.request.headers.get("service-version")
    if version is not None and version not in VERSIONS:
        raise invalid("version_unknown", f"The versions are: {', '.join(VERSIONS)}.", "Service-Version")


def claim_idempotency_key(exchange: Exchange) -> None:
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
            exchange.idempotency = tenant.idempotency.begin(key, fingerprint, now)
        elif record.fingerprint != fingerprint:
            raise ServiceError(
                400,
                "idempotency_error",
                "idempotency_key_reused",
                "This key was used with another method, path or body; use a new one for a new request.",
                param="Idempotency-Key",
            )
        elif record.answer is None:
            raise ServiceError(
                409,
                "idempotency_error",
                "idempotency_key_in_use",
                "Another request with this key is in progress; try again with the same key.",
                param="Idempotency-Key",
            )
        else:
            exchange.answer = Answer(status=200, headers={"Idempotent-Replayed": "true"}, body=record.answer)


def meet_delay(exchange: Exchange) -> None:
    """A delay comes once the idempotency key is claimed, so that a second request meets one that is in progress."""
    fault = exchange.fault
    if fault is not None and fault.when == "before" and fault.kind == "delay":
        carry_out(fault, exchange.request, exchange.pause)


def do_the_work(exchange: Exchange) -> None:
    """Find the object (404), parse (400) and run the rule, with the tenant to itself."""
    if exchange.answer is not None:
        return
    request, tenant = exchange.request, exchange.tenant
    operation = request.operation
    with tenant.lock:
        found = (_find(exchange),) if operation.has_path_id else ()
        arguments = exchange.parser.arguments(operation, request.query, request.headers, request.body)
        if operation.row.takes_key:
            arguments["key"] = exchange.key
        result = operation.row.rule(tenant, *found, **arguments)
        body = _json_bytes(_encoded(exchange, result))
        if exchange.idempotency is not None:
            tenant.idempotency.finish(exchange.idempotency, body)
            exchange.idempotency = None
        tenant.notify()
    exchange.answer = Answer(status=200, body=body)


def meet_fault_after(exchange: Exchange) -> None:
    if exchange.fault is not None and exchange.fault.when == "after":
        carry_out(exchange.fault, exchange.request, exchange.pause)


STEPS: tuple[Callable[[Exchange], None], ...] = (
    meet_fault,
    authenticate,
    authorize,
    limit_rate,
    check_version,
    claim_idempotency_key,
    meet_delay,
    do_the_work,
    meet_fault_after,
)


def _sign_off(exchange: Exchange, answer: Answer) -> None:
    """Break the answer if a fault wants it, give it its headers, and write it into the journal."""
    fault = exchange.fault
    if fault is not None and fault.kind in ("disconnect", "truncate"):
        answer.broken = fault.kind
    request, tenant = exchange.request, exchange.tenant
    with tenant.lock:
        request_id = tenant.ids.new(REQUEST_ID_PREFIX)
        tenant.journal.record(
            JournalEntry(
                operation=request.operation.name,
                method=request.operation.method,
                path=request.path,
                status=0 if answer.broken == "disconnect" else answer.status,
                request_id=request_id,
                idempotency_key=request.headers.get("idempotency-key"),
                at=tenant.now(),
            ),
            CallDetails(
                query=request.query,
                request_headers=request.headers,
                request_body=request.body,
                response_headers=answer.headers,
                response_body=answer.body,
                seconds=RealTime.monotonic() - exchange.began,
            ),
        )
        tenant.notify()
    answer.headers["Request-Id"] = request_id
    answer.headers["Service-Version"] = SERVICE_VERSION


def _release_key(exchange: Exchange) -> None:
    if exchange.idempotency is not None:
        with exchange.tenant.lock:
            exchange.tenant.idempotency.release(exchange.idempotency)


def _fingerprint(request: RawRequest) -> bytes:
    source = b"\0".join((request.operation.method.encode(), request.path.encode(), request.body or b""))
    return hashlib.sha256(source).digest()


def _find(exchange: Exchange) -> Any:
    """The object of the path.

    Raises:
        ServiceError: 400 for an id of another kind, 404 for one that nothing has.
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
    if not isinstance(result, tuple):
        return encode(result)
    items, more = result
    url = exchange.request.operation.path
    return {"object": "list", "data": [encode(item) for item in items], "hasMore": more, "url": url}


def _json_bytes(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
