"""The list of API calls, with its tabs, filters and marks, and the results of batches of events."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import attrs

from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.dashboard.columns import EMPTY_LISTS, EmptyList
from followup_mockserver.dashboard.objects import ROWS, ListPage
from followup_mockserver.dashboard.texts import json_body
from followup_mockserver.state.faults import INJECTED
from followup_mockserver.state.journal import CallDetails, JournalEntry, RecordedCall
from followup_mockserver.state.tenant import Tenant

CALLS = "calls"
"""The name of the view, and the first part of its addresses."""

REFUSED = "refused_events"
"""The tab with the calls of which the service refused events."""

_FILTERS = ("show", "operation", "q")


def is_error(entry: JournalEntry) -> bool:
    """Return whether a call failed, or its client got no response, or the service refused events of its batch."""
    return entry.status != 200 or entry.refused > 0


TABS: Mapping[str, Callable[[RecordedCall], bool]] = {
    "errors": lambda call: is_error(call.entry),
    REFUSED: lambda call: call.entry.refused > 0,
    "faults": lambda call: call.outcome.fault is not None,
    "replays": lambda call: call.entry.replayed,
}
"""The tabs besides the one with all calls: value of the filter ``show`` to whether it shows a call."""


@attrs.frozen(kw_only=True)
class CallRow:
    """A call in the list.

    Attributes:
        call: the call.
        details: its details; None if the journal no longer keeps them.
        subject: what a call without an object was about: an external id, the number of events, or the query.
    """

    call: RecordedCall
    details: CallDetails | None
    subject: str | None

    @property
    def entry(self) -> JournalEntry:
        """The entry of the journal."""
        return self.call.entry


@attrs.frozen(kw_only=True)
class CallsPage(ListPage):
    """A page of the list of calls. It counts the calls of each tab.

    Attributes:
        operations: number of calls of each operation that was called.
        is_later_page: whether there are newer calls that match.
        empty: what the list shows if there are no calls at all.
    """

    operations: Mapping[str, int]
    is_later_page: bool
    empty: EmptyList = EMPTY_LISTS[CALLS]


class Refused(NamedTuple):
    """The events that the service refused, and the calls that sent them."""

    events: int
    calls: int


def refused_events(tenant: Tenant) -> Refused:
    """Return how many events the service refused, as far as the journal keeps their calls."""
    counts = [entry.refused for entry in tenant.journal.newest_first() if entry.refused]
    return Refused(sum(counts), len(counts))


def list_of_calls(tenant: Tenant, query: Mapping[str, str]) -> CallsPage:
    """Return a page of the list of calls.

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
    operations = _by_operation(calls)
    found = _matching(calls, filters.get("operation"), filters.get("q"))
    shown = list(filter(TABS[filters["show"]], found)) if "show" in filters else found
    start = next((place for place, call in enumerate(shown, 1) if call.entry.request_id == query.get("after")), 0)
    rows = list(islice(shown, start, start + ROWS))
    return CallsPage(
        name=CALLS,
        rows=[
            CallRow(
                call=call,
                details=(details := tenant.journal.details(call.entry)),
                subject=subject_of(call.entry, details),
            )
            for call in rows
        ],
        filters=filters,
        counts=_counts(found),
        matching=len(shown),
        total=len(calls),
        operations=operations,
        is_later_page=start > 0,
        older=rows[-1].entry.request_id if start + ROWS < len(shown) else None,
    )


def _by_operation(calls: list[RecordedCall]) -> dict[str, int]:
    counts = Counter(entry.operation for _, entry, _ in calls)
    return {name: counts[name] for name in OPERATIONS if name in counts}


def _counts(calls: list[RecordedCall]) -> dict[str, int]:
    """Return the number of calls for each tab."""
    return {"": len(calls)} | {name: sum(map(shows, calls)) for name, shows in TABS.items()}


def _matching(calls: list[RecordedCall], operation: str | None, text: str | None) -> list[RecordedCall]:
    if operation:
        calls = [call for call in calls if call.entry.operation == operation]
    if text:
        part = text.casefold()
        calls = [call for call in calls if any(part in each.casefold() for each in _texts_of(call) if each)]
    return calls


def _texts_of(call: RecordedCall) -> tuple[str | None, ...]:
    entry, outcome = call.entry, call.outcome
    return (
        entry.path,
        entry.operation,
        entry.request_id,
        entry.idempotency_key,
        entry.error_code,
        entry.param,
        outcome.about,
    )


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


@attrs.frozen(kw_only=True)
class BatchRow:
    """An event of a batch, and its result.

    Attributes:
        index: its position, from 0, as in ``events[0]``.
        id: the id that the caller sent.
        type: the type that the caller sent; None if it is not known.
        status: status of the result.
        error: the error; None without one.
        event: id of the stored event; None if it was not stored.
        produced: id of the object that it created or changed.
        is_fault: whether a fault made it fail.
    """

    index: int
    id: str
    type: str | None
    status: str
    error: str | None
    event: str | None
    produced: str | None
    is_fault: bool


def results_of_batch(entry: JournalEntry, details: CallDetails) -> list[BatchRow] | None:
    """Return the events of a batch with their results; None if the call returned no results, or they were not kept."""
    if entry.operation != "events.create":
        return None
    response = json_body(details.response_body, details.response_is_whole)
    results = response.get("results") if isinstance(response, dict) else None
    if not isinstance(results, list):
        return None
    sent = events_in(json_body(details.request_body, details.request_is_whole))
    return [_row(index, result, event) for index, (result, event) in enumerate(zip_longest(results, sent)) if result]


def _row(index: int, result: Any, event: Any) -> BatchRow:
    type_ = event.get("type") if isinstance(event, dict) else None
    return BatchRow(
        index=index,
        id=result["id"],
        type=type_ if isinstance(type_, str) else None,
        status=result["status"],
        error=result["error"],
        event=result["event"],
        produced=None if result["result"] is None else result["result"]["id"],
        is_fault=result["error"] == INJECTED,
    )
