"""Inbound events: the requests that brought them, the codes of their errors, and what became of them in a sentence."""

from collections.abc import Iterator, Sequence
from typing import Any

from followup import Event
from followup_mockserver.state.history import EVENT, Record
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.request_faults import INJECTED
from followup_mockserver.state.tenant import Tenant

_FAILED = "failed: "
"""The beginning of the outcome of an event that failed; the error code follows."""


def requests_of_events(tenant: Tenant, events: Sequence[Event]) -> dict[str, str]:
    """Return the id of the last request that brought each event, by the id of the event."""
    return {
        record.id: record.cause
        for record in _records_of(tenant, {event.id for event in events})
        if record.cause is not None and record.cause.startswith(REQUEST_ID_PREFIX)
    }


def event_details(tenant: Tenant, event: Event) -> dict[str, Any]:
    """Return the variables of the page of an event, besides its fields."""
    records = list(_records_of(tenant, {event.id}))
    causes = [record.cause for record in records if record.cause is not None]
    return {
        "requests": [cause for cause in dict.fromkeys(causes) if cause.startswith(REQUEST_ID_PREFIX)],
        "error_code": _code_in(records) if event.status == "failed" else None,
        "is_fault": event.error == INJECTED,
    }


def _records_of(tenant: Tenant, ids: set[str]) -> Iterator[Record]:
    return (record for record in tenant.history.records if record.kind == EVENT and record.id in ids)


def _code_in(records: Sequence[Record]) -> str | None:
    outcome = next((record.outcome for record in reversed(records) if record.outcome is not None), "")
    return outcome.removeprefix(_FAILED) if outcome.startswith(_FAILED) else None
