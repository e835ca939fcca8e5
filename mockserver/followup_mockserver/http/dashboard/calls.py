"""The journal on the dashboard: the API calls as they come, and one of them whole."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import attrs

from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.http.dashboard.masking import masked_headers, readable
from followup_mockserver.http.dashboard.snippets import curl, sdk_code
from followup_mockserver.http.dashboard.tables import ROWS
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.journal import CallDetails, JournalEntry
from followup_mockserver.state.tenant import Tenant

CALLS = "calls"
"""Name of the view."""


@attrs.frozen(kw_only=True)
class CallShown:
    """A call, and what was said in it; None where that is no longer kept."""

    entry: JournalEntry
    details: CallDetails | None


def list_of_calls(tenant: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    """A page of the journal, newest first.

    Args:
        query: ``operation`` and ``problems`` filter; ``after`` is the request id that the page begins after.
    """
    operation, problems, after = query.get("operation"), "problems" in query, query.get("after")

    def fits(entry: JournalEntry) -> bool:
        return operation in (None, "", entry.operation) and not (problems and entry.status == 200)

    matching = sum(map(fits, tenant.journal.newest_first())) if operation or problems else len(tenant.journal)
    wanted = filter(fits, tenant.journal.newest_first())
    if after and tenant.journal.find(after) is not None:
        for entry in wanted:
            if entry.request_id == after:
                break
    else:
        after = None
    rows = list(islice(wanted, ROWS + 1))
    return {
        "calls": [CallShown(entry=entry, details=tenant.journal.details(entry)) for entry in rows[:ROWS]],
        "matching": matching,
        "total": len(tenant.journal),
        "operations": list(OPERATIONS),
        "operation": operation,
        "problems": problems,
        "after": after,
        "older": rows[ROWS - 1].request_id if len(rows) > ROWS else None,
    }


def one_call(tenant: Tenant, request_id: str) -> dict[str, Any]:
    """A call with its headers and bodies, keys and secrets masked.

    Raises:
        ServiceError: 404; there was none with this id, or it is forgotten.
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
        "request_headers": masked_headers(details.request_headers),
        "request_body": readable(details.request_body or b"", details.request_is_whole),
        "response_headers": masked_headers(details.response_headers),
        "response_body": readable(details.response_body, details.response_is_whole),
        "curl": curl(entry, details),
        "sdk": sdk_code(entry, details),
    }
