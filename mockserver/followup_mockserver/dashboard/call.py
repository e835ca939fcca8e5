"""The page of one API call: what it did, the calls that share its idempotency key, headers and bodies."""

from collections.abc import Mapping
from typing import Any

from followup_mockserver.dashboard.batches import results_of_batch
from followup_mockserver.dashboard.json_bodies import body_text
from followup_mockserver.dashboard.redaction import redacted_headers
from followup_mockserver.dashboard.snippets import curl, sdk_code
from followup_mockserver.dashboard.verdicts import verdict_of
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.journal import CallDetails, RecordedCall
from followup_mockserver.state.tenant import Tenant

MAX_SHARING = 50
"""The page shows at most this many calls with the same idempotency key, the latest."""


def one_call(tenant: Tenant, request_id: str) -> dict[str, Any]:
    """Return the variables of the view of one call.

    Raises:
        ServiceError: 404 if the journal has no call with this request id.
    """
    calls = list(tenant.journal.recorded_newest_first())
    call = next((each for each in calls if each.entry.request_id == request_id), None)
    if call is None:
        raise missing("API call", param="id")
    details = tenant.journal.details(call.entry)
    sharing = _sharing(calls, call)
    return {
        "call": call,
        "entry": call.entry,
        "details": details,
        "sharing": sharing if len(sharing) > 1 else [],
        "verdict": verdict_of(tenant, call, details),
        "results": None if details is None else results_of_batch(call.entry, details),
        **({} if details is None else _details(call, details)),
    }


def _sharing(calls: list[RecordedCall], call: RecordedCall) -> list[RecordedCall]:
    """Return the calls with the same idempotency key, newest first."""
    key = call.entry.idempotency_key
    sharing = [] if key is None else [each for each in calls if each.entry.idempotency_key == key]
    return sharing if len(sharing) <= MAX_SHARING else [*sharing[: MAX_SHARING - 1], sharing[-1]]


def _details(call: RecordedCall, details: CallDetails) -> Mapping[str, Any]:
    return {
        "request_headers": redacted_headers(details.request_headers),
        "request_body": body_text(details.request_body or b"", details.request_is_whole),
        "response_headers": redacted_headers(details.response_headers),
        "response_body": body_text(details.response_body, details.response_is_whole),
        "curl": curl(call.entry, details),
        "sdk": sdk_code(call.entry, details),
    }
