"""Webhook deliveries: queued for domain events, and attempted up to nine times (specification, section 6.2)."""

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import attrs

from followup import DeliveryFailure, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import (
    ATTEMPT_HEADER,
    EVENT_TYPE_HEADER,
    MAX_WEBHOOK_ATTEMPTS,
    SERVICE_VERSION,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    WEBHOOK_RETRY_WAITS,
    OutboundEventType,
    format_timestamp,
    sign,
)
from followup_mockserver.schema.errors import invalid
from followup_mockserver.settings import NOT_YET_SENT
from followup_mockserver.state import observers
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.jobs import AttemptDelivery, RepeatDelivery
from followup_mockserver.state.records import Attempt, AttemptInProgress
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.payloads import data_of

USER_AGENT = "Service-Webhooks/1.0"
EVERY_TYPE = "*"
OUTBOUND_TYPES: tuple[OutboundEventType, ...] = tuple(
    name for arm in get_args(OutboundEventType) for name in get_args(arm)
)
"""The outbound event types, in the order of the specification."""

Trigger = Literal["schedule", "manual", "disturbance"]


@attrs.frozen(kw_only=True)
class DueAttempt:
    """An attempt that is due. It may wait for a worker; its content is determined when it begins.

    Attributes:
        delivery: the delivery.
        endpoint: the endpoint of the delivery.
        trigger: ``schedule`` for a regular attempt, ``manual`` for a manual retry, ``disturbance`` for a repetition
            that a webhook fault adds.
        progress: the attempt in the tenant's list of those in progress.
    """

    delivery: WebhookDelivery = attrs.field(repr=False)
    endpoint: WebhookEndpoint = attrs.field(repr=False)
    trigger: Trigger
    progress: AttemptInProgress


@attrs.frozen(kw_only=True)
class PreparedAttempt:
    """An attempt that is ready to be sent.

    Attributes:
        delivery: the delivery.
        endpoint: the endpoint of the delivery.
        number: number of the attempt, 1 for the first.
        trigger: as in ``DueAttempt``.
        url: URL that it is sent to.
        timestamp: real time of sending, in seconds since the epoch.
        signature: signature of timestamp and body.
        body: the raw body.
        progress: as in ``DueAttempt``.
    """

    delivery: WebhookDelivery = attrs.field(repr=False)
    endpoint: WebhookEndpoint = attrs.field(repr=False)
    number: int
    trigger: Trigger
    url: str = attrs.field(repr=False)
    timestamp: int
    signature: str
    body: bytes = attrs.field(repr=False)
    progress: AttemptInProgress

    @property
    def headers(self) -> dict[str, str]:
        """The request headers."""
        return headers_of(
            event_type=self.delivery.event_type,
            number=self.number,
            timestamp=self.timestamp,
            signature=self.signature,
        )


@attrs.frozen(kw_only=True)
class Outcome:
    """The outcome of an attempt.

    Attributes:
        status_code: HTTP status of the response; None if there was none.
        error: reason of the failure; None if the attempt succeeded.
        seconds: duration, in real time.
        traceback: traceback of the exception that a mounted receiver raised; None if it raised none.
        raised: the exception that the caller raises after the attempt has been recorded; None if it raises none.
    """

    status_code: int | None
    error: str | None
    seconds: float
    traceback: str | None = attrs.field(default=None, repr=False)
    raised: BaseException | None = attrs.field(default=None, repr=False)

    @property
    def succeeded(self) -> bool:
        """Whether the receiver responded with a 2xx status in time."""
        return self.status_code is not None and 200 <= self.status_code < 300


