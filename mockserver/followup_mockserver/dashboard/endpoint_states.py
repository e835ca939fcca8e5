"""The state of a webhook endpoint: its status, and whether its receiver works."""

from typing import Literal

from followup import WebhookEndpoint


def state_of(endpoint: WebhookEndpoint) -> Literal["enabled", "disabled", "failing"]:
    """Return the state of an endpoint: ``failing`` after a failed attempt, until an attempt succeeds."""
    if endpoint.status == "disabled":
        return "disabled"
    if endpoint.last_error is None:
        return "enabled"
    delivered = endpoint.last_delivered_at
    return "failing" if delivered is None or delivered < endpoint.last_error.at else "enabled"


def has_problem(endpoint: WebhookEndpoint) -> bool:
    """Return whether an endpoint receives nothing, or its last attempt failed."""
    return state_of(endpoint) != "enabled"
