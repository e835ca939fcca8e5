"""Queues webhook deliveries for domain events, and cancels those of an endpoint (specification, section 6.2)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from followup import WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import SERVICE_VERSION, OutboundEventType, format_timestamp
from followup_mockserver.settings.settings import NOT_YET_SENT
from followup_mockserver.state.history import EVENT_PREFIX, Receipt, Record
from followup_mockserver.state.jobs import Job
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.tenant import DomainEvent, Tenant
from followup_mockserver.webhooks.payloads import OUTBOUND_TYPES, data_of, is_subscribed


def on_domain_event(tenant: Tenant, event: DomainEvent) -> Sequence[Receipt]:
    """Queue a domain event for every endpoint that is subscribed to its type, unless the service does not send it.

    Returns:
        For each endpoint the delivery, or the reason why none was made.
    """
    event_type = event.type
    if event_type not in OUTBOUND_TYPES:
        return ()
    if not tenant.sends_webhooks:
        return (Receipt(None, None, Outcome(Kind.MADE_FOR_TRIGGER)),)
    if event_type in NOT_YET_SENT and event_type not in tenant.organization.activated_events:
        return (Receipt(None, None, Outcome(Kind.NOT_YET_SENT, event_type)),)
    if not tenant.webhook_endpoints:
        return (_NO_ENDPOINT,)
    checked = [(each, _reason_not_to_send(each, event_type)) for each in tenant.webhook_endpoints]
    subscribers = [endpoint for endpoint, reason in checked if reason is None]
    queued = iter(queue(tenant, subscribers, event_type, data_of(event), _ref_of(tenant, event), is_reported=True))
    return [Receipt(endpoint.id, None if reason else next(queued).id, reason) for endpoint, reason in checked]


def _ref_of(tenant: Tenant, event: DomainEvent) -> str:
    if tenant.organization.ref == "trigger" and (tenant.cause or "").startswith(EVENT_PREFIX):
        return cast("str", tenant.cause)
    described: str = event.subject.id
    return described


_NO_ENDPOINT = Receipt(None, None, Outcome(Kind.NO_ENDPOINT))


def _reason_not_to_send(endpoint: WebhookEndpoint, type: OutboundEventType) -> Outcome | None:
    if not is_subscribed(endpoint, type):
        return Outcome(Kind.NOT_SUBSCRIBED, type)
    return None if endpoint.status == "enabled" else Outcome(Kind.ENDPOINT_DISABLED)


def queue(
    tenant: Tenant,
    endpoints: Sequence[WebhookEndpoint],
    type: OutboundEventType,
    data: Mapping[str, Any],
    ref: str,
    *,
    is_reported: bool = False,
) -> list[WebhookDelivery]:
    """Queue one event for these endpoints; the first attempt of each delivery is due at once.

    The history gets a record of it, unless a domain event reports it: of a ping, or of a triggered event.
    """
    receipts: list[Receipt] = []
    if not is_reported:
        tenant.history.add(Record(tenant.now(), type, ref, tenant.cause, Outcome(Kind.SENT), receipts=receipts))
    if not endpoints:
        return []  # an event that nobody receives uses up no ``occurredAt``
    now, occurred_at = tenant.now(), format_timestamp(tenant.next_event_time())
    queued = []
    for endpoint in endpoints:
        delivery_id = tenant.ids.new("whd_")
        delivery = WebhookDelivery(
            id=delivery_id,
            object="webhook_delivery",
            webhook_endpoint=endpoint.id,
            event_type=type,
            status="pending",
            attempts=0,
            next_attempt_at=now,
            payload={
                "id": delivery_id,
                "object": "event",
                "type": type,
                "apiVersion": SERVICE_VERSION,
                "livemode": tenant.organization.livemode,
                "occurredAt": occurred_at,
                "ref": ref,
                "data": data,
            },
            created_at=now,
        )
        tenant.webhook_deliveries.add(delivery)
        _schedule_first(tenant, delivery)
        queued.append(delivery)
        receipts.append(Receipt(endpoint.id, delivery_id, None))
    return queued


def _schedule_first(tenant: Tenant, delivery: WebhookDelivery) -> None:
    """Schedule the first attempt: for now, or as a webhook fault requires."""
    now, faults = delivery.created_at, tenant.webhook_faults
    fault = faults.match(delivery.id, delivery.event_type)
    faults.overtake(delivery.webhook_endpoint, delivery.id)
    at = now
    if fault is not None and fault.kind in ("late", "reorder"):
        at = now + timedelta(seconds=fault.seconds)
        tenant.webhook_deliveries.update(delivery, next_attempt_at=at)
    tenant.schedule(at, Job("delivery", delivery.id))
    if fault is not None and fault.kind == "duplicate":
        tenant.schedule(now, Job("repeated_delivery", delivery.id))
    if fault is not None and fault.kind == "reorder":
        faults.held_by_endpoint[delivery.webhook_endpoint] = delivery.id


def fail_pending(tenant: Tenant, endpoint: WebhookEndpoint) -> None:
    """Mark the pending deliveries of an endpoint that was disabled as failed; they are not attempted again."""
    for delivery in tenant.webhook_deliveries.find_all("webhook_endpoint", endpoint.id):
        if delivery.status == "pending":
            tenant.cancel_jobs(delivery.id, Outcome(Kind.DISABLED_MEANWHILE))
            error = "The endpoint was disabled."
            tenant.webhook_deliveries.update(delivery, status="failed", last_error=error, next_attempt_at=None)


def delete_all(tenant: Tenant, endpoint: WebhookEndpoint) -> None:
    """Delete every delivery of an endpoint, pending or not."""
    for delivery in tenant.webhook_deliveries.find_all("webhook_endpoint", endpoint.id):
        tenant.cancel_jobs(delivery.id, Outcome(Kind.ENDPOINT_DELETED))
        tenant.webhook_deliveries.remove(delivery.id)
        tenant.attempts.remove(delivery.id)
