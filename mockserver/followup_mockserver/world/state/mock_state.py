"""The state of a mock, detached from it: what it consists of, and independent copies of it.

A new attribute of ``Tenant`` belongs into ``SAVED`` and ``SavedTenant``, or into the list of those that are not saved,
which a test compares with the attributes of a tenant.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs

from followup_mockserver.world.state.collection import Collection
from followup_mockserver.world.state.copies import copied
from followup_mockserver.world.state.history import JOB_PREFIX
from followup_mockserver.world.state.ids import IdFactory
from followup_mockserver.world.state.jobs import Job, Timer
from followup_mockserver.world.state.records import AttemptInProgress
from followup_mockserver.world.state.tenant import Tenant

COLLECTIONS = (
    "patients",
    "doctors",
    "appointments",
    "visits",
    "intake_requests",
    "treatments",
    "events",
    "webhook_endpoints",
    "webhook_deliveries",
)
"""The attributes of ``Tenant`` that are collections."""

AS_THEY_ARE = ("organization", "ids", "secrets", "last_event_at", "messages", "faults", "webhook_faults")
CONTAINERS = (*COLLECTIONS, "attempts")
SAVED = (*AS_THEY_ARE, *CONTAINERS, "keys", "clock", "scheduler", "idempotency", "history")
"""The attributes of ``Tenant`` that a snapshot contains."""

_COPIED_DEEPLY = ("organization", "keys", "last_event_at", "faults", "webhook_faults")


@attrs.frozen(eq=False, repr=False)
class MockState:
    """The state of a mock, detached from it.

    Attributes:
        tenants: copies of its tenants; the first one is the default organization.
        ids: the factory of the ids of organizations and keys; None for the state of one organization alone.
    """

    tenants: Sequence[Tenant]
    ids: IdFactory | None


def copy_state(old: Tenant, new: Tenant) -> None:
    """Set the state of a new tenant to an independent copy of that of another, whose lock the caller holds.

    An attempt in progress is due again in the copy: its outcome is not known yet.
    """
    for name in SAVED:
        value = getattr(old, name)
        setattr(new, name, copied(value) if name in _COPIED_DEEPLY else value.copy())
    new.idempotency.kept_for = timedelta(hours=new.options.idempotency_hours)  # the options are not part of the state
    for attempt in old.attempts_in_progress:
        _requeue(new, attempt)
    _forget_deleted(new)


def _requeue(tenant: Tenant, attempt: AttemptInProgress) -> None:
    """Make an attempt that was in progress due again, as if it had not begun."""
    delivery = tenant.webhook_deliveries.get(attempt.delivery.id)
    if delivery is None:
        return
    if attempt.counted:
        tenant.webhook_deliveries.update(delivery, attempts=delivery.attempts - 1)
    if attempt.cause is not None and attempt.trigger != "manual":
        job = Job("delivery" if attempt.trigger == "schedule" else "repeated_delivery", delivery.id)
        tenant.scheduler.restore(Timer(tenant.now(), int(attempt.cause.removeprefix(JOB_PREFIX)), job))


def _forget_deleted(tenant: Tenant) -> None:
    """Remove what the webhook faults remember about deliveries that have been deleted; it has no effect any more."""
    faults, deliveries, endpoints = tenant.webhook_faults, tenant.webhook_deliveries, tenant.webhook_endpoints
    faults.applied = {delivery: fault for delivery, fault in faults.applied.items() if delivery in deliveries}
    faults.held_by_endpoint = _with_held(faults.held_by_endpoint, endpoints, deliveries)
    faults.held_by_overtaker = _with_held(faults.held_by_overtaker, deliveries, deliveries)


def _with_held(held: dict[str, str], holders: Collection[Any], deliveries: Collection[Any]) -> dict[str, str]:
    return {holder: delivery for holder, delivery in held.items() if holder in holders and delivery in deliveries}
