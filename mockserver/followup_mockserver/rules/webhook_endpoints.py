"""Webhook endpoints (specification, sections 3 and 4)."""

from collections.abc import Sequence
from typing import Any

import attrs

from followup import DeletedObject, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import encode
from followup_mockserver import deliveries
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.state.tenant import Tenant

SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix, not a secret


def create(
    tenant: Tenant,
    *,
    url: str,
    enabled_events: Sequence[str],
    description: str | None = None,
    secret: str | None = None,
) -> WebhookEndpoint:
    """Create an endpoint, with a new secret unless there is one already. Only this result contains it."""
    endpoint = WebhookEndpoint(
        id=tenant.ids.new("we_"),
        object="webhook_endpoint",
        url=url,
        description=description,
        enabled_events=_without_repetitions(enabled_events),
        status="enabled",
        created_at=tenant.at,
    )
    tenant.webhook_endpoints.add(endpoint)
    tenant.secrets[endpoint.id] = secret = secret or tenant.ids.new(SECRET_PREFIX)
    return attrs.evolve(endpoint, secret=secret)


def update(
    tenant: Tenant, endpoint: WebhookEndpoint, *, disabled: bool | None = None, **changes: Any
) -> WebhookEndpoint:
    """Update an endpoint. Omitted fields stay unchanged; ``disabled=True`` cancels the pending attempts."""
    if "enabled_events" in changes:
        changes["enabled_events"] = _without_repetitions(changes["enabled_events"])
    if disabled is not None:
        changes["status"] = "disabled" if disabled else "enabled"
    tenant.webhook_endpoints.update(endpoint, **changes)
    if disabled:
        deliveries.fail_pending(tenant, endpoint)
    return endpoint


def delete(tenant: Tenant, endpoint: WebhookEndpoint) -> DeletedObject:
    """Delete an endpoint, with its deliveries and pending attempts."""
    deliveries.delete_all(tenant, endpoint)
    tenant.webhook_endpoints.remove(endpoint.id)
    del tenant.secrets[endpoint.id]
    return DeletedObject(id=endpoint.id, object=endpoint.object, deleted=True)


def ping(tenant: Tenant, endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Queue a ping, which does not depend on the enabled events of the endpoint."""
    if endpoint.status == "disabled":
        raise invalid("webhook_endpoint_disabled", "A disabled endpoint cannot be pinged; enable it first.")
    data = {"webhookEndpoint": encode(endpoint)}
    (delivery,) = deliveries.queue(tenant, [endpoint], "webhook.ping", data, endpoint.id)
    return delivery


def _without_repetitions(types: Sequence[str]) -> Any:
    return [*dict.fromkeys(types)]
