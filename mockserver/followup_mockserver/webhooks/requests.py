"""The request of a webhook attempt: its raw body and its headers (specification, section 6.2)."""

import json

from followup import WebhookDelivery
from followup._for_mockserver import ATTEMPT_HEADER, EVENT_TYPE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER

USER_AGENT = "Service-Webhooks/1.0"


def headers_of(*, event_type: str, number: int, timestamp: int, signature: str) -> dict[str, str]:
    """Return the request headers of an attempt (specification, section 6.2, Request headers)."""
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        SIGNATURE_HEADER: signature,
        TIMESTAMP_HEADER: str(timestamp),
        EVENT_TYPE_HEADER: event_type,
        ATTEMPT_HEADER: str(number),
    }


def body_of(delivery: WebhookDelivery) -> bytes:
    """Return the raw body of a delivery, which is the same in every attempt."""
    return json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":")).encode()
