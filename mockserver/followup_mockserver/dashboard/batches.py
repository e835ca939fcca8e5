"""The results of a batch of events, beside the events that were sent."""

from itertools import zip_longest
from typing import Any

import attrs

from followup_mockserver.dashboard.calls import events_in
from followup_mockserver.dashboard.json_bodies import json_body
from followup_mockserver.state.journal import CallDetails, JournalEntry
from followup_mockserver.state.request_faults import INJECTED


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
