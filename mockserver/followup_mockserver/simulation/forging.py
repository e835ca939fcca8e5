"""Forged webhooks: an invented event, a genuine body with a wrong signature, and an old request that is replayed."""

import json
import time
from collections.abc import Mapping
from typing import Any

import attrs
import httpx

from followup._for_mockserver import SERVICE_VERSION, format_timestamp, sign
from followup_mockserver.service import MockService
from followup_mockserver.simulation.history import Forge
from followup_mockserver.webhooks.requests import body_of, headers_of

INVENTED, WRONG_SIGNATURE, REPLAY = FORGERIES = ("invented", "wrong signature", "replay")

_WRONG_SECRET = "whsec_" + "0" * 24
_AGE_OF_REPLAY = 3600
"""Seconds, in real time; the tolerance of receivers is 300 (specification, section 6.2, Signature)."""

_INVENTED_DATA = {
    "appointment": {
        "id": "apt_forged000000000000000001",
        "object": "appointment",
        "patient": "pat_forged000000000000000001",
        "doctor": None,
        "startAt": "2040-04-01T12:00:00.000Z",
        "status": "confirmed",
        "type": None,
        "externalId": "B1",
        "source": "api",
        "cancelledAt": None,
        "createdAt": "2040-01-02T12:00:00.000Z",
        "updatedAt": "2040-01-02T12:00:00.000Z",
    }
}
"""Data of an event that is forged before the service has sent any."""


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
    """Return a forged request; None if the service has sent nothing yet that it could be made of.

    Args:
        service: the service.
        url: URL of the receiver.
        secret: signing secret of the endpoint.
        step: what to forge.
        number: number of the forgery, which makes the ids of invented events differ.
    """
    kind = FORGERIES[step.kind]
    now = int(time.time())
    known = [each for each in reversed(service.deliveries) if kind != REPLAY or each.attempts > 0]
    if kind == INVENTED:
        appointments = [each for each in known if "appointment" in each.payload["data"]]
        genuine = appointments[step.delivery % len(appointments)].payload["data"] if appointments else _INVENTED_DATA
        payload = _invented(genuine, f"whd_forged{number:018}", service)
        story = f"A forged webhook arrived, with an invented {payload['type']}"
        return _forgery(kind, url, story, payload, json.dumps(payload).encode(), _WRONG_SECRET, now)
    if not known:
        return None
    delivery = known[step.delivery % len(known)]
    body = body_of(delivery)
    if kind == WRONG_SIGNATURE:
        story = f"A forged webhook arrived: the body of {delivery.event_type} with a wrong signature"
        return _forgery(kind, url, story, delivery.payload, body, _WRONG_SECRET, now)
    story = f"Somebody replayed an old request with {delivery.event_type}"
    return _forgery(kind, url, story, delivery.payload, body, secret, now - _AGE_OF_REPLAY)


def _invented(genuine: Mapping[str, Any], id: str, service: MockService) -> dict[str, Any]:
    """Return an event that cancels the appointment in the data of a genuine one."""
    now = format_timestamp(service.clock.now)
    return {
        "id": id,
        "object": "event",
        "type": "appointment.cancelled",
        "apiVersion": SERVICE_VERSION,
        "livemode": False,
        "occurredAt": now,
        "ref": genuine["appointment"]["id"],
        "data": {**genuine, "appointment": {**genuine["appointment"], "status": "cancelled", "cancelledAt": now}},
    }


def _forgery(
    kind: str, url: str, story: str, payload: Mapping[str, Any], body: bytes, secret: str, timestamp: int
) -> Forgery:
    headers = headers_of(
        event_type=payload["type"], number=1, timestamp=timestamp, signature=sign(body, secret, timestamp)
    )
    return Forgery(kind, payload["id"], story, httpx.Request("POST", url, headers=headers, content=body))
