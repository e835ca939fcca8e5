"""The views of the journal: the list of API calls, and one call with its headers and bodies."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import attrs

from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.http.dashboard.redaction import body_text, redacted_headers
from followup_mockserver.http.dashboard.snippets import curl, sdk_code
from followup_mockserver.http.dashboard.tables import ROWS
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.journal import CallDetails, JournalEntry
from followup_mockserver.state.tenant import Tenant

CALLS = "calls"
"""The name of the view, and the first part of its addresses."""


@attrs.frozen(kw_only=True)
class CallRow:
    """A call in the list, with its details; None if the journal no longer keeps them."""

    entry: JournalEntry
    details: CallDetails | None


def list_of_calls(tenant: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables of the list of calls, newest first.

    Args:
        tenant: the state of the organization.
        query: ``operation`` and ``errors`` are filters. The page begins after the call with the request id ``after``.
    """
    operation, errors_only, after = query.get("operation"), "errors" in query, query.get("after")

    def matches(entry: JournalEntry) -> bool:
        return operation in (None, "", entry.operation) and not (errors_only and entry.status == 200)

    matching = sum(map(matches, tenant.journal.newest_first())) if operation or errors_only else len(tenant.journal)
    entries = filter(matches, tenant.journal.newest_first())
    if after and tenant.journal.find(after) is not None:
        for entry in entries:
            if entry.request_id == after:
                break
    else:
        after = None
    rows = list(islice(entries, ROWS + 1))
    return {
        "calls": [CallRow(entry=entry, details=tenant.journal.details(entry)) for entry in rows[:ROWS]],
        "matching": matching,
        "total": len(tenant.journal),
        "operations": list(OPERATIONS),
        "operation": operation,
        "errors_only": errors_only,
        "after": after,
        "older": rows[ROWS - 1].request_id if len(rows) > ROWS else None,
    }


def one_call(tenant: Tenant, request_id: str) -> dict[str, Any]:
    """Return the variables of the view of one call, with API keys and signing secrets redacted.

    Raises:
        ServiceError: 404 if the journal has no call with this request id.
    """
    entry = tenant.journal.find(request_id)
    if entry is None:
        raise missing("API call", param="id")
    details = tenant.journal.details(entry)
    if details is None:
        return {"entry": entry, "details": None}
    return {
        "entry": entry,
        "details": details,
        "request_headers": redacted_headers(details.request_headers),
        "request_body": body_text(details.request_body or b"", details.request_is_whole),
        "response_headers": redacted_headers(details.response_headers),
        "response_body": body_text(details.response_body, details.response_is_whole),
        "curl": curl(entry, details),
        "sdk": sdk_code(entry, details),
    }
