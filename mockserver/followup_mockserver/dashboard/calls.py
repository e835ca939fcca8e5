"""The list of API calls, with its tabs, filters and marks, and the results of batches of events."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.dashboard.objects import ListPage, page_after
from followup_mockserver.dashboard.texts import json_body
from followup_mockserver.state.faults import INJECTED
from followup_mockserver.state.journal import CallDetails, JournalEntry, RecordedCall
from followup_mockserver.state.tenant import Tenant

CALLS = "calls"
"""The name of the view, and the first part of its addresses."""

_FILTERS = ("show", "operation", "q")


def is_error(entry: JournalEntry) -> bool:
    """Return whether a call failed, or its client got no response, or the service refused events of its batch."""
    return entry.status != 200 or entry.refused > 0


TABS: Mapping[str, Callable[[RecordedCall], bool]] = {
    "": lambda _: True,
    "errors": lambda call: is_error(call.entry),
    "refused_events": lambda call: call.entry.refused > 0,
    "faults": lambda call: call.outcome.fault is not None,
    "replays": lambda call: call.entry.replayed,
}
"""Value of the filter ``show`` to whether its tab shows a call."""


def refused_events(tenant: Tenant) -> dict[str, int]:
    """Return how many events the service refused, and of how many calls, as far as the journal keeps them."""
    counts = [entry.refused for entry in tenant.journal.newest_first() if entry.refused]
    return {"events": sum(counts), "calls": len(counts)}


def list_of_calls(tenant: Tenant, query: Mapping[str, str]) -> ListPage:
    """Return a page of the list of calls. Its rows are pairs of a call and its details, None if they are not kept.

    Args:
        tenant: the state of the organization.
        query: ``show`` is a tab, ``operation`` a name, and ``q`` a text that the path, the id of the call or of its
            object, the idempotency key or the error code contains. The page begins after the call with the request id
            ``after``; an unknown one, such as one from before a reset, selects the first page.
    """
    filters = {name: value for name in _FILTERS if (value := query.get(name, "").strip())}
    if filters.get("show") not in TABS:
        filters.pop("show", None)
    calls = list(tenant.journal.recorded_newest_first())
    operations = Counter(call.entry.operation for call in calls)
    found = _matching(calls, filters.get("operation"), filters.get("q"))
    return page_after(
        CALLS,
        [*filter(TABS[filters.get("show", "")], found)],
        query.get("after"),
        lambda call: call.entry.request_id,
        lambda call: (call, tenant.journal.details(call.entry)),
        total=len(calls),
        filters=filters,
        counts={
            "show": {name: sum(map(shows, found)) for name, shows in TABS.items()},
            "operation": {"": len(calls)} | {name: operations[name] for name in OPERATIONS if name in operations},
        },
    )


def _matching(calls: list[RecordedCall], operation: str | None, text: str | None) -> list[RecordedCall]:
    if operation:
        calls = [call for call in calls if call.entry.operation == operation]
    if text:
        part = text.casefold()
        calls = [call for call in calls if any(part in each.casefold() for each in _texts_of(call) if each)]
    return calls


def _texts_of(call: RecordedCall) -> tuple[str | None, ...]:
    entry = call.entry
    others = entry.idempotency_key, entry.error_code, entry.param, call.outcome.about
    return (entry.path, entry.operation, entry.request_id, *others)


def subject_of(entry: JournalEntry, details: CallDetails | None) -> str | None:
    """Return what a call was about in the caller's words: an external id, a number of events, or the query."""
    if details is None:
        return None
    if entry.method == "GET":
        return ", ".join(f"{name} {value}" for name, value in details.query) or None
    body = json_body(details.request_body, details.request_is_whole)
    if entry.operation == "events.create":
        events = events_in(body)
        return f"{len(events)} events" if len(events) != 1 else _text(events[0], "id")
    return _text(body, "externalId") or (_text(body.get("patient"), "externalId") if isinstance(body, dict) else None)


def _text(value: Any, name: str) -> str | None:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def events_in(body: Any) -> list[Any]:
    """Return the events in the body of ``events.create``: one, an array, or an array under ``events``."""
    events = body.get("events", body) if isinstance(body, dict) else body
    return events if isinstance(events, list) else [] if events is None else [events]


def results_of_batch(entry: JournalEntry, details: CallDetails) -> list[dict[str, Any]] | None:
    """Return the results of a batch as in the response, each with the ``type`` that was sent, None if it was no text.

    Returns:
        The results; None if the call returned none, or they were not kept.
    """
    response = json_body(details.response_body, details.response_is_whole)
    results = response.get("results") if isinstance(response, dict) else None
    if entry.operation != "events.create" or not isinstance(results, list):
        return None
    sent = events_in(json_body(details.request_body, details.request_is_whole))
    return [
        {**result, "type": _text(event, "type"), "is_fault": result["error"] == INJECTED}
        for result, event in zip_longest(results, sent)
        if result
    ]
