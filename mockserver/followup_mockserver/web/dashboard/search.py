"""The search: by id, idempotency key, phone, document or external id, or by a part of a name, a URL or an error.

Error codes, operations and event types lead to the lists of the calls and events that have them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, get_args
from urllib.parse import urlencode

from followup._for_mockserver import EventSource
from followup_mockserver.control.occurrences import title_of_cause
from followup_mockserver.web.dashboard.calls import CALLS
from followup_mockserver.web.dashboard.columns import noun_of
from followup_mockserver.web.dashboard.history import HISTORY, PREFIXES
from followup_mockserver.web.dashboard.objects import VIEW_OF_PREFIX, collection_of
from followup_mockserver.web.dashboard.webhooks import OUTBOUND_EVENTS, last_result
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.tenant import Tenant

MAX_RESULTS = 50

SHORTEST_BEGINNING = 8
"""An id is found by its beginning if at least this many characters of it were entered."""

SHORTEST_PART = 4
"""A phone, a URL or an error is found by a part of at least this many characters."""

_MARKS = re.compile("[\u0300-\u036f]+")

_BY_EXTERNAL_ID = ("patients", "appointments", "visits", "doctors")


class SearchResult(NamedTuple):
    """An object, a call, or a job, message or control call of the history that matches the search.

    Attributes:
        view: the view that shows it.
        id: its id; of a list the query that filters it, which begins with a question mark.
        matched_by: the attribute that matched, such as ``external id``.
        title: what to show if it has no name.
    """

    view: str
    id: str
    matched_by: str
    title: str


def search(tenant: Tenant, text: str) -> list[SearchResult]:
    """Return the matching objects and calls, each once: exact matches first, then those that contain the text.

    Args:
        tenant: the state of the organization.
        text: the text to search for; surrounding spaces are ignored.
    """
    text = text.strip()
    if not text:
        return []
    results: dict[tuple[str, str], SearchResult] = {}
    # More than are shown, because one object may match in two ways.
    for result in islice(_matches(tenant, text), MAX_RESULTS * 2):
        results.setdefault((result.view, result.id), result)
    return list(results.values())[:MAX_RESULTS]


def meant(tenant: Tenant, text: str, view: str) -> dict[str, str]:
    """Return the objects that a text in the place of an id may mean, and the attribute of each that matched.

    An id, its beginning, an external id and so on precede a part of a phone. Names do not count.

    Args:
        tenant: the state of the organization.
        text: the text, such as an external id, a phone, or an id as a list shortens it.
        view: the view that shows the object; any other text if it may be any object.
    """
    is_any = view not in VIEW_OF_PREFIX.values()
    for matches in (_exact_matches(tenant, text), _by_phone(tenant, text)):
        found = {each.id: each.matched_by for each in matches if is_any or each.view == view}
        if found:
            return found
    return {}


def _matches(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    yield from _exact_matches(tenant, text)
    part = _folded(text).strip()
    if not part:
        return
    yield from _by_part(tenant, "patients", part, "full_name", "name")
    yield from _by_phone(tenant, text)
    yield from _by_part(tenant, "doctors", part, "full_name", "name")
    if len(part) >= SHORTEST_PART:
        yield from _lists(tenant, part)
        yield from _by_part(tenant, "webhook_endpoints", part, "url", "URL")
        yield from _by_part(tenant, "events", part, "error", "error")
        for delivery in tenant.webhook_deliveries:
            shown = f"{delivery.last_error or ''} {last_result(tenant, delivery) or ''}"
            if part in _folded(shown):
                yield _result("webhook_deliveries", delivery, "error")


def _by_phone(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    digits = re.sub(r"\D", "", text)
    # An external id such as T-1001 has digits, and is no phone.
    if len(digits) >= SHORTEST_PART and not re.search("[A-Za-z_]", text):
        yield from _by_part(tenant, "patients", digits, "phone", "phone")


def _exact_matches(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    yield from _with_id(tenant, text)
    for view in _BY_EXTERNAL_ID:
        for obj in collection_of(tenant, view).find_all("external_id", text):
            yield _result(view, obj, "external id")
    for source in get_args(EventSource):
        for event in tenant.events.find_all("origin", (source, text)):
            yield _result("events", event, "caller's id")
    for call in tenant.journal.newest_first():
        if _begins(call.request_id, text):
            yield _call(call, "request id")
        if call.idempotency_key == text:
            yield _call(call, "idempotency key")
    # A document is printed as 30.123.456.
    for patient in tenant.patients.find_all("dni", text.replace(".", "")):
        yield _result("patients", patient, "document")


def _lists(tenant: Tenant, part: str) -> Iterator[SearchResult]:
    """Return the lists of calls with an error code or an operation, and of events with a type, that contain a text."""
    calls, history = [*tenant.journal.newest_first()], tenant.history.records
    for view, filter_name, matched_by, values in (
        (CALLS, "q", "error code", (each.error_code for each in calls)),
        (CALLS, "operation", "operation", (each.operation for each in calls)),
        (OUTBOUND_EVENTS, "type", "event type", (each.kind for each in history if each.receipts)),
        ("webhook_deliveries", "event_type", "event type", (each.event_type for each in tenant.webhook_deliveries)),
        ("events", "type", "event type", (each.type for each in tenant.events)),
    ):
        for value, count in Counter(values).items():
            if value is not None and part in value.casefold():
                yield SearchResult(view, f"?{urlencode({filter_name: value})}", matched_by, f"{value} ({count})")


def _by_part(tenant: Tenant, view: str, part: str, attribute: str, matched_by: str) -> Iterator[SearchResult]:
    for obj in collection_of(tenant, view):
        if part in _folded(getattr(obj, attribute) or ""):
            yield _result(view, obj, matched_by)


def _folded(text: str) -> str:
    """Return a text in lower case and without accents, so that ``marta rios`` finds Marta Ríos."""
    return text.casefold() if text.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))


def _with_id(tenant: Tenant, text: str) -> Iterator[SearchResult]:
    """Return what has this id, and the objects whose ids begin with this text."""
    if text.startswith(PREFIXES):
        records = (record for record in tenant.history.records if record.id == text)
        yield from (SearchResult(HISTORY, text, "id", title_of_cause(each)) for each in islice(records, 1))
    for prefix, view in VIEW_OF_PREFIX.items():
        objects = collection_of(tenant, view) if text.startswith(prefix) else ()
        yield from (_result(view, each, "id") for each in objects if _begins(each.id, text))


def _begins(id: str, text: str) -> bool:
    start, _, end = text.partition("…")  # a list on a terminal shortens ids
    return id == text or (len(start) >= SHORTEST_BEGINNING and id.startswith(start) and id.endswith(end))


def _call(call: JournalEntry, matched_by: str) -> SearchResult:
    status = f"{call.status or 'no response'}{f', {call.refused} of {call.events} refused' if call.refused else ''}"
    return SearchResult(CALLS, call.request_id, matched_by, f"{call.method} {call.path}: {status}")


def _result(view: str, obj: Any, matched_by: str) -> SearchResult:
    return SearchResult(view, obj.id, matched_by, noun_of(view))
