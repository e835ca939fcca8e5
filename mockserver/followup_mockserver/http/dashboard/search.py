"""The search: by an id, a phone, a document, an external id or a part of a name."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs

from followup_mockserver.http.dashboard.calls import CALLS
from followup_mockserver.http.dashboard.tables import VIEW_OF_PREFIX, collection_of
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant

MAX_RESULTS = 50

_BY_EXTERNAL_ID = ("patients", "appointments", "visits", "doctors")


@attrs.frozen(kw_only=True)
class SearchResult:
    """An object or a call that matches the search.

    Attributes:
        view: the view that shows it.
        id: its id.
        matched_by: the attribute that matched, such as ``external id``.
        title: a name to show for it.
    """

    view: str
    id: str
    matched_by: str
    title: str


def search(tenant: Tenant, text: str) -> list[SearchResult]:
    """Return the matching objects, each once: exact matches first, then patients by a part of their name or phone.

    Args:
        tenant: the state of the organization.
        text: the text to search for; surrounding spaces are ignored.
    """
    text = text.strip()
    if not text:
        return []
    results: dict[str, SearchResult] = {}
    for result in islice(_matches(tenant, text), MAX_RESULTS * 2):
        results.setdefault(result.id, result)
    return list(results.values())[:MAX_RESULTS]


def _matches(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    yield from _with_id(tenant, text)
    for view in _BY_EXTERNAL_ID:
        for obj in collection_of(tenant, view).find_all("external_id", text):
            yield _result(view, obj, "external id")
    for event in tenant.events.find_all("origin", ("api", text)):
        yield _result("events", event, "caller's id")
    for patient in tenant.patients.find_all("dni", text.replace(".", "")):
        yield _result("patients", patient, "document")
    yield from _patients_by_part(tenant, text)
    part_of_name = text.casefold()
    for doctor in tenant.doctors:
        if part_of_name in doctor.full_name.casefold():
            yield _result("doctors", doctor, "name")


def _with_id(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    if text.startswith(REQUEST_ID_PREFIX):
        if (call := tenant.journal.find(text)) is not None:
            yield SearchResult(view=CALLS, id=text, matched_by="request id", title=f"{call.method} {call.path}")
        return
    view = next((view for prefix, view in VIEW_OF_PREFIX.items() if text.startswith(prefix)), None)
    obj = None if view is None else collection_of(tenant, view).get(text)
    if view is not None and obj is not None:
        yield _result(view, obj, "id")


def _patients_by_part(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    part_of_name = text.casefold()
    digits = "".join(character for character in text if character.isdigit())
    for patient in tenant.patients:
        if patient.full_name is not None and part_of_name in patient.full_name.casefold():
            yield _result("patients", patient, "name")
        elif len(digits) > 3 and patient.phone is not None and digits in patient.phone:
            yield _result("patients", patient, "phone")


def _result(view: str, obj: Any, matched_by: str) -> SearchResult:
    names = (getattr(obj, name, None) for name in ("full_name", "type", "kind", "status"))
    return SearchResult(view=view, id=obj.id, matched_by=matched_by, title=next(filter(None, names), obj.id))
