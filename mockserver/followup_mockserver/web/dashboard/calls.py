"""The calls: the list, and the page of one call, with what it did, its bodies, and the command that repeats it."""

import json
import shlex
from collections.abc import Callable, Mapping
from itertools import zip_longest
from operator import attrgetter
from typing import Any
from urllib.parse import quote, urlencode

import attrs

from followup_mockserver.control.duplicates import suspect_calls, was_done
from followup_mockserver.control.occurrences import counted
from followup_mockserver.gateway.operations import is_batch
from followup_mockserver.rules.events import events_in
from followup_mockserver.web.dashboard.columns import TABLES, day_in, noun_of
from followup_mockserver.web.dashboard.objects import ListPage, list_page
from followup_mockserver.world.schema.errors import KEY_REUSED, ServiceError
from followup_mockserver.world.schema.validation import decoded_json
from followup_mockserver.world.state.faults import INJECTED
from followup_mockserver.world.state.journal import CallDetails, JournalEntry, RecordedCall
from followup_mockserver.world.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import existing

CALLS = "calls"
"""The name of the view, and the first part of its addresses."""


def is_error(entry: JournalEntry) -> bool:
    """Return whether a call failed, or its client got no response, or the service refused events of its batch."""
    return entry.status != 200 or entry.refused > 0


_TABS: Mapping[str, Callable[[RecordedCall], bool]] = {
    "": lambda _: True,
    "errors": lambda call: is_error(call.entry),
    "refused_events": lambda call: call.entry.refused > 0,
    "faults": lambda call: call.outcome.fault is not None,
    "replays": lambda call: call.entry.replayed,
    "changed_duplicates": lambda call: bool(call.entry.changed_duplicates),
}
"""Value of the filter ``show`` to whether its tab shows a call, without those of duplicates and of a mark."""


def refused_events(tenant: Tenant) -> dict[str, int]:
    """Return how many events the service refused, and of how many calls, as far as the journal keeps them."""
    counts = [entry.refused for entry in tenant.journal.newest_first() if entry.refused]
    return {"events": sum(counts), "calls": len(counts)}


def list_of_calls(tenant: Tenant, query: Mapping[str, str]) -> ListPage:
    """Return a page of the list of calls. A row is a call, its details or None, and its ``SuspectCall`` or None.

    Args:
        tenant: the state of the organization.
        query: ``show`` is a tab, ``operation`` a name, ``status`` a code, ``day`` a day of the organization, and ``q``
            a text that the path, the id of the call or of its object, the idempotency key or the error code contains.
            ``mark`` is the request id of the last call before the mark, or ``start`` if there was none. The page begins
            after the call with the request id ``after``; an unknown one, such as one from before a reset, selects the
            first page.
    """
    suspects = suspect_calls(tenant)
    calls = list(tenant.journal.recorded_newest_first())
    text = query.get("q", "").strip()
    tabs = {**_TABS, "possible_duplicates": lambda call: call.entry.request_id in suspects}
    mark = query.get("mark", "")
    marked = next((each.number for each in calls if each.entry.request_id == mark), 0 if mark == "start" else None)
    if marked is not None:
        tabs = {"": _TABS[""], "since_the_mark": lambda call: call.number > marked, **tabs}
    facets: dict[str, Callable[[RecordedCall], str]] = {
        "operation": lambda call: call.entry.operation or "",
        "status": lambda call: str(call.entry.status or "dropped"),
        "day": lambda call: day_in(tenant, call.entry.at),
    }
    # Not a facet: the numbers of all filters are those of the calls that have the text.
    matching = [call for call in calls if _contains(call, text.casefold())] if text else calls
    page = list_page(CALLS, matching, query, attrgetter("entry.request_id"), facets, tabs)
    rows = [(each, tenant.journal.details(each.entry), suspects.get(each.entry.request_id)) for each in page.rows]
    return attrs.evolve(page, rows=rows, total=len(calls), filters={**page.filters, "q": text, "mark": mark})


def _contains(call: RecordedCall, text: str) -> bool:
    entry = call.entry
    texts = (entry.path, entry.operation, entry.request_id, entry.idempotency_key, entry.error_code, entry.param)
    return any(text in each.casefold() for each in (*texts, call.outcome.about) if each)


def subject_of(entry: JournalEntry, details: CallDetails | None) -> str | None:
    """Return the external id in the request of a call; or the query of a list, the number of events of a batch."""
    if details is None:
        return None
    body = json_body(details.request_body, details.request_is_whole)
    if is_batch(entry.operation):
        return counted(len(events_in(body)), "event")
    query = ", ".join(f"{name} {value}" for name, value in details.query)
    return query or _text(body, "externalId")


