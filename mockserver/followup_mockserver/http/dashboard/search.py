"""The search: by id or its beginning, idempotency key, phone, document, external id, or a part of a name."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, get_args

import attrs

from followup._for_mockserver import EventSource
from followup_mockserver.http.dashboard.calls import CALLS
from followup_mockserver.http.dashboard.columns import TABLES
from followup_mockserver.http.dashboard.moments import HISTORY, PREFIXES
from followup_mockserver.http.dashboard.tables import VIEW_OF_PREFIX, collection_of
from followup_mockserver.state.history import CONTROL, Record
from followup_mockserver.state.journal import REQUEST_ID_PREFIX, JournalEntry
from followup_mockserver.state.tenant import Tenant

MAX_RESULTS = 50

SHORTEST_BEGINNING = 8
"""An id is found by its beginning if at least this many characters of it were entered."""

_BY_EXTERNAL_ID = ("patients", "appointments", "visits", "doctors")


@attrs.frozen(kw_only=True)
class SearchResult:
    """An object, a call, or a job, message or control call of the history that matches the search.

    Attributes:
        view: the view that shows it.
        id: its id.
        matched_by: the attribute that matched, such as ``external id``.
        title: what to show if it has no name.
    """

    view: str
    id: str
    matched_by: str
    title: str


def search(tenant: Tenant, text: str) -> list[SearchResult]:
    """Return the matching objects and calls, each once: exact matches first, then people by a part of their name.

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
    for source in get_args(EventSource):
        for event in tenant.events.find_all("origin", (source, text)):
            yield _result("events", event, "caller's id")
    for call in tenant.journal.newest_first():
        if call.idempotency_key == text:
            yield _call(call, "idempotency key")
    for patient in tenant.patients.find_all("dni", text.replace(".", "")):
        yield _result("patients", patient, "document")
    yield from _patients_by_part(tenant, text)
    part_of_name = text.casefold()
    for doctor in tenant.doctors:
        if part_of_name in doctor.full_name.casefold():
            yield _result("doctors", doctor, "name")


def _with_id(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    """Return the object or the calls whose id this is, or begins with this text."""
    if text.startswith(REQUEST_ID_PREFIX):
        for call in tenant.journal.newest_first():
            if _begins(call.request_id, text):
                yield _call(call, "request id")
        return
    if text.startswith(PREFIXES):
        records = (record for record in tenant.history.records if record.id == text)
        yield from (
            SearchResult(view=HISTORY, id=text, matched_by="id", title=_kind(each)) for each in islice(records, 1)
        )
        return
    view = next((view for prefix, view in VIEW_OF_PREFIX.items() if text.startswith(prefix)), None)
    if view is not None:
        for obj in collection_of(tenant, view):
            if _begins(obj.id, text):
                yield _result(view, obj, "id")


def _kind(record: Record) -> str:
    """Return a job, message or control call in words, such as ``reminder`` or ``advance``."""
    return ((record.outcome if record.kind == CONTROL else None) or record.kind).replace("_", " ")


def _begins(id: str, text: str) -> bool:
    return id == text or (len(text) >= SHORTEST_BEGINNING and id.startswith(text))


def _call(call: JournalEntry, matched_by: str) -> SearchResult:
    status = call.status or "no response"
    return SearchResult(
        view=CALLS, id=call.request_id, matched_by=matched_by, title=f"{call.method} {call.path}: {status}"
    )


def _patients_by_part(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    part_of_name = text.casefold()
    digits = "".join(character for character in text if character.isdigit())
    for patient in tenant.patients:
        if patient.full_name is not None and part_of_name in patient.full_name.casefold():
            yield _result("patients", patient, "name")
        elif len(digits) > 3 and patient.phone is not None and digits in patient.phone:
            yield _result("patients", patient, "phone")


def _result(view: str, obj: Any, matched_by: str) -> SearchResult:
    return SearchResult(view=view, id=obj.id, matched_by=matched_by, title=TABLES[view].singular)
