"""Forged webhooks: an invented event, a genuine body with a wrong signature, and an old request that is replayed."""

import json
import time
from collections.abc import Mapping
from typing import Any

import attrs
import httpx

from followup import WebhookDelivery
from followup._for_mockserver import SERVICE_VERSION, format_timestamp, sign
from followup_mockserver.service import MockService
from followup_mockserver.simulation.history import Forge
from followup_mockserver.webhooks.deliveries import body_of, headers_of

INVENTED, WRONG_SIGNATURE, REPLAY = FORGERIES = ("invented", "wrong signature", "replay")

_WRONG_SECRET = "whsec_" + "0" * 24
_AGE_OF_REPLAY = 3600
"""Seconds, in real time; the tolerance of receivers is 300 (specification, section 6.2, Signature)."""


@attrs.frozen
class Forgery:
    """A forged request.

    Attributes:
        kind: one of ``FORGERIES``.
        event_id: id in the body.
        story: what arrives.
        request: the request.
    """

    kind: str
    event_id: str
    story: str
    request: httpx.Request


def forge(service: MockService, url: str, secret: str, step: Forge, number: int) -> Forgery | None:
    """Return a forged request; None if there is no genuine one yet that it could be made of.

    Args:
        service: the service.
        url: URL of the receiver.
        secret: signing secret of the endpoint.
        step: what to forge.
        number: number of the forgery, which makes the ids of invented events differ.
    """
    kind = FORGERIES[step.kind]
    known = [each for each in reversed(service.deliveries) if kind != REPLAY or each.attempts > 0]
    if not known:
        return None
    delivery = known[step.delivery % len(known)]
    now = int(time.time())
    if kind == INVENTED:
        payload = _invented(delivery, f"whd_forged{number:018}")
        story = f"A forged webhook arrived, with an invented {payload['type']}"
        return _forgery(kind, url, story, payload, json.dumps(payload).encode(), _WRONG_SECRET, now)
    body = body_of(delivery)
    if kind == WRONG_SIGNATURE:
        story = f"A forged webhook arrived: the body of {delivery.event_type} with a wrong signature"
        return _forgery(kind, url, story, delivery.payload, body, _WRONG_SECRET, now)
    story = f"Somebody replayed an old request with {delivery.event_type}"
    return _forgery(kind, url, story, delivery.payload, body, secret, now - _AGE_OF_REPLAY)


def _invented(genuine: WebhookDelivery, id: str) -> dict[str, Any]:
    """Return an event that cancels the appointment of a genuine one."""
    data = {
        name: {**value, "status": "cancelled", "cancelledAt": format_timestamp(genuine.created_at)}
        if name == "appointment"
        else value
        for name, value in genuine.payload["data"].items()
    }
    return {**genuine.payload, "id": id, "type": "appointment.cancelled", "apiVersion": SERVICE_VERSION, "data": data}


def _forgery(
    kind: str, url: str, story: str, payload: Mapping[str, Any], body: bytes, secret: str, timestamp: int
) -> Forgery:
    headers = headers_of(
        event_type=payload["type"], number=1, timestamp=timestamp, signature=sign(body, secret, timestamp)
    )
    return Forgery(kind, payload["id"], story, httpx.Request("POST", url, headers=headers, content=body))