def timeout_error(seconds: float) -> str:
    """Return the error of an attempt that timed out after this many seconds."""
    return f"No response within {seconds:g} s."


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Queue a domain event for every endpoint that is subscribed to its type, unless the service does not send it."""
    inactive = event.type in NOT_YET_SENT and event.type not in tenant.organization.activated_events
    if event.type in OUTBOUND_TYPES and tenant.sends_webhooks and not inactive:
        enabled = [each for each in tenant.webhook_endpoints if each.status == "enabled"]
        subscribers = [each for each in enabled if is_subscribed(each, event.type)]
        queue(tenant, subscribers, event.type, data_of(event), event.subject.id)


def is_subscribed(endpoint: WebhookEndpoint, type: OutboundEventType) -> bool:
    """Return whether an endpoint is subscribed to a type, whatever its status."""
    return not {type, EVERY_TYPE}.isdisjoint(endpoint.enabled_events)


def queue(
    tenant: Tenant,
    endpoints: Sequence[WebhookEndpoint],
    type: OutboundEventType,
    data: Mapping[str, Any],
    ref: str,
) -> list[WebhookDelivery]:
    """Queue one event for these endpoints; the first attempt of each delivery is due at once."""
    if not endpoints:
        return []  # an event that nobody receives uses up no ``occurredAt``
    occurred_at = tenant.next_event_time()
    return [_queue_one(tenant, endpoint, type, data, ref, occurred_at) for endpoint in endpoints]


def _queue_one(
    tenant: Tenant,
    endpoint: WebhookEndpoint,
    type: OutboundEventType,
    data: Mapping[str, Any],
    ref: str,
    occurred_at: datetime,
) -> WebhookDelivery:
    now = tenant.now()
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
            "occurredAt": format_timestamp(occurred_at),
            "ref": ref,
            "data": data,
        },
        created_at=now,
    )
    tenant.webhook_deliveries.add(delivery)
    _schedule_first(tenant, delivery)
    return delivery


def _schedule_first(tenant: Tenant, delivery: WebhookDelivery) -> None:
    """Schedule the first attempt: for now, or as a webhook fault requires."""
    now, faults = delivery.created_at, tenant.webhook_faults
    fault = faults.match(delivery.id, delivery.event_type)
    faults.overtake(delivery.webhook_endpoint, delivery.id)
    at = now
    if fault is not None and fault.kind in ("late", "reorder"):
        at = now + timedelta(seconds=fault.seconds)
        tenant.webhook_deliveries.update(delivery, next_attempt_at=at)
    tenant.scheduler.schedule(at, AttemptDelivery(about=delivery.id))
    if fault is not None and fault.kind == "duplicate":
        tenant.scheduler.schedule(now, RepeatDelivery(about=delivery.id))
    if fault is not None and fault.kind == "reorder":
        faults.hold(delivery.webhook_endpoint, delivery.id)


def _release(tenant: Tenant, overtaker: WebhookDelivery) -> None:
    """Schedule the delivery that was held until this one had been attempted, if any.

    It is released only after the attempt, because attempts run concurrently.
    """
    held = tenant.webhook_deliveries.get(tenant.webhook_faults.release(overtaker.id) or "")
    if held is not None and tenant.scheduler.cancel_about(held.id):
        now = tenant.now()
        tenant.webhook_deliveries.update(held, next_attempt_at=now)
        tenant.scheduler.schedule(now, AttemptDelivery(about=held.id))


def due_attempt(tenant: Tenant, delivery_id: str, trigger: Trigger) -> DueAttempt | None:
    """Return the next attempt of a delivery, or None if the delivery has been deleted."""
    delivery = tenant.webhook_deliveries.get(delivery_id)
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint) if delivery else None
    if delivery is None or endpoint is None:
        return None
    progress = AttemptInProgress(delivery=delivery.id, trigger=trigger)
    tenant.attempts_in_progress.append(progress)
    return DueAttempt(delivery=delivery, endpoint=endpoint, trigger=trigger, progress=progress)


def url_of(tenant: Tenant, endpoint: WebhookEndpoint) -> str:
    """Return the URL that the endpoint's webhooks are currently sent to. It may change until an attempt begins."""
    return tenant.options.forward_to or endpoint.url


def begin(tenant: Tenant, due: DueAttempt) -> PreparedAttempt | None:
    """Prepare an attempt, and count it. It is in progress until ``finish`` is called.

    Returns:
        The attempt, or None if the delivery has been deleted or has ended, or its endpoint is disabled.

    Raises:
        ServiceError: 400: a manual retry for a disabled endpoint.
    """
    delivery, endpoint, trigger = due.delivery, due.endpoint, due.trigger
    if not _can_begin(tenant, due):
        tenant.attempts_in_progress.remove(due.progress)
        if trigger == "manual" and delivery.id in tenant.webhook_deliveries:
            raise invalid("webhook_endpoint_disabled", "The endpoint is disabled; enable it first.")
        return None
    # A repetition has the number of the attempt that it repeats, and is not one of the nine.
    number = max(delivery.attempts, 1) if trigger == "disturbance" else delivery.attempts + 1
    if trigger != "disturbance":
        # Counted at its beginning, because a manual retry that begins before its end is the next attempt.
        tenant.webhook_deliveries.update(delivery, attempts=number)
        due.progress.counted = True
    # Real time, because the receiver compares it with its own clock. All other times are on the mock's clock.
    timestamp = int(time.time())
    secret = tenant.secrets[endpoint.id]
    body = body_of(delivery)
    fault = tenant.webhook_faults.of(delivery.id)
    if fault is not None and number == 1:
        if fault.kind == "old_signature":
            timestamp -= int(fault.seconds)
        elif fault.kind == "wrong_signature":
            secret = f"not {secret}"
    return PreparedAttempt(
        delivery=delivery,
        endpoint=endpoint,
        number=number,
        trigger=trigger,
        url=url_of(tenant, endpoint),
        timestamp=timestamp,
        signature=sign(body, secret, timestamp),
        body=body,
        progress=due.progress,
    )


