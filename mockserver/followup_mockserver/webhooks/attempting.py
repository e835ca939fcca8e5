"""Prepares the attempts of webhook deliveries: which are due, and what each sends (specification, section 6.2)."""

import time
from typing import Literal

import attrs

from followup import WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import sign
from followup_mockserver.schema.errors import invalid
from followup_mockserver.state.records import AttemptInProgress
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.requests import body_of, headers_of

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


def due_attempt(tenant: Tenant, delivery_id: str, trigger: Trigger) -> DueAttempt | None:
    """Return the next attempt of a delivery, which has the current cause; None if the delivery has been deleted."""
    delivery = tenant.webhook_deliveries.get(delivery_id)
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint) if delivery else None
    if delivery is None or endpoint is None:
        return None
    progress = AttemptInProgress(delivery=delivery.id, trigger=trigger, cause=tenant.cause)
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
