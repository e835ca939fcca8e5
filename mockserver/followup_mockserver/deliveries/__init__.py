"""Webhook deliveries: queued, attempted over a socket or in this process, and recorded.

Here are the outbound event types, the data of their webhooks, and the request of an attempt (specification, section
6.2).
"""

import json
from collections.abc import Callable
from typing import Any, get_args

from followup import WebhookDelivery, WebhookEndpoint
from followup import _for_mockserver as sdk
from followup_mockserver.world.state.tenant import DomainEvent

EVERY_TYPE = "*"
OUTBOUND_TYPES: tuple[sdk.OutboundEventType, ...] = tuple(
    name for arm in get_args(sdk.OutboundEventType) for name in get_args(arm)
)
"""The outbound event types, in the order of the specification."""


def is_subscribed(endpoint: WebhookEndpoint, type: sdk.OutboundEventType) -> bool:
    """Return whether an endpoint is subscribed to a type, whatever its status."""
    return not {type, EVERY_TYPE}.isdisjoint(endpoint.enabled_events)


def data_of(event: DomainEvent) -> dict[str, Any]:
    """Return the ``data`` of the webhook for a domain event."""
    special = _SPECIAL_DATA.get(event.type)
    if special is not None:
        return special(event)
    data = {event.name: sdk.encode(event.subject)}
    if event.patient is not None:
        data["patient"] = sdk.encode(event.patient)
    return {**data, **event.details}


def _intake_ready_data(event: DomainEvent) -> dict[str, Any]:
    intake, patient = event.subject, event.patient
    requested = intake.data.get("patient", {})
    return {
        "patient": {
            "fullName": (patient.full_name if patient else None) or requested.get("fullName"),
            "dni": (patient.dni if patient else None) or requested.get("dni"),
        },
        "requestedService": intake.data.get("requestedService"),
        "intake": {"id": intake.id, "missing": list(intake.missing)},
    }


def _order_issued_data(event: DomainEvent) -> dict[str, Any]:
    """Return the data of the inbound event, with the patient as the service knows them, if it does."""
    return {**event.subject.data, **({"patient": sdk.encode(event.patient)} if event.patient else {})}


_SPECIAL_DATA: dict[str, Callable[[DomainEvent], dict[str, Any]]] = {
    "intake.ready": _intake_ready_data,
    "order.issued": _order_issued_data,
}
"""Functions for the types whose ``data`` is not simply the object and its patient."""


USER_AGENT = "Service-Webhooks/1.0"


def headers_of(*, event_type: str, number: int, timestamp: int, signature: str) -> dict[str, str]:
    """Return the request headers of an attempt (specification, section 6.2, Request headers)."""
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        sdk.SIGNATURE_HEADER: signature,
        sdk.TIMESTAMP_HEADER: str(timestamp),
        sdk.EVENT_TYPE_HEADER: event_type,
        sdk.ATTEMPT_HEADER: str(number),
    }


def body_of(delivery: WebhookDelivery) -> bytes:
    """Return the raw body of a delivery, which is the same in every attempt."""
    return json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":")).encode()
