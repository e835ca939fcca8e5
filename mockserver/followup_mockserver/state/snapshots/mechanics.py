"""The parts of a snapshot that are neither records nor resources: keys, clock, ids, jobs, faults and so on.

Each part has a function that returns it as JSON, and one that makes it from JSON at a path of the snapshot.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from followup._for_mockserver import IDEMPOTENCY_KEY
from followup_mockserver.schema.checks import LATEST_TIME
from followup_mockserver.settings.settings import KeyRecord
from followup_mockserver.state.clock import Clock
from followup_mockserver.state.faults import FAULT_PREFIX, Fault, Faults, WebhookFault, WebhookFaults
from followup_mockserver.state.history import JOB_PREFIX
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.jobs import JOB_OF_KIND, AttemptDelivery, Job, RepeatDelivery, Scheduler, Timer
from followup_mockserver.state.records import AttemptInProgress
from followup_mockserver.state.requests import MAX_RECORDS, IdempotencyRecord
from followup_mockserver.state.snapshots.codecs import (
    RecordCodec,
    items,
    joined,
    members,
    plain,
    scalar,
    text_mapping,
)
from followup_mockserver.state.snapshots.errors import SnapshotError
from followup_mockserver.state.tenant import Tenant

# --- keys and secrets --------------------------------------------------------------------------------------------

_KEY: RecordCodec[KeyRecord] = RecordCodec(KeyRecord)
_KEY_VALUE = re.compile(r"[!-~]{1,255}")


def save_keys(keys: dict[str, KeyRecord]) -> Any:
    """Return the API keys as JSON, oldest first."""
    return [_KEY.encode(key) for key in keys.values()]


def load_keys(data: Any, path: str) -> dict[str, KeyRecord]:
    """Return the API keys by value; there is at least one."""
    keys: dict[str, KeyRecord] = {}
    for item, place in items(data, path):
        key = _KEY.decode(item, place)
        if not _KEY_VALUE.fullmatch(key.value):
            raise SnapshotError(f"{place}.value", "This must be 1 to 255 printable ASCII characters without spaces.")
        if key.value in keys:
            raise SnapshotError(f"{place}.value", "This must be unique.")
        keys[key.value] = key
    if not keys:
        raise SnapshotError(path, "This must be a non-empty array.")
    return keys


def load_secrets(data: Any, path: str) -> dict[str, str]:
    """Return the signing secrets by endpoint id."""
    return text_mapping(data, path)


# --- time --------------------------------------------------------------------------------------------------------


def save_time(instant: datetime | None) -> Any:
    """Return a time as JSON."""
    return plain(instant)


def load_time(data: Any, path: str) -> datetime | None:
    """Return a time, or None."""
    found: datetime | None = scalar(datetime | None, data, path)
    return found


def save_clock(clock: Clock) -> Any:
    """Return the clock as JSON: its time and, if it runs, how far it is ahead of real time."""
    now = clock.now()
    ahead = None if clock.frozen else (now - datetime.now(UTC)).total_seconds()
    return {
        "now": plain(now),
        "frozen": clock.frozen,
        "secondsAhead": ahead,
        "secondsAdvanced": clock.advanced.total_seconds(),
    }


def load_clock(_: Tenant, data: Any, path: str) -> Clock:
    """Return the clock. One that runs is as far ahead of real time as before, but never before the time it had."""
    found = members(data, path, ("now", "frozen", "secondsAhead", "secondsAdvanced"))
    now: datetime = scalar(datetime, found["now"], f"{path}.now")
    frozen: bool = scalar(bool, found["frozen"], f"{path}.frozen")
    advanced = _duration(found["secondsAdvanced"], f"{path}.secondsAdvanced")
    if not frozen:
        ahead = _duration(found["secondsAhead"], f"{path}.secondsAhead")
        try:
            now = max(now, datetime.now(UTC) + ahead)
        except OverflowError:
            now = LATEST_TIME + timedelta(1)
    if now > LATEST_TIME:
        raise SnapshotError(path, f"This must be a time before the year {LATEST_TIME.year}.")
    return Clock.resumed(now, frozen=frozen, advanced=advanced)


def _duration(data: Any, path: str) -> timedelta:
    try:
        return timedelta(seconds=scalar(float, data, path))
    except OverflowError:
        raise SnapshotError(path, "This must be a number of seconds.") from None


# --- ids ---------------------------------------------------------------------------------------------------------


def save_ids(ids: IdFactory) -> Any:
    """Return what the next ids depend on as JSON."""
    return {"seed": ids.seed, "organization": ids.organization, "counts": dict(ids.counts)}


def load_ids(_: Tenant, data: Any, path: str) -> IdFactory:
    """Return the factory of the next ids."""
    found = members(data, path, ("seed", "organization", "counts"))
    seed, organization, counts = found["seed"], found["organization"], found["counts"]
    if not isinstance(seed, int | None) or isinstance(seed, bool):
        raise SnapshotError(f"{path}.seed", "This must be a whole number or null.")
    if not isinstance(organization, str):
        raise SnapshotError(f"{path}.organization", "This must be a string.")
    if not isinstance(counts, dict):
        raise SnapshotError(f"{path}.counts", "This must be an object.")
    for prefix, count in counts.items():
        if scalar(int, count, joined(f"{path}.counts", prefix)) < 0:
            raise SnapshotError(joined(f"{path}.counts", prefix), "This must be 0 or more.")
    return IdFactory(seed, organization, counts)


# --- jobs ------------------------------------------------------------------------------------------------------


def requeue(tenant: Tenant, attempt: AttemptInProgress) -> None:
    """Make an attempt that was in progress due again, as if it had not begun."""
    delivery = tenant.webhook_deliveries.get(attempt.delivery)
    if delivery is None:
        return
    if attempt.counted:
        tenant.webhook_deliveries.update(delivery, attempts=delivery.attempts - 1)
    if attempt.cause is not None and attempt.trigger != "manual":
        job = AttemptDelivery(delivery.id) if attempt.trigger == "schedule" else RepeatDelivery(delivery.id)
        tenant.scheduler.restore(Timer(tenant.now(), int(attempt.cause.removeprefix(JOB_PREFIX)), job))


def save_jobs(scheduler: Scheduler[Job]) -> Any:
    """Return the pending jobs as JSON, in the order in which they run."""
    return [
        {"at": plain(timer.at), "kind": timer.job.kind, "about": timer.job.about, "number": timer.number}
        for timer in scheduler.pending()
    ]


def load_jobs(_: Tenant, data: Any, path: str) -> Scheduler[Job]:
    """Return the scheduler of the pending jobs."""
    scheduler: Scheduler[Job] = Scheduler()
    numbers: set[int] = set()
    for item, place in items(data, path):
        found = members(item, place, ("at", "kind", "about"), ("number",))
        at: datetime = scalar(datetime, found["at"], f"{place}.at")
        kind = found["kind"]
        if not isinstance(kind, str) or kind not in JOB_OF_KIND:
            raise SnapshotError(f"{place}.kind", f"This must be one of {', '.join(JOB_OF_KIND)}.")
        number = scalar(int, found.get("number", scheduler.scheduled + 1), f"{place}.number")
        if number < 1 or number in numbers:
            raise SnapshotError(f"{place}.number", "This must be 1 or more, and unique.")
        numbers.add(number)
        scheduler.restore(Timer(at, number, JOB_OF_KIND[kind](scalar(str, found["about"], f"{place}.about"))))
    return scheduler


# --- faults ------------------------------------------------------------------------------------------------------

_FAULT: RecordCodec[Fault] = RecordCodec(Fault)
_WEBHOOK_FAULT: RecordCodec[WebhookFault] = RecordCodec(WebhookFault)
_APPLIED: RecordCodec[WebhookFault] = RecordCodec(WebhookFault, omit=("id", "times", "type", "optional", "matched"))
"""To a delivery that a webhook fault applies to, only its kind and its seconds matter."""


def save_faults(faults: Faults) -> Any:
    """Return the faults of calls as JSON, oldest first, and the state of their random numbers."""
    return {"seed": faults.seed, "draws": faults.draws, "pending": [_FAULT.encode(each) for each in faults.all()]}


def load_faults(_: Tenant, data: Any, path: str) -> Faults:
    """Return the faults of calls."""
    found = members(data, path, ("seed", "draws", "pending"))
    seed = found["seed"]
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise SnapshotError(f"{path}.seed", "This must be a whole number.")
    draws = scalar(int, found["draws"], f"{path}.draws")
    return Faults(seed, draws, [_FAULT.decode(*each) for each in _with_ids(found["pending"], f"{path}.pending")])


def _with_ids(data: Any, path: str, kind: str = "") -> Iterator[tuple[Any, str]]:
    """Return the faults as JSON. Those that were saved before faults had ids are numbered."""
    for number, (item, place) in enumerate(items(data, path), start=1):
        yield {"id": f"{FAULT_PREFIX}{kind}{number}", **item} if isinstance(item, dict) else item, place


def save_webhook_faults(faults: WebhookFaults) -> Any:
    """Return the webhook faults as JSON, and the deliveries that they apply to."""
    return {
        "pending": [_WEBHOOK_FAULT.encode(each) for each in faults.all()],
        "applied": {delivery: _APPLIED.encode(fault) for delivery, fault in faults.applied.items()},
        "heldByEndpoint": dict(faults.held_by_endpoint),
        "heldByOvertaker": dict(faults.held_by_overtaker),
    }


def load_webhook_faults(_: Tenant, data: Any, path: str) -> WebhookFaults:
    """Return the webhook faults."""
    found = members(data, path, ("pending", "applied", "heldByEndpoint", "heldByOvertaker"))
    faults = WebhookFaults()
    for each in _with_ids(found["pending"], f"{path}.pending", "webhook_"):
        faults.add(_WEBHOOK_FAULT.decode(*each))
    if not isinstance(found["applied"], dict):
        raise SnapshotError(f"{path}.applied", "This must be an object.")
    for delivery, fault in found["applied"].items():
        faults.applied[delivery] = _APPLIED.decode(fault, joined(f"{path}.applied", delivery))
    faults.held_by_endpoint = text_mapping(found["heldByEndpoint"], f"{path}.heldByEndpoint")
    faults.held_by_overtaker = text_mapping(found["heldByOvertaker"], f"{path}.heldByOvertaker")
    return faults


def forget_deleted(tenant: Tenant) -> None:
    """Remove what the webhook faults remember about deliveries that have been deleted; it has no effect any more."""
    faults, deliveries = tenant.webhook_faults, tenant.webhook_deliveries
    faults.applied = {delivery: fault for delivery, fault in faults.applied.items() if delivery in deliveries}
    faults.held_by_endpoint = {
        endpoint: held
        for endpoint, held in faults.held_by_endpoint.items()
        if endpoint in tenant.webhook_endpoints and held in deliveries
    }
    faults.held_by_overtaker = {
        overtaker: held
        for overtaker, held in faults.held_by_overtaker.items()
        if overtaker in deliveries and held in deliveries
    }


# --- idempotency keys --------------------------------------------------------------------------------------------

_FINGERPRINT = re.compile("[0-9a-f]{64}")
_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY)


def save_idempotency(tenant: Tenant) -> Any:
    """Return the idempotency keys that have a response as JSON, oldest first."""
    return [
        {
            "key": record.key,
            "fingerprint": record.fingerprint.hex(),
            "at": plain(record.at),
            "response": (record.response or b"").decode(),
            "requestId": record.request_id,
        }
        for record in tenant.idempotency.finished()
    ]


def load_idempotency(tenant: Tenant, data: Any, path: str) -> None:
    """Set the idempotency keys of a tenant."""
    records: dict[str, IdempotencyRecord] = {}
    for item, place in items(data, path):
        found = members(item, place, ("key", "fingerprint", "at", "response"), ("requestId",))
        key = _matching(_IDEMPOTENCY_KEY, found["key"], f"{place}.key", "an idempotency key")
        if key in records:
            raise SnapshotError(f"{place}.key", "This must be unique.")
        fingerprint = _matching(_FINGERPRINT, found["fingerprint"], f"{place}.fingerprint", "64 hexadecimal digits")
        at: datetime = scalar(datetime, found["at"], f"{place}.at")
        response = _json_object(found["response"], f"{place}.response")
        request_id = scalar(str | None, found.get("requestId"), f"{place}.requestId")
        records[key] = IdempotencyRecord(key, bytes.fromhex(fingerprint), at, response, request_id)
    if len(records) > MAX_RECORDS:
        raise SnapshotError(path, f"This must be an array with at most {MAX_RECORDS} items.")
    tenant.idempotency.restore(records.values())


def _matching(pattern: "re.Pattern[str]", data: Any, path: str, expected: str) -> str:
    if not isinstance(data, str) or not pattern.fullmatch(data):
        raise SnapshotError(path, f"This must be {expected}.")
    return data


def _json_object(data: Any, path: str) -> bytes:
    try:
        decoded = json.loads(data) if isinstance(data, str) else None
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise SnapshotError(path, "This must be the JSON text of an object.")
    return str(data).encode()
