"""Signed webhook requests, as the service sends them."""

import itertools
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from followup.webhooks import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign

SECRET = "whsec_test"
START = datetime(2026, 9, 28, 12, tzinfo=UTC)

_numbers = itertools.count(1)


def body_of(
    id: str | None = None, type: str = "appointment.created", *, ref: str = "apt_1", minute: float = 0, **fields: Any
) -> bytes:
    """Return the body of a webhook; it occurred so many minutes after noon."""
    occurred_at = (START + timedelta(minutes=minute)).isoformat(timespec="milliseconds")
    event = {
        "id": id or f"whd_{next(_numbers)}",
        "object": "event",
        "type": type,
        "apiVersion": "2026-09-28",
        "livemode": False,
        "occurredAt": occurred_at.replace("+00:00", "Z"),
        "ref": ref,
        "data": {"patient": {"fullName": "Ana Núñez", "phone": "+5491155550000"}},
    }
    return json.dumps(event | fields, ensure_ascii=False).encode()


def headers_of(body: bytes, secret: str = SECRET, *, sent: float | None = None) -> dict[str, str]:
    """Return the headers of a webhook with this body."""
    timestamp = int(time.time() if sent is None else sent)
    return {TIMESTAMP_HEADER: str(timestamp), SIGNATURE_HEADER: sign(body, secret, timestamp)}
