"""The pages of a webhook delivery, with its attempts and what the receiver responded, and of a webhook endpoint."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Any

from followup import WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS
from followup_mockserver.control.titles import STOPPED, state_of
from followup_mockserver.deliveries.deliveries import url_of
from followup_mockserver.deliveries.payloads import body_of, headers_of
from followup_mockserver.web.dashboard.objects import page_of
from followup_mockserver.web.dashboard.texts import body_text, json_body, redacted_headers
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.records import Attempt, ReceiverResponse
from followup_mockserver.world.state.tenant import Tenant

DELIVERIES = 10
"""Deliveries that the page of an endpoint shows, the latest."""

_REASONS = ("error", "message", "detail", "title", "description", "reason", "error_description", "msg")
"""Names under which servers put the reason of an error into a JSON object, the most common first."""

_LONGEST_REASON = 160
"""Characters of a reason that are shown; the whole body is shown beside it."""

_LONGEST_SENTENCE = 300
"""A body of text is the reason only if it is no longer than this."""


def delivery_details(tenant: Tenant, delivery: WebhookDelivery) -> dict[str, Any]:
    """Return the variables of the page of a delivery."""
    attempts = [*_shown(tenant.attempts.of(delivery.id))]
    # A repetition by a webhook fault does not count, and neither does a manual retry that failed after the end.
    counted = [each for each in attempts if each["attempt"].trigger != "disturbance"]
    fault = tenant.webhook_faults.applied.get(delivery.id)
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    return {
        "endpoint": endpoint,
        "target": "a deleted endpoint" if endpoint is None else url_of(tenant, endpoint),
        "attempts": attempts,
        "last": counted[-1] if counted else None,
        "successful": next((each for each in counted if each["attempt"].error is None), None),
        "fault": None if fault is None else fault.kind,
        "max_attempts": MAX_WEBHOOK_ATTEMPTS,
        "body": body_of(delivery).decode(),
    }


def _shown(attempts: Sequence[Attempt]) -> Iterator[dict[str, Any]]:
    waits = [None, *(after.at - before.at for before, after in pairwise(attempts))]
    for attempt, wait in zip(attempts, waits, strict=False):
        yield {
            "attempt": attempt,
            "wait": wait and timedelta(seconds=round(wait.total_seconds())),
            "result": result_of(attempt),
            "sent_at": datetime.fromtimestamp(attempt.timestamp, UTC),
            "headers": headers_of(
                event_type=attempt.event_type,
                number=attempt.number,
                timestamp=attempt.timestamp,
                signature=attempt.signature,
            ),
            "response": None if attempt.response is None else _shown_response(attempt.response),
        }


def _shown_response(response: ReceiverResponse) -> dict[str, Any]:
    """Return a response as the page shows it, with a note about what the body does not say itself."""
    size = f"{len(response.body):,} bytes{'' if response.body_is_whole else ' of it are kept'}"
    body, note = None, None
    if not response.body:
        note = "The response has no body." if response.body_is_whole else "The body did not arrive."
    elif _is_binary(response.body):
        note = f"The body is binary, {size}."
    else:
        body = body_text(response.body, response.body_is_whole)
        note = None if response.body_is_whole else f"This is the beginning of the body, {size}."
    return {
        "status_line": response.status_line,
        "headers": redacted_headers(response.headers),
        "body": body,
        "is_json": _json(response) is not None,
        "note": note,
    }


def result_of(attempt: Attempt) -> str:
    """Return the result of an attempt in a few words, such as ``500 database is locked``."""
    if attempt.status_code is None:
        return (attempt.error or "No response.").rstrip(".")
    if attempt.response is None:
        return str(attempt.status_code)
    reason = None if attempt.error is None else _reason(attempt.response)
    return f"{attempt.status_code} {reason}" if reason else attempt.response.status_line.partition(" ")[2]


def last_result(tenant: Tenant, delivery: WebhookDelivery) -> str | None:
    """Return why a delivery has not succeeded: the result of its last attempt, or why it was given up; or None."""
    if delivery.status == "succeeded" or delivery.last_error is None:
        return None
    if state_of(delivery) == STOPPED and (made := tenant.attempts.of(delivery.id)):
        return f"{result_of(made[-1])}, then the endpoint was disabled"
    attempts = [each for each in tenant.attempts.of(delivery.id) if each.error == delivery.last_error]
    return result_of(attempts[-1]) if attempts else delivery.last_error.rstrip(".")


def _reason(response: ReceiverResponse) -> str | None:
    """Return the reason of an error that a body gives; None if it gives none that is short enough to be one."""
    if not response.body or _is_binary(response.body):
        return None
    found = _json(response)
    text = _reason_in(found) if found is not None else _sentence(response)
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _reason_in(value: Any) -> str | None:
    """Return a text, or the first text under one of the usual names; None if there is none."""
    if isinstance(value, dict):
        return next(filter(None, (_reason_in(value.get(name)) for name in _REASONS)), None)
    return value if isinstance(value, str) and value else None


def _sentence(response: ReceiverResponse) -> str | None:
    text = response.body.decode(errors="replace").strip()
    is_markup = text.startswith("<") or "html" in response.headers.get("content-type", "")
    return None if is_markup or not text or len(text) > _LONGEST_SENTENCE else text


def _json(response: ReceiverResponse) -> Any:
    """Return the body as JSON; None if it is not, or is not whole."""
    found = json_body(response.body, response.body_is_whole)
    return found if isinstance(found, (dict, list)) else None


def _is_binary(body: bytes) -> bool:
    """Return whether a body has control characters that no text has."""
    return any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in body)


def endpoint_details(tenant: Tenant, endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the variables of the page of an endpoint: whether its receiver works, and its deliveries."""
    attempts = sorted(
        (each for each in tenant.attempts if each.webhook_endpoint == endpoint.id), key=lambda each: each.at
    )
    return {
        "disabled_by": disabling_call(tenant, endpoint),
        "was_attempted": bool(attempts or endpoint.last_delivered_at),
        "failures": [*takewhile(lambda each: each.error is not None, reversed(attempts))],
        "reason": result_of(attempts[-1]) if attempts else None,
        "related": [page_of(tenant, "webhook_deliveries", {"webhook_endpoint": endpoint.id}, DELIVERIES)],
    }


def disabling_call(tenant: Tenant, endpoint: WebhookEndpoint) -> JournalEntry | None:
    """Return the last call that disabled an endpoint; None if there was none, or it is no longer kept."""
    for call in tenant.journal.recorded_newest_first():
        if call.outcome.about == endpoint.id and call.entry.operation == "webhook_endpoints.update":
            details = tenant.journal.details(call.entry)
            body = None if details is None else json_body(details.request_body, details.request_is_whole)
            if call.entry.error_code is None and isinstance(body, dict) and body.get("disabled") is True:
                return call.entry
    return None