def _can_begin(tenant: Tenant, due: DueAttempt) -> bool:
    if due.delivery.id not in tenant.webhook_deliveries:
        return False
    return due.delivery.status == "pending" if due.trigger == "schedule" else due.endpoint.status != "disabled"


def headers_of(*, event_type: str, number: int, timestamp: int, signature: str) -> dict[str, str]:
    """Return the request headers of an attempt (specification, section 6.2, Request headers)."""
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        SIGNATURE_HEADER: signature,
        TIMESTAMP_HEADER: str(timestamp),
        EVENT_TYPE_HEADER: event_type,
        ATTEMPT_HEADER: str(number),
    }


def body_of(delivery: WebhookDelivery) -> bytes:
    """Return the raw body of a delivery, which is the same in every attempt."""
    return json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":")).encode()


def finish(tenant: Tenant, prepared: PreparedAttempt, outcome: Outcome) -> str:
    """Record the outcome of an attempt, schedule the next one if needed, and return a summary."""
    delivery, endpoint = prepared.delivery, prepared.endpoint
    tenant.attempts_in_progress.remove(prepared.progress)
    if delivery.id not in tenant.webhook_deliveries:
        return "deleted meanwhile"
    now = tenant.now()
    _release(tenant, delivery)
    attempt = Attempt(
        delivery=delivery.id,
        webhook_endpoint=endpoint.id,
        event_type=delivery.event_type,
        number=prepared.number,
        at=now,
        trigger=prepared.trigger,
        status_code=outcome.status_code,
        seconds=outcome.seconds,
        error=outcome.error,
        timestamp=prepared.timestamp,
        signature=prepared.signature,
        traceback=outcome.traceback,
    )
    tenant.attempts.setdefault(delivery.id, []).append(attempt)
    before = delivery.status
    summary = _apply(tenant, prepared, outcome, now)
    for observer in observers.observers:
        observer.attempt_ended(
            attempt,
            delivered=delivery.status == "succeeded" != before,
            exhausted=delivery.status == "failed" != before,
        )
    return summary


def _apply(tenant: Tenant, prepared: PreparedAttempt, outcome: Outcome, now: datetime) -> str:
    """Change the delivery and its endpoint as the outcome requires, and return a summary."""
    delivery, endpoint = prepared.delivery, prepared.endpoint
    if prepared.trigger == "disturbance" or (delivery.status != "pending" and not outcome.succeeded):
        # A repetition does not change the delivery, and neither does a failed manual retry after its end.
        return outcome.error or str(outcome.status_code)
    changes: dict[str, Any] = {
        "last_status_code": outcome.status_code,
        "last_error": outcome.error,
    }
    if outcome.succeeded:
        tenant.scheduler.cancel_about(delivery.id, AttemptDelivery.kind)
        changes |= {"status": "succeeded", "delivered_at": now, "next_attempt_at": None}
        tenant.webhook_endpoints.update(endpoint, last_delivered_at=now)
    else:
        changes |= _after_failure(tenant, delivery, now)
        failure = DeliveryFailure(at=now, message=outcome.error or f"HTTP status {outcome.status_code}")
        tenant.webhook_endpoints.update(endpoint, last_error=failure)
    tenant.webhook_deliveries.update(delivery, **changes)
    return _summary(outcome, changes)


def cancel_pending(tenant: Tenant, endpoint: WebhookEndpoint, reason: str) -> None:
    """Mark the pending deliveries of an endpoint as failed; they are not attempted again."""
    for delivery in tenant.webhook_deliveries.find_all("webhook_endpoint", endpoint.id):
        if delivery.status == "pending":
            tenant.scheduler.cancel_about(delivery.id)
            tenant.webhook_deliveries.update(delivery, status="failed", last_error=reason, next_attempt_at=None)


def delete_all(tenant: Tenant, endpoint: WebhookEndpoint) -> None:
    """Delete every delivery of an endpoint, pending or not."""
    for delivery in tenant.webhook_deliveries.find_all("webhook_endpoint", endpoint.id):
        tenant.scheduler.cancel_about(delivery.id)
        tenant.webhook_deliveries.remove(delivery.id)
        tenant.attempts.pop(delivery.id, None)


def _after_failure(tenant: Tenant, delivery: WebhookDelivery, now: datetime) -> dict[str, Any]:
    tenant.scheduler.cancel_about(delivery.id, AttemptDelivery.kind)
    if delivery.attempts >= MAX_WEBHOOK_ATTEMPTS:
        return {"status": "failed", "next_attempt_at": None}
    at = now + WEBHOOK_RETRY_WAITS[delivery.attempts - 1]
    tenant.scheduler.schedule(at, AttemptDelivery(about=delivery.id))
    return {"next_attempt_at": at}


def _summary(outcome: Outcome, changes: Mapping[str, Any]) -> str:
    summary = outcome.error or str(outcome.status_code)
    next_at = changes.get("next_attempt_at")
    return f"{summary} Next attempt at {format_timestamp(next_at)}." if next_at else summary
