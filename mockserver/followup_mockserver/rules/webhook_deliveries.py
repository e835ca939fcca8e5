"""Webhook deliveries (specification, section 4), which the API can only read."""

from typing import Any

from followup import WebhookDelivery
from followup_mockserver.rules.paging import page
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.tenant import Tenant


def list_(tenant: Tenant, **query: Any) -> PageResult[WebhookDelivery]:
    """Return a page of webhook deliveries, most recently created first."""
    return page(tenant.webhook_deliveries, query, where=("webhook_endpoint", "status"))
