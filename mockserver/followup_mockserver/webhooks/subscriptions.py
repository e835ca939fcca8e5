"""The outbound event types, and which endpoints are subscribed to them (specification, section 6.2)."""

from typing import get_args

from followup import WebhookEndpoint
from followup._for_mockserver import OutboundEventType

EVERY_TYPE = "*"
OUTBOUND_TYPES: tuple[OutboundEventType, ...] = tuple(
    name for arm in get_args(OutboundEventType) for name in get_args(arm)
)
"""The outbound event types, in the order of the specification."""


def is_subscribed(endpoint: WebhookEndpoint, type: OutboundEventType) -> bool:
    """Return whether an endpoint is subscribed to a type, whatever its status."""
    return not {type, EVERY_TYPE}.isdisjoint(endpoint.enabled_events)
