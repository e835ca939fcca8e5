"""The page of a webhook endpoint: whether its receiver works, its deliveries, and the other endpoints."""

from collections.abc import Mapping
from datetime import datetime
from itertools import takewhile
from typing import Any, Literal, get_args

import attrs

from followup import WebhookEndpoint
from followup._for_mockserver import WebhookDeliveryStatus
from followup_mockserver.dashboard.deliveries import result_of
from followup_mockserver.dashboard.objects import page_of
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.payloads import OUTBOUND_TYPES, is_subscribed

DELIVERIES = 10
"""Deliveries that the page shows, the latest."""

_SHOWN_ELSEWHERE = ("url", "secret", "lastError", "lastDeliveredAt", "status")


@attrs.frozen(kw_only=True)
class Health:
    """Whether the receiver of an endpoint works.

    Attributes:
        tone: the class of its colour.
        headline: such as ``Failing``.
        since: when the first of the latest failures in a row was; None if the last attempt succeeded.
        failures: number of the latest failures in a row.
        reason: the result of the last attempt; None if there was none.
        delivered_at: when the last delivery succeeded; None if none did.
        waiting: number of pending deliveries.
    """

    tone: Literal["succeeded", "failed", "pending", "disabled"]
    headline: str
    since: datetime | None
    failures: int
    reason: str | None
    delivered_at: datetime | None
    waiting: int


def endpoint_details(tenant: Tenant, endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the variables of the page of an endpoint."""
    return {
        "health": health_of(tenant, endpoint),
        "counts": _counts(tenant, endpoint),
        "related": [page_of(tenant, "webhook_deliveries", {"webhook_endpoint": endpoint.id}, DELIVERIES)],
        "others": [_compared(endpoint, other) for other in tenant.webhook_endpoints if other.id != endpoint.id],
        "shown_elsewhere": _SHOWN_ELSEWHERE,
    }


def health_of(tenant: Tenant, endpoint: WebhookEndpoint) -> Health:
    """Return whether the receiver of an endpoint works."""
    attempts = sorted(
        (each for each in tenant.attempts if each.webhook_endpoint == endpoint.id), key=lambda each: each.at
    )
    failures = [*takewhile(lambda each: each.error is not None, reversed(attempts))]
    tone: Literal["succeeded", "failed", "pending", "disabled"]
    if endpoint.status == "disabled":
        tone, headline = "disabled", "Disabled"
    elif failures:
        tone, headline = "failed", "Failing"
    elif attempts or endpoint.last_delivered_at:
        tone, headline = "succeeded", "OK"
    else:
        tone, headline = "pending", "No attempt yet"
    return Health(
        tone=tone,
        headline=headline,
        since=failures[-1].at if failures else None,
        failures=len(failures),
        reason=result_of(attempts[-1]) if attempts else None,
        delivered_at=endpoint.last_delivered_at,
        waiting=_counts(tenant, endpoint)["pending"],
    )


def _counts(tenant: Tenant, endpoint: WebhookEndpoint) -> Mapping[str, int]:
    """Return the number of deliveries by status, and of all by an empty text."""
    deliveries = tenant.webhook_deliveries.find_all("webhook_endpoint", endpoint.id)
    statuses = [each.status for each in deliveries]
    return {"": len(statuses), **{status: statuses.count(status) for status in get_args(WebhookDeliveryStatus)}}


def _compared(endpoint: WebhookEndpoint, other: WebhookEndpoint) -> Mapping[str, Any]:
    """Return another endpoint, and how many types both are subscribed to."""
    shared = [each for each in OUTBOUND_TYPES if is_subscribed(endpoint, each) and is_subscribed(other, each)]
    return {"endpoint": other, "shared_types": len(shared)}
