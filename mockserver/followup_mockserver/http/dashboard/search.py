"""Finds what somebody looks for by an id, a phone, a document, an external id or a part of a name."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs

from followup_mockserver.http.dashboard.calls import CALLS
from followup_mockserver.http.dashboard.tables import VIEW_OF_PREFIX, collection_of
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant

MOST_FOUND = 50

_BY_EXTERNAL_ID = ("patients", "appointments", "visits", "doctors")


@attrs.frozen(kw_only=True)
class Found:
    """Something that was found.

    Attributes:
        view: the view that shows it.
        why: what of it was looked for, in a few words.
        title: what it is called.
    """

    view: str
    id: str
    why: str
    title: str


def search(tenant: Tenant, text: str) -> list[Found]:
    """What fits, each object once: exact fits first, then patients by a part of their name or phone."""
    wanted = text.strip()
    if not wanted:
        return []
    found: dict[str, Found] = {}
    for each in islice(_fitting(tenant, wanted), MOST_FOUND * 2):
        found.setdefault(each.id, each)
    return list(found.values())[:MOST_FOUND]


def _fitting(tenant: Tenant, wanted: str) -> Iterator[Found]:
    yield from _with_id(tenant, wanted)
    for view in _BY_EXTERNAL_ID:
        for obj in collection_of(tenant, view).find_all("external_id", wanted):
            yield _found(view, obj, "external id")
    for event in tenant.events.find_all("origin", ("api", wanted)):
        yield _found("events", event, "caller's id")
    for patient in tenant.patients.find_all("dni", wanted.replace(".", "")):
        yield _found("patients", patient, "document")
    yield from _patients_by_part(tenant, wanted)
    part = wanted.casefold()
    for doctor in tenant.doctors:
        if part in doctor.full_name.casefold():
            yield _found("doctors", doctor, "name")


def _with_id(tenant: Tenant, wanted: str) -> Iterator[Found]:
    if wanted.startswith(REQUEST_ID_PREFIX):
        if (call := tenant.journal.find(wanted)) is not None:
            yield Found(view=CALLS, id=wanted, why="request id", title=f"{call.method} {call.path}")
        return
    view = next((view for prefix, view in VIEW_OF_PREFIX.items() if wanted.startswith(prefix)), None)
    obj = None if view is None else collection_of(tenant, view).get(wanted)
    if view is not None and obj is not None:
        yield _found(view, obj, "id")


def _patients_by_part(tenant: Tenant, wanted: str) -> Iterator[Found]:
    part = wanted.casefold()
    digits = "".join(character for character in wanted if character.isdigit())
    for patient in tenant.patients:
        if patient.full_name is not None and part in patient.full_name.casefold():
            yield _found("patients", patient, "name")
        elif len(digits) > 3 and patient.phone is not None and digits in patient.phone:
            yield _found("patients", patient, "phone")


def _found(view: str, obj: Any, why: str) -> Found:
    names = (getattr(obj, name, None) for name in ("full_name", "type", "kind", "status"))
    return Found(view=view, id=obj.id, why=why, title=next(filter(None, names), obj.id))
