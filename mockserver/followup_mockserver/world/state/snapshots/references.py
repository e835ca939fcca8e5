"""Checks of what the objects of a snapshot say about each other, so that no rule meets a reference to nothing."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, camel
from followup_mockserver.world.schema.formats import is_webhook_target
from followup_mockserver.world.state.jobs import SUBJECT_OF_JOB
from followup_mockserver.world.state.mock_state import COLLECTIONS
from followup_mockserver.world.state.snapshots.codecs import wrong

if TYPE_CHECKING:
    from followup_mockserver.world.state.snapshots.parts import SavedTenant

_ID = re.compile("[A-Za-z0-9_-]{4,255}")

_UNIQUE = (*((name, "id") for name in COLLECTIONS), ("api_keys", "value"), ("jobs", "number"), ("idempotency", "key"))
"""The fields that have another value in each item of a list."""

_REFERENCES = (
    ("appointments", "patient", "patients"),
    ("appointments", "doctor", "doctors"),
    ("visits", "patient", "patients"),
    ("visits", "doctor", "doctors"),
    ("visits", "appointment", "appointments"),
    ("intake_requests", "patient", "patients"),
    ("treatments", "patient", "patients"),
    ("webhook_deliveries", "webhook_endpoint", "webhook_endpoints"),
    ("attempts", "delivery", "webhook_deliveries"),
    ("messages", "patient", "patients"),
)
"""The fields that contain the id of another object, or None where they may be empty: the list, the name of the field,
and the collection that has the other object."""


def check_references(saved: "SavedTenant") -> None:
    """Check the parts of a tenant.

    Raises:
        ServiceError: an object refers to one that the organization does not have, or two have the same id, or an id has
            characters that no URL of the API can have.
    """
    _check_id("organization.id", saved.organization.id, "org_")
    known = {(part, field): _unique(saved, part, field) for part, field in _UNIQUE}
    for path, found, collection in _references(saved):
        if found is not None and found not in known[collection, "id"]:
            what = collection.replace("_", " ")
            raise wrong(path, f"This must be the id of one of the {what} of the organization.")
    for position, endpoint in enumerate(saved.webhook_endpoints):
        if not is_webhook_target(endpoint.url):
            message = "This must be an https URL, or an http URL of a loopback address."
            raise wrong(f"webhookEndpoints[{position}].url", message)
        if endpoint.id not in saved.secrets:
            raise wrong("secrets", "This must have a secret for each webhook endpoint.")
    for position, delivery in enumerate(saved.webhook_deliveries):
        is_pending = delivery.status == "pending"
        if delivery.attempts < 0 or (is_pending and delivery.attempts >= MAX_WEBHOOK_ATTEMPTS):
            expected = f"0 to {MAX_WEBHOOK_ATTEMPTS - 1} while the delivery is pending" if is_pending else "0 or more"
            raise wrong(f"webhookDeliveries[{position}].attempts", f"This must be {expected}.")


def _unique(saved: "SavedTenant", part: str, field: str) -> set[Any]:
    """Return the values of a field of the items of a list, of which no two are the same."""
    found: set[Any] = set()
    for position, item in enumerate(getattr(saved, part)):
        value, path = getattr(item, field), f"{camel(part)}[{position}].{field}"
        if field == "id":
            _check_id(path, value)
        if value in found:
            raise wrong(path, "This must be unique.")
        found.add(value)
    return found


def _check_id(path: str, value: str, prefix: str = "") -> None:
    if not value.startswith(prefix):
        raise wrong(path, f"This must be an id that begins with {prefix}.")
    if not _ID.fullmatch(value):
        raise wrong(path, "This must have letters, digits, _ and - only, at most 255.")


def _references(saved: "SavedTenant") -> Iterator[tuple[str, str | None, str]]:
    """Iterate over the references between the parts: the path, the id, and the collection that has the object."""
    for part, field, collection in _REFERENCES:
        for position, item in enumerate(getattr(saved, part)):
            yield f"{camel(part)}[{position}].{camel(field)}", getattr(item, field), collection
    for position, job in enumerate(saved.jobs):
        yield f"jobs[{position}].about", job.about, SUBJECT_OF_JOB[job.kind]
    faults = saved.webhook_faults
    for path, ids, collection in (
        ("secrets", saved.secrets, "webhook_endpoints"),
        ("webhookFaults.applied", faults.applied, "webhook_deliveries"),
        ("webhookFaults.heldByEndpoint", faults.held_by_endpoint, "webhook_endpoints"),
        ("webhookFaults.heldByEndpoint", faults.held_by_endpoint.values(), "webhook_deliveries"),
        ("webhookFaults.heldByOvertaker", faults.held_by_overtaker, "webhook_deliveries"),
        ("webhookFaults.heldByOvertaker", faults.held_by_overtaker.values(), "webhook_deliveries"),
    ):
        yield from ((path, each, collection) for each in ids)
