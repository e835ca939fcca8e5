"""Claims, replays and releases idempotency keys (specification, sections 4 and 7)."""

import hashlib
import re

from followup._for_mockserver import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE
from followup_mockserver.gateway.request import Exchange, Request
from followup_mockserver.schema.errors import ServiceError, invalid

_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY)


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


def release_idempotency_key(exchange: Exchange) -> None:
    """Release the idempotency key of a request that failed, so that it can be used again."""
    if exchange.claimed is not None:
        with exchange.tenant.lock:
            exchange.tenant.idempotency.release(exchange.claimed)


def _fingerprint(request: Request) -> bytes:
    source = b"\0".join((request.operation.method.encode(), request.path.encode(), request.body or b""))
    return hashlib.sha256(source).digest()
