"""Webhook deliveries (specification, section 4): what can be read of them."""

from typing import Any

from followup import WebhookDelivery
from followup_mockserver.rules.paging import Listed, page
from followup_mockserver.state.tenant import World


def list_(world: World, **query: Any) -> Listed[WebhookDelivery]:
    """A page of deliveries."""
    return page(world.webhook_deliveries, query, where=("webhook_endpoint", "status"))
