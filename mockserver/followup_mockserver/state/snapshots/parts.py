"""The parts of a snapshot: one row for each part of a tenant's state. Saving, loading and copying follow this table.

A new attribute of ``Tenant`` needs a row in ``PARTS``, or a reason in ``NOT_SAVED``; a test compares both with the
attributes that a tenant has.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from followup import (
    Appointment,
    Doctor,
    Event,
    IntakeRequest,
    Patient,
    Treatment,
    Visit,
    WebhookDelivery,
    WebhookEndpoint,
)
from followup_mockserver.settings.settings import Organization
from followup_mockserver.state.copies import copied
from followup_mockserver.state.snapshots import histories, mechanics
from followup_mockserver.state.snapshots.attempts import load_attempts, save_attempts
from followup_mockserver.state.snapshots.codecs import ModelCodec, RecordCodec, items, joined
from followup_mockserver.state.snapshots.errors import SnapshotError
from followup_mockserver.state.tenant import Tenant

T = TypeVar("T")


@attrs.frozen
class Part:
    """A part of a tenant's state.

    Attributes:
        attribute: the attribute of ``Tenant``.
        name: the name in the JSON of an organization.
        save: returns the part of a tenant as JSON.
        load: sets the part of a new tenant from JSON; its third argument is the path of the JSON in the snapshot.
        copy: sets the part of a new tenant, the second argument, to an independent copy of that of the first.
        optional: whether a snapshot may lack it, because it was saved before the part existed.
    """

    attribute: str
    name: str
    save: Callable[[Tenant], Any]
    load: Callable[[Tenant, Any, str], None]
    copy: Callable[[Tenant, Tenant], None]
    optional: bool = False


def _collection(attribute: str, name: str, cls: type[Any]) -> Part:
    """Return the part of a collection of result objects, in order of arrival."""
    codec: ModelCodec[Any] = ModelCodec(cls)

    def save(tenant: Tenant) -> Any:
        return [codec.encode(each) for each in getattr(tenant, attribute)]

    def load(tenant: Tenant, data: Any, path: str) -> None:
        collection = getattr(tenant, attribute)
        for item, place in items(data, path):
            obj = codec.decode(item, place)
            if obj.id in collection:
                raise SnapshotError(joined(place, "id"), "This must be unique.")
            collection.add(obj)

    def copy(old: Tenant, new: Tenant) -> None:
        setattr(new, attribute, getattr(old, attribute).copy())

    return Part(attribute, name, save, load, copy)


def _value(
    attribute: str,
    name: str,
    save: Callable[[Any], Any],
    load: Callable[[Any, str], Any],
    copy_value: Callable[[Any], Any],
) -> Part:
    """Return a part whose value does not depend on others."""

    def copy(old: Tenant, new: Tenant) -> None:
        setattr(new, attribute, copy_value(getattr(old, attribute)))

    return Part(
        attribute,
        name,
        lambda tenant: save(getattr(tenant, attribute)),
        lambda tenant, data, path: setattr(tenant, attribute, load(data, path)),
        copy,
    )


def _record(attribute: str, name: str, cls: type[Any]) -> Part:
    """Return the part of one record."""
    codec: RecordCodec[Any] = RecordCodec(cls)
    return _value(attribute, name, codec.encode, codec.decode, copied)


def _own(attribute: str, name: str, save: Callable[[Any], Any], load: Callable[[Tenant, Any, str], Any]) -> Part:
    """Return a part of a class of its own, which has a method ``copy``."""

    def copy(old: Tenant, new: Tenant) -> None:
        setattr(new, attribute, getattr(old, attribute).copy())

    return Part(
        attribute,
        name,
        lambda tenant: save(getattr(tenant, attribute)),
        lambda tenant, data, path: setattr(tenant, attribute, load(tenant, data, path)),
        copy,
    )


def _copy_idempotency(old: Tenant, new: Tenant) -> None:
    new.idempotency.restore(old.idempotency.finished())  # they never change


def _copy_history(old: Tenant, new: Tenant) -> None:
    new.history = old.history.copy()


PARTS: tuple[Part, ...] = (
    _record("organization", "organization", Organization),
    _value("keys", "apiKeys", mechanics.save_keys, mechanics.load_keys, copied),
    _own("clock", "clock", mechanics.save_clock, mechanics.load_clock),
    _own("ids", "ids", mechanics.save_ids, mechanics.load_ids),
    _collection("patients", "patients", Patient),
    _collection("doctors", "doctors", Doctor),
    _collection("appointments", "appointments", Appointment),
    _collection("visits", "visits", Visit),
    _collection("intake_requests", "intakeRequests", IntakeRequest),
    _collection("treatments", "treatments", Treatment),
    _collection("events", "events", Event),
    _collection("webhook_endpoints", "webhookEndpoints", WebhookEndpoint),
    _value("secrets", "secrets", dict, mechanics.load_secrets, dict),
    _collection("webhook_deliveries", "webhookDeliveries", WebhookDelivery),
    _own("attempts", "attempts", save_attempts, load_attempts),
    _value("last_event_at", "lastEventAt", mechanics.save_time, mechanics.load_time, copied),
    _value("messages", "messages", histories.save_messages, histories.load_messages, list),
    _own("scheduler", "jobs", mechanics.save_jobs, mechanics.load_jobs),
    _own("faults", "faults", mechanics.save_faults, mechanics.load_faults),
    _own("webhook_faults", "webhookFaults", mechanics.save_webhook_faults, mechanics.load_webhook_faults),
    Part("idempotency", "idempotency", mechanics.save_idempotency, mechanics.load_idempotency, _copy_idempotency),
    Part("history", "history", histories.save_history, histories.load_history, _copy_history, optional=True),
)

NOT_SAVED = {
    "options": "they belong to the mock, and are saved once, beside the organizations",
    "journal": "a journal tells what happened in one run; no later response depends on it",
    "waits": "like the journal, they tell what the clients of one run did",
    "rate_limiter": "its windows are measured in real time, which has passed when a snapshot is loaded",
    "cause": "set only while a call holds the lock",
    "ignored_keys": "set only while a call holds the lock",
    "sends_webhooks": "false only while a call holds the lock",
    "attempts_in_progress": "their jobs are saved as pending, since their outcome is not known",
    "version": "unique in one process, and no version of another tenant may be the same",
    "ended": "only a tenant that has been replaced has ended",
    "lock": "made anew for each tenant",
    "changed": "made anew for each tenant",
    "_subscribers": "functions, the same in every mock",
    "_wake": "belongs to the engine that runs the tenant's jobs",
    "_timers_seen": "only says whether the engine of this process has been woken",
}
"""The attributes of ``Tenant`` that a snapshot does not contain, each with the reason."""


def copy_state(old: Tenant, new: Tenant) -> None:
    """Set the state of a new tenant to an independent copy of that of another, whose lock the caller holds.

    An attempt in progress is due again in the copy: its outcome is not known yet.
    """
    for part in PARTS:
        part.copy(old, new)
    for attempt in old.attempts_in_progress:
        mechanics.requeue(new, attempt)
    mechanics.forget_deleted(new)
