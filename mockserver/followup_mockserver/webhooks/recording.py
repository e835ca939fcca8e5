"""Records the outcomes of attempts, and retries deliveries up to nine times (specification, section 6.2)."""

from datetime import datetime
from typing import Any

import attrs

from followup import DeliveryFailure, WebhookDelivery
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, WEBHOOK_RETRY_WAITS
from followup_mockserver.state import observers
from followup_mockserver.state.history import ATTEMPT, Record
from followup_mockserver.state.jobs import AttemptDelivery
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.records import Attempt
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.attempting import PreparedAttempt
from followup_mockserver.webhooks.outcomes import AttemptResult


def finish(tenant: Tenant, prepared: PreparedAttempt, result: AttemptResult) -> Outcome:
    """Record the result of an attempt, schedule the next one if needed, and return its outcome."""
    tenant.attempts_in_progress.remove(prepared.progress)
    if prepared.delivery.id not in tenant.webhook_deliveries:
        return Outcome(Kind.DELETED_MEANWHILE)
    with tenant.caused_by(prepared.progress.cause):
        return _record(tenant, prepared, result)


def _record(tenant: Tenant, prepared: PreparedAttempt, result: AttemptResult) -> Outcome:
    delivery, endpoint, outcome = prepared.delivery, prepared.endpoint, result.outcome
    now = tenant.now()
    attempt_id = f"{delivery.id}.{prepared.number}"
    tenant.history.add(Record(now, ATTEMPT, attempt_id, tenant.cause, outcome, delivery.id))
    _release(tenant, delivery)
    attempt = Attempt(
        delivery=delivery.id,
        webhook_endpoint=endpoint.id,
        event_type=delivery.event_type,
        number=prepared.number,
        at=now,
        trigger=prepared.trigger,
        status_code=outcome.status,
        seconds=result.seconds,
        error=outcome.error,
        timestamp=prepared.timestamp,
        signature=prepared.signature,
        traceback=result.traceback,
        response=result.response,
    )
    tenant.attempts.add(attempt)
    before = delivery.status
    ended = _apply(tenant, prepared, outcome, now)
    for observer in observers.observers:
        observer.attempt_ended(
            observers.EndedAttempt(
                attempt=attempt,
                url=prepared.url,
                delivered=delivery.status == "succeeded" != before,
                exhausted=delivery.status == "failed" != before,
                next_attempt_at=delivery.next_attempt_at,
            )
        )
    return ended


def _apply(tenant: Tenant, prepared: PreparedAttempt, outcome: Outcome, now: datetime) -> Outcome:
    """Change the delivery and its endpoint as the outcome requires, and return it with the time of the next attempt."""
    delivery, endpoint = prepared.delivery, prepared.endpoint
    if prepared.trigger == "disturbance" or (delivery.status != "pending" and outcome.tone != "succeeded"):
        # A repetition does not change the delivery, and neither does a failed manual retry after its end.
        return outcome
    changes: dict[str, Any] = {"last_status_code": outcome.status, "last_error": outcome.error}
    if outcome.tone == "succeeded":
        tenant.cancel_jobs(delivery.id, Outcome(Kind.RETRY_SUCCEEDED), AttemptDelivery.kind)
        changes |= {"status": "succeeded", "delivered_at": now, "next_attempt_at": None}
        tenant.webhook_endpoints.update(endpoint, last_delivered_at=now)
    else:
        changes |= _after_failure(tenant, delivery, now)
        failure = DeliveryFailure(at=now, message=outcome.error or "")
        tenant.webhook_endpoints.update(endpoint, last_error=failure)
    tenant.webhook_deliveries.update(delivery, **changes)
    return attrs.evolve(outcome, next_at=changes["next_attempt_at"])


def _release(tenant: Tenant, overtaker: WebhookDelivery) -> None:
    """Schedule the delivery that was held until this one had been attempted, if any.

    It is released only after the attempt, because attempts run concurrently.
    """
    held = tenant.webhook_deliveries.get(tenant.webhook_faults.release(overtaker.id) or "")
    if held is not None and tenant.cancel_jobs(held.id, Outcome(Kind.OVERTAKEN)):
        now = tenant.now()
        tenant.webhook_deliveries.update(held, next_attempt_at=now)
        tenant.schedule(now, AttemptDelivery(about=held.id))


def _after_failure(tenant: Tenant, delivery: WebhookDelivery, now: datetime) -> dict[str, Any]:
    tenant.cancel_jobs(delivery.id, Outcome(Kind.RETRY_FAILED), AttemptDelivery.kind)
    if delivery.attempts >= MAX_WEBHOOK_ATTEMPTS:
        return {"status": "failed", "next_attempt_at": None}
    at = now + WEBHOOK_RETRY_WAITS[delivery.attempts - 1]
    tenant.schedule(at, AttemptDelivery(about=delivery.id))
    return {"next_attempt_at": at}
