"""The parts of a snapshot: one row for each part of a tenant's state. Saving, loading and copying follow this table.

A new attribute of ``Tenant`` needs a row in ``PARTS``, or a reason in ``NOT_SAVED``; a test compares both with the
attributes that a tenant has. An attrs class is saved and loaded as it is; what is none has a class here for its JSON.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from operator import methodcaller
from typing import Annotated, Any

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
from followup._for_mockserver import IDEMPOTENCY_KEY, Limits
from followup_mockserver.schema.checks import LATEST_TIME, field, integer, matching, optional
from followup_mockserver.settings.settings import KeyRecord, Organization
from followup_mockserver.state.clock import Clock
from followup_mockserver.state.collection import Collection
from followup_mockserver.state.copies import copied
from followup_mockserver.state.faults import FAULT_PREFIX, Fault, Faults, WebhookFault, WebhookFaults
from followup_mockserver.state.history import JOB_PREFIX
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.jobs import Job, JobKind, Scheduler, Timer
from followup_mockserver.state.records import Attempt, AttemptInProgress, Attempts, Message
from followup_mockserver.state.requests import MAX_RECORDS, IdempotencyRecord, IdempotencyRecords
from followup_mockserver.state.snapshots.codecs import LARGEST_INTEGER, SnapshotError, joined, loaded, plain
from followup_mockserver.state.snapshots.histories import load_history, save_history
from followup_mockserver.state.tenant import Tenant


@attrs.frozen
class Part:
    """A part of a tenant's state.

    Attributes:
        attribute: the attribute of ``Tenant``.
        name: the name in the JSON of an organization.
        save: returns the part of a tenant as JSON.
        load: returns the part of a new tenant from JSON; its third argument is the path of the JSON in the snapshot.
        copy: returns an independent copy of the part.
        optional: whether a snapshot may lack it, because it was saved before the part existed.
    """

    attribute: str
    name: str
    save: Callable[[Tenant], Any]
    load: Callable[[Tenant, Any, str], Any]
    copy: Callable[[Any], Any] = methodcaller("copy")
    optional: bool = False


def _value(attribute: str, name: str, annotation: Any, copy: Callable[[Any], Any]) -> Part:
    """Return a part that is saved and loaded as it is."""

    def load(_: Tenant, data: Any, path: str) -> Any:
        return loaded(annotation, data, path)

    return Part(attribute, name, lambda tenant: plain(getattr(tenant, attribute)), load, copy)


def _own(attribute: str, name: str, save: Callable[[Any], Any], load: Callable[[Any, str], Any]) -> Part:
    """Return a part of a class of its own, which has a method ``copy``."""
    return Part(
        attribute, name, lambda tenant: save(getattr(tenant, attribute)), lambda _, data, path: load(data, path)
    )


def _collection(attribute: str, name: str, annotation: Any) -> Part:
    """Return the part of a collection of result objects, in order of arrival."""

    def load(tenant: Tenant, data: Any, path: str) -> Any:
        collection = getattr(tenant, attribute)
        for position, each in enumerate(loaded(annotation, data, path)):
            if each.id in collection:
                raise SnapshotError(f"{path}[{position}].id", "This must be unique.")
            collection.add(each)
        return collection

    return Part(attribute, name, lambda tenant: plain([*getattr(tenant, attribute)]), load)


def _by_unique(name: str, items: Iterable[Any], path: str) -> dict[str, Any]:
    """Return items by an attribute, which no two of them share."""
    found: dict[str, Any] = {}
    for position, each in enumerate(items):
        if getattr(each, name) in found:
            raise SnapshotError(f"{path}[{position}].{name}", "This must be unique.")
        found[getattr(each, name)] = each
    return found


# --- keys and secrets --------------------------------------------------------------------------------------------

_KEY_VALUE = re.compile(r"[!-~]{1,255}")


def _load_keys(_: Tenant, data: Any, path: str) -> dict[str, KeyRecord]:
    keys: list[KeyRecord] = loaded(list[KeyRecord], data, path)
    for position, key in enumerate(keys):
        if not _KEY_VALUE.fullmatch(key.value):
            message = "This must be 1 to 255 printable ASCII characters without spaces."
            raise SnapshotError(f"{path}[{position}].value", message)
    if not keys:
        raise SnapshotError(path, "This must be a non-empty array.")
    return _by_unique("value", keys, path)


def _load_secrets(_: Tenant, data: Any, path: str) -> dict[str, str]:
    secrets: dict[str, str] = loaded(dict[str, str], data, path)
    for endpoint, secret in secrets.items():
        if not secret:
            raise SnapshotError(joined(path, endpoint), "This must be a non-empty string.")
    return secrets


# --- clock and ids -----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class _Clock:
    now: datetime
    frozen: bool
    seconds_ahead: timedelta | None
    seconds_advanced: timedelta


def _save_clock(clock: Clock) -> Any:
    """Return the time of the clock and, if it runs, how far it is ahead of real time."""
    now = clock.now()
    ahead = None if clock.frozen else now - datetime.now(UTC)
    return plain(_Clock(now=now, frozen=clock.frozen, seconds_ahead=ahead, seconds_advanced=clock.advanced))


def _load_clock(data: Any, path: str) -> Clock:
    """Return the clock. One that runs is as far ahead of real time as before, but never before the time it had."""
    saved: _Clock = loaded(_Clock, data, path)
    now = saved.now
    if not saved.frozen:
        try:
            now = max(now, datetime.now(UTC) + (saved.seconds_ahead or timedelta(0)))
        except OverflowError:
            now = LATEST_TIME + timedelta(1)
    if now > LATEST_TIME:
        raise SnapshotError(path, f"This must be a time before the year {LATEST_TIME.year}.")
    return Clock.resumed(now, frozen=saved.frozen, advanced=saved.seconds_advanced)


@attrs.frozen(kw_only=True)
class _Ids:
    seed: Any = field(optional(integer()))  # without bounds
    organization: str
    counts: dict[str, Annotated[int, Limits(0, LARGEST_INTEGER)]]


def save_ids(ids: IdFactory) -> Any:
    """Return what the next ids depend on as JSON."""
    return plain(_Ids(seed=ids.seed, organization=ids.organization, counts=ids.counts))


def load_ids(data: Any, path: str) -> IdFactory:
    """Return the factory of the next ids."""
    saved: _Ids = loaded(_Ids, data, path)
    return IdFactory(saved.seed, saved.organization, saved.counts)


# --- deliveries and jobs -----------------------------------------------------------------------------------------


def _load_attempts(data: Any, path: str) -> Attempts:
    attempts = Attempts()
    for each in loaded(list[Attempt], data, path):
        attempts.add(each)
    return attempts


def _load_messages(_: Tenant, data: Any, path: str) -> list[Message]:
    # Those that were saved before messages had ids are numbered.
    if isinstance(data, list):
        data = [{"id": f"msg_{n}", **each} if isinstance(each, dict) else each for n, each in enumerate(data, start=1)]
    messages: list[Message] = loaded(list[Message], data, path)
    return messages


@attrs.frozen(kw_only=True)
class _Job:
    at: datetime
    kind: JobKind
    about: str
    number: int | None = field(optional(integer(1)), None)


def _save_jobs(scheduler: Scheduler) -> Any:
    """Return the pending jobs, in the order in which they run."""
    return [
        {"at": plain(timer.at), "kind": timer.job.kind, "about": timer.job.about, "number": timer.number}
        for timer in scheduler.pending()
    ]


def _load_jobs(data: Any, path: str) -> Scheduler:
    scheduler = Scheduler()
    numbers: set[int] = set()
    for position, each in enumerate(loaded(list[_Job], data, path)):
        number = each.number or scheduler.scheduled + 1
        if number in numbers:
            raise SnapshotError(f"{path}[{position}].number", "This must be unique.")
        numbers.add(number)
        scheduler.restore(Timer(each.at, number, Job(each.kind, each.about)))
    return scheduler


def _requeue(tenant: Tenant, attempt: AttemptInProgress) -> None:
    """Make an attempt that was in progress due again, as if it had not begun."""
    delivery = tenant.webhook_deliveries.get(attempt.delivery)
    if delivery is None:
        return
    if attempt.counted:
        tenant.webhook_deliveries.update(delivery, attempts=delivery.attempts - 1)
    if attempt.cause is not None and attempt.trigger != "manual":
        job = Job("delivery", delivery.id) if attempt.trigger == "schedule" else Job("repeated_delivery", delivery.id)
        tenant.scheduler.restore(Timer(tenant.now(), int(attempt.cause.removeprefix(JOB_PREFIX)), job))


# --- faults ------------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class _Faults:
    seed: Any = field(integer())  # without bounds
    draws: int
    pending: list[Fault]


def _save_faults(faults: Faults) -> Any:
    return plain(_Faults(seed=faults.seed, draws=faults.draws, pending=faults.all()))


def _load_faults(data: Any, path: str) -> Faults:
    saved: _Faults = loaded(_Faults, data, path)
    return Faults(saved.seed, saved.draws, _numbered(saved.pending, FAULT_PREFIX))


def _numbered(faults: list[Any], prefix: str) -> Iterable[Any]:
    """Return faults; those that were saved before faults had ids are numbered."""
    return (attrs.evolve(fault, id=fault.id or f"{prefix}{number}") for number, fault in enumerate(faults, start=1))


@attrs.frozen(kw_only=True)
class _WebhookFaults:
    pending: list[WebhookFault]
    applied: dict[str, WebhookFault]
    held_by_endpoint: dict[str, str]
    held_by_overtaker: dict[str, str]


def _save_webhook_faults(faults: WebhookFaults) -> Any:
    saved = _WebhookFaults(
        pending=faults.all(),
        applied={},
        held_by_endpoint=faults.held_by_endpoint,
        held_by_overtaker=faults.held_by_overtaker,
    )
    # To a delivery that a fault applies to, only these two fields of the fault matter.
    applied = {delivery: {"kind": each.kind, "seconds": each.seconds} for delivery, each in faults.applied.items()}
    return {**plain(saved), "applied": applied}


def _load_webhook_faults(data: Any, path: str) -> WebhookFaults:
    saved: _WebhookFaults = loaded(_WebhookFaults, data, path)
    faults = WebhookFaults(_numbered(saved.pending, f"{FAULT_PREFIX}webhook_"))
    faults.applied = saved.applied
    faults.held_by_endpoint, faults.held_by_overtaker = saved.held_by_endpoint, saved.held_by_overtaker
    return faults


def _forget_deleted(tenant: Tenant) -> None:
    """Remove what the webhook faults remember about deliveries that have been deleted; it has no effect any more."""
    faults, deliveries, endpoints = tenant.webhook_faults, tenant.webhook_deliveries, tenant.webhook_endpoints
    faults.applied = {delivery: fault for delivery, fault in faults.applied.items() if delivery in deliveries}
    faults.held_by_endpoint = _with_held(faults.held_by_endpoint, endpoints, deliveries)
    faults.held_by_overtaker = _with_held(faults.held_by_overtaker, deliveries, deliveries)


def _with_held(held: dict[str, str], holders: Collection[Any], deliveries: Collection[Any]) -> dict[str, str]:
    return {holder: delivery for holder, delivery in held.items() if holder in holders and delivery in deliveries}


# --- idempotency keys --------------------------------------------------------------------------------------------


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


@attrs.frozen(kw_only=True)
class _IdempotencyKey:
    key: str = field(matching(_matches(IDEMPOTENCY_KEY), "an idempotency key"))
    fingerprint: str = field(matching(_matches("[0-9a-f]{64}"), "64 hexadecimal digits"))
    at: datetime
    response: str = field(matching(_is_json_object, "the JSON text of an object"))
    request_id: str | None = None


def _save_idempotency(records: IdempotencyRecords) -> Any:
    """Return the idempotency keys that have a response, oldest first."""
    return [
        {
            "key": record.key,
            "fingerprint": record.fingerprint.hex(),
            "at": plain(record.at),
            "response": (record.response or b"").decode(),
            "requestId": record.request_id,
        }
        for record in records.finished()
    ]


def _load_idempotency(tenant: Tenant, data: Any, path: str) -> IdempotencyRecords:
    saved: list[_IdempotencyKey] = loaded(list[_IdempotencyKey], data, path)
    if len(saved) > MAX_RECORDS:
        raise SnapshotError(path, f"This must be an array with at most {MAX_RECORDS} items.")
    tenant.idempotency.restore(
        IdempotencyRecord(key, bytes.fromhex(each.fingerprint), each.at, each.response.encode(), each.request_id)
        for key, each in _by_unique("key", saved, path).items()
    )
    return tenant.idempotency


# -----------------------------------------------------------------------------------------------------------------

PARTS: tuple[Part, ...] = (
    _value("organization", "organization", Organization, copied),
    Part("keys", "apiKeys", lambda tenant: plain([*tenant.keys.values()]), _load_keys, copied),
    _own("clock", "clock", _save_clock, _load_clock),
    _own("ids", "ids", save_ids, load_ids),
    _collection("patients", "patients", list[Patient]),
    _collection("doctors", "doctors", list[Doctor]),
    _collection("appointments", "appointments", list[Appointment]),
    _collection("visits", "visits", list[Visit]),
    _collection("intake_requests", "intakeRequests", list[IntakeRequest]),
    _collection("treatments", "treatments", list[Treatment]),
    _collection("events", "events", list[Event]),
    _collection("webhook_endpoints", "webhookEndpoints", list[WebhookEndpoint]),
    Part("secrets", "secrets", lambda tenant: plain(tenant.secrets), _load_secrets),
    _collection("webhook_deliveries", "webhookDeliveries", list[WebhookDelivery]),
    _own("attempts", "attempts", lambda attempts: plain([*attempts]), _load_attempts),
    _value("last_event_at", "lastEventAt", datetime | None, copied),
    Part("messages", "messages", lambda tenant: plain(tenant.messages), _load_messages),
    _own("scheduler", "jobs", _save_jobs, _load_jobs),
    _own("faults", "faults", _save_faults, _load_faults),
    _own("webhook_faults", "webhookFaults", _save_webhook_faults, _load_webhook_faults),
    Part("idempotency", "idempotency", lambda tenant: _save_idempotency(tenant.idempotency), _load_idempotency),
    Part("history", "history", save_history, load_history, optional=True),
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
        setattr(new, part.attribute, part.copy(getattr(old, part.attribute)))
    new.idempotency.kept_for = timedelta(hours=new.options.idempotency_hours)  # the options are not part of the state
    for attempt in old.attempts_in_progress:
        _requeue(new, attempt)
    _forget_deleted(new)