def _text(value: Any, name: str) -> str | None:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def results_of_batch(entry: JournalEntry, details: CallDetails) -> list[dict[str, Any]] | None:
    """Return the results of a batch as in the response, each with the ``type`` that was sent, None if it was no text.

    Returns:
        The results; None if the call returned none, or they were not kept.
    """
    response = json_body(details.response_body, details.response_is_whole)
    results = response.get("results") if isinstance(response, dict) else None
    if not is_batch(entry.operation) or not isinstance(results, list):
        return None
    sent = events_in(json_body(details.request_body, details.request_is_whole))
    return [
        {**result, "type": _text(event, "type"), "is_fault": result["error"] == INJECTED}
        # The request may have been too long to be kept, while its response was not.
        for result, event in zip_longest(results, sent)
        if result
    ]


MAX_SHARING = 50
"""The page shows at most this many calls with the same idempotency key, the latest."""


def one_call(tenant: Tenant, request_id: str) -> dict[str, Any]:
    """Return the variables of the view of one call.

    Raises:
        ServiceError: 404 if the journal has no call with this request id.
    """
    calls = list(tenant.journal.recorded_newest_first())
    call = existing(next((each for each in calls if each.entry.request_id == request_id), None), "API call")
    details = tenant.journal.details(call.entry)
    suspects = suspect_calls(tenant)
    key = call.entry.idempotency_key
    sharing = [each for each in calls if key is not None and each.entry.idempotency_key == key]
    first, did = _first_of(sharing, call), (request_id, call.outcome.about)
    group = (call.entry.operation or "").partition(".")[0]
    return {
        "call": call,
        "entry": call.entry,
        "suspect": suspects.get(request_id),
        "repeated_by": [each.entry.request_id for each in suspects.values() if each.other == request_id],
        "first": first,
        "first_details": first and tenant.journal.details(first.entry),
        "sharing": sharing[:MAX_SHARING] if len(sharing) > 1 else [],
        "was_done": was_done(call),
        "became": [
            each.outcome and each.outcome.text for each in tenant.history.records if (each.cause, each.id) == did
        ],
        "results": details and results_of_batch(call.entry, details),
        "noun": noun_of(group) if group in TABLES else "organization",
        "details": details,
        "answer": details and json_body(details.response_body, details.response_is_whole),
        "curl": details and curl(call.entry, details),
    }


def _first_of(sharing: list[RecordedCall], call: RecordedCall) -> RecordedCall | None:
    """Return the first call with an idempotency key that a call reused for another request; None if it did not."""
    earlier = [each for each in sharing if each.number < call.number and was_done(each) and not each.entry.replayed]
    return earlier[0] if call.entry.error_code == KEY_REUSED and earlier else None


# curl sends the others itself, such as Host and Content-Length.
_HEADERS_OF_CURL = ("content-type", "idempotency-key", "service-version")


def curl(entry: JournalEntry, details: CallDetails) -> str | None:
    """Return a shell command that repeats the call, with the API key from the environment.

    Returns:
        The command; None if only the beginning of the request body was kept.
    """
    if not details.request_is_whole:
        return None
    query = f"?{urlencode(details.query)}" if details.query else ""
    words = ['curl -sS "$FOLLOWUP_BASE_URL"' + shlex.quote(f"{quote(entry.path)}{query}")]
    if entry.method != "GET":
        words.append(f"-X {entry.method}")
    words.append('-H "Authorization: Bearer $FOLLOWUP_API_KEY"')
    words += [
        "-H " + shlex.quote(f"{name.title()}: {details.request_headers[name]}")
        for name in _HEADERS_OF_CURL
        if name in details.request_headers
    ]
    if details.request_body:
        words.append("--data-raw " + shlex.quote(details.request_body.decode(errors="replace")))
    return " \\\n  ".join(words)


_MAX_DEPTH = 100
"""A body that is nested more deeply is shown as it is. Python cannot indent a body of ten times this depth."""


def json_body(body: bytes | None, is_whole: bool) -> Any:
    """Return a body as JSON; None if it is not JSON that the page can show.

    Args:
        body: the body, or its beginning.
        is_whole: whether it is the whole body.
    """
    if not body or not is_whole:
        return None
    try:
        # Strict, because a lone surrogate, which JSON can escape, cannot be encoded in the page.
        return decoded_json(body, _MAX_DEPTH)
    except ServiceError:
        return None


def body_text(body: bytes, is_whole: bool = True) -> str:
    """Return a body as text, indented if it is JSON.

    Args:
        body: the body, or its beginning.
        is_whole: False if only the beginning was kept; the text then ends with an ellipsis.
    """
    value = json_body(body, is_whole)
    text = body.decode(errors="replace") if value is None else json.dumps(value, ensure_ascii=False, indent=2)
    return text if is_whole else f"{text}…"


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers, sorted by name, without the caller's credentials and the cookies that a receiver set."""
    return {name: _redacted(name, value) for name, value in sorted(headers.items())}


def _redacted(name: str, value: str) -> str:
    if name == "set-cookie":
        return f"{value.partition('=')[0]}=…"
    if name != "authorization":
        return value
    scheme, _, key = value.partition(" ")
    key_prefix = next((prefix for prefix in (TEST_KEY_PREFIX, LIVE_KEY_PREFIX) if key.startswith(prefix)), "")
    return f"{scheme} {key_prefix}…"
