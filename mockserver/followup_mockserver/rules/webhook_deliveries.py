"""Webhook deliveries (specification, section 4): what can be read of them."""

from typing import Any

from followup import WebhookDelivery
from followup_mockserver.rules.paging import page
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.tenant import Tenant


def list_(tenant: Tenant, **query: Any) -> PageResult[WebhookDelivery]:
    """A page of deliveries."""
    return page(tenant.webhook_deliveries, query, where=("webhook_endpoint", "status"))
