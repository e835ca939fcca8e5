"""Checks of what the objects of a snapshot say about each other, so that no rule meets a reference to nothing."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, camel
from followup_mockserver.schema.formats import is_webhook_target
from followup_mockserver.state.collection import Collection
from followup_mockserver.state.jobs import SUBJECT_OF_JOB
from followup_mockserver.state.snapshots.codecs import SnapshotError
from followup_mockserver.state.snapshots.parts import PARTS
from followup_mockserver.state.tenant import Tenant

_ID = re.compile("[A-Za-z0-9_-]{4,255}")

_REFERENCES = (
    ("appointments", "patient", "patients"),
    ("appointments", "doctor", "doctors"),
    ("visits", "patient", "patients"),
    ("visits", "doctor", "doctors"),
    ("visits", "appointment", "appointments"),
    ("intake_requests", "patient", "patients"),
    ("treatments", "patient", "patients"),
    ("webhook_deliveries", "webhook_endpoint", "webhook_endpoints"),
    ("messages", "patient", "patients"),
)
"""The fields that contain the id of another object, or None where they may be empty: attribute of ``Tenant``, name of
the field, and the collection that has the other object."""


def check_references(tenant: Tenant, path: str) -> None:
    """Check a loaded tenant.

    Args:
        tenant: the tenant.
        path: place of the organization in the snapshot.

    Raises:
        SnapshotError: an object refers to one that the organization does not have, or an id has characters that no URL
            of the API can have.
    """
    _check_id(tenant.organization.id, "org_", f"{path}.organization.id")
    for part in PARTS:
        found = getattr(tenant, part.attribute)
        if isinstance(found, Collection):
            for position, each in enumerate(found):
                _check_id(each.id, "", f"{path}.{part.name}[{position}].id")
    for attribute, field, collection in _REFERENCES:
        known = getattr(tenant, collection)
        for position, record in enumerate(getattr(tenant, attribute)):
            found = getattr(record, field)
            if found is not None and found not in known:
                raise _unknown(f"{path}.{camel(attribute)}[{position}].{camel(field)}", collection)
    _check_webhooks(tenant, path)
    for position, timer in enumerate(tenant.scheduler.pending()):
        subject = SUBJECT_OF_JOB[timer.job.kind]
        if timer.job.about not in getattr(tenant, subject):
            raise _unknown(f"{path}.jobs[{position}].about", subject)


def ids_of(tenant: Tenant) -> Iterator[str]:
    """Iterate over the ids, secrets and keys of a tenant: none of them may be generated again."""
    for value in vars(tenant).values():
        if isinstance(value, Collection):
            yield from (each.id for each in value)
    yield from tenant.secrets.values()
    yield from (message.id for message in tenant.messages)


def _check_id(value: str, prefix: str, path: str) -> None:
    if not value.startswith(prefix):
        raise SnapshotError(path, f"This must be an id that begins with {prefix}.")
    if not _ID.fullmatch(value):
        raise SnapshotError(path, "This must have letters, digits, _ and - only, at most 255.")


def _check_webhooks(tenant: Tenant, path: str) -> None:
    endpoints, deliveries = tenant.webhook_endpoints, tenant.webhook_deliveries
    for position, endpoint in enumerate(endpoints):
        if not is_webhook_target(endpoint.url):
            raise SnapshotError(
                f"{path}.webhookEndpoints[{position}].url",
                "This must be an https URL, or an http URL of a loopback address.",
            )
        if endpoint.id not in tenant.secrets:
            raise SnapshotError(f"{path}.secrets", "This must have a secret for each webhook endpoint.")
    _check_keys(tenant.secrets, endpoints, f"{path}.secrets")
    for position, delivery in enumerate(deliveries):
        most = MAX_WEBHOOK_ATTEMPTS - 1 if delivery.status == "pending" else None
        if delivery.attempts < 0 or (most is not None and delivery.attempts > most):
            expected = "0 or more" if most is None else f"0 to {most} while the delivery is pending"
            raise SnapshotError(f"{path}.webhookDeliveries[{position}].attempts", f"This must be {expected}.")
    _check_keys(tenant.attempts.deliveries(), deliveries, f"{path}.attempts")
    faults = tenant.webhook_faults
    _check_keys(faults.applied, deliveries, f"{path}.webhookFaults.applied")
    _check_keys(faults.held_by_endpoint, endpoints, f"{path}.webhookFaults.heldByEndpoint")
    _check_keys(faults.held_by_endpoint.values(), deliveries, f"{path}.webhookFaults.heldByEndpoint")
    _check_keys(faults.held_by_overtaker, deliveries, f"{path}.webhookFaults.heldByOvertaker")
    _check_keys(faults.held_by_overtaker.values(), deliveries, f"{path}.webhookFaults.heldByOvertaker")


def _check_keys(ids: Iterable[str], known: Collection[Any], path: str) -> None:
    for each in ids:
        if each not in known:
            raise SnapshotError(path, "This must refer to endpoints and deliveries of the organization only.")


def _unknown(path: str, collection: str) -> SnapshotError:
    what = collection.replace("_", " ")
    return SnapshotError(path, f"This must be the id of one of the {what} of the organization.")
