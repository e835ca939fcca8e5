"""Webhook deliveries: the outbound event types, the data of their webhooks, and for which endpoints each is queued.

``dispatch`` attempts a delivery up to nine times, over a socket or in this process (specification, section 6.2). The
waits between attempts, and the 10 s of a receiver, are in ``followup._core.api_rules``.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast, get_args

import attrs

from followup import WebhookDelivery, WebhookEndpoint
from followup import _for_mockserver as sdk
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.settings import NOT_YET_SENT
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.history import EVENT_PREFIX, Receipt
from followup_mockserver.world.state.records import AttemptInProgress, ReceiverResponse
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

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
    if event.type == "intake.ready":
        return _intake_ready_data(event)
    # That of an order is the data of the inbound event, with the patient as the service knows them.
    data = {**event.subject.data} if event.type == "order.issued" else {event.name: sdk.encode(event.subject)}
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
    # The signature is of these bytes. Not ASCII: receivers have to verify what they got, before they decode it.
    return json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":")).encode()


@attrs.frozen(eq=False, repr=False)
class AttemptResult:
    """The result of an attempt.

    Attributes:
        outcome: what became of it, with the HTTP status of the response if there was one.
        seconds: duration, in real time.
        traceback: traceback of the exception that a mounted receiver raised; None if it raised none.
        response: the response of the receiver; None if there was none in time.
        raised: the exception that the caller raises after the attempt has been recorded; None if it raises none.
    """

    outcome: Outcome
    seconds: float
    traceback: str | None = None
    response: ReceiverResponse | None = None
    raised: BaseException | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PreparedAttempt:
    """An attempt that is ready to be sent.

    Attributes:
        due: the attempt in progress.
        number: number of the attempt, 1 for the first.
        url: URL that it is sent to.
        timestamp: real time of sending, in seconds since the epoch.
        signature: signature of timestamp and body.
        body: the raw body.
    """

    due: AttemptInProgress
    number: int
    url: str
    timestamp: int
    signature: str
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The request headers."""
        return headers_of(
            event_type=self.due.delivery.event_type,
            number=self.number,
            timestamp=self.timestamp,
            signature=self.signature,
        )


def url_of(tenant: Tenant, endpoint: WebhookEndpoint) -> str:
    """Return the URL that the endpoint's webhooks are currently sent to. It may change until an attempt begins."""
    return tenant.options.forward_to or endpoint.url


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
        return (Receipt(None, None, Outcome(Kind.NO_ENDPOINT)),)
    checked = [(each, _reason_not_to_send(each, event_type)) for each in tenant.webhook_endpoints]
    subscribers = [endpoint for endpoint, reason in checked if reason is None]
    queued = iter(queue(tenant, subscribers, event_type, data_of(event), _ref_of(tenant, event), is_reported=True))
    return [Receipt(endpoint.id, None if reason else next(queued).id, reason) for endpoint, reason in checked]


def _ref_of(tenant: Tenant, event: DomainEvent) -> str:
    if tenant.organization.ref == "trigger" and (tenant.cause or "").startswith(EVENT_PREFIX):
        return cast("str", tenant.cause)
    return str(event.subject.id)


def _reason_not_to_send(endpoint: WebhookEndpoint, type: sdk.OutboundEventType) -> Outcome | None:
    if not is_subscribed(endpoint, type):
        return Outcome(Kind.NOT_SUBSCRIBED, type)
    return None if endpoint.status == "enabled" else Outcome(Kind.ENDPOINT_DISABLED)


def queue(
    tenant: Tenant,
    endpoints: Sequence[WebhookEndpoint],
    type: sdk.OutboundEventType,
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
        tenant.note(type, ref, Outcome(Kind.SENT), receipts=receipts)
    if not endpoints:
        return []  # an event that nobody receives uses up no ``occurredAt``
    # One for all endpoints: the copies of an event share its time, which no other event of the organization has.
    now, occurred_at = tenant.at, sdk.format_timestamp(tenant.next_event_time())
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
                "apiVersion": sdk.SERVICE_VERSION,
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
    # Before a hold of its own: a delivery releases the one before it, never itself.
    faults.overtake(delivery.webhook_endpoint, delivery.id)
    at = now
    if fault is not None and fault.kind in ("late", "reorder"):
        at = now + timedelta(seconds=fault.seconds)
        tenant.webhook_deliveries.update(delivery, next_attempt_at=at)
    tenant.schedule(at, Job("delivery", delivery.id))
    # Scheduled second: timers of one instant run in the order of scheduling, so the repetition follows the attempt.
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
