"""The pages of webhooks: outbound events with their results, deliveries with their attempts, and endpoints."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from operator import attrgetter
from typing import Any, NamedTuple

from followup import WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS
from followup_mockserver.control.occurrences import STOPPED, state_of
from followup_mockserver.control.traffic import all_attempts
from followup_mockserver.deliveries import body_of, headers_of, url_of
from followup_mockserver.web.dashboard.calls import json_body
from followup_mockserver.web.dashboard.columns import day_in
from followup_mockserver.web.dashboard.objects import ListPage, list_page, page_of
from followup_mockserver.world.outcomes import Kind
from followup_mockserver.world.state.history import Receipt, Record
from followup_mockserver.world.state.records import Attempt, ReceiverResponse
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import existing

DELIVERIES = 10
"""Deliveries that the page of an endpoint shows, the latest."""

_REASONS = ("error", "message", "detail", "title", "description", "reason", "error_description", "msg")
"""Names under which servers put the reason of an error into a JSON object, the most common first."""

_LONGEST_REASON = 160
"""Characters of a reason that are shown; the whole body is shown beside it."""


def delivery_details(tenant: Tenant, delivery: WebhookDelivery) -> dict[str, Any]:
    """Return the variables of the page of a delivery."""
    attempts = tenant.attempts.of(delivery.id)
    # A repetition by a webhook fault does not count, and neither does a manual retry that failed after the end.
    counted = [each for each in attempts if each.trigger != "disturbance"]
    fault = tenant.webhook_faults.applied.get(delivery.id)
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    return {
        "endpoint": endpoint,
        "target": "a deleted endpoint" if endpoint is None else url_of(tenant, endpoint),
        "attempts": attempts,
        "last": counted[-1] if counted else None,
        "successful": next((each for each in counted if each.error is None), None),
        "fault": None if fault is None else fault.kind,
        "max_attempts": MAX_WEBHOOK_ATTEMPTS,
        "body": body_of(delivery).decode(),
    }


def sent_headers(attempt: Attempt) -> dict[str, str]:
    """Return the headers of the request of an attempt."""
    return headers_of(
        event_type=attempt.event_type, number=attempt.number, timestamp=attempt.timestamp, signature=attempt.signature
    )


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
    # Not simply the last one, which may be a manual retry that the delivery does not count.
    attempts = [each for each in tenant.attempts.of(delivery.id) if each.error == delivery.last_error]
    return result_of(attempts[-1]) if attempts else delivery.last_error.rstrip(".")


def last_failure(tenant: Tenant, endpoint: WebhookEndpoint) -> str | None:
    """Return the result of the attempt that is the last error of an endpoint; None if it has no last error."""
    if (error := endpoint.last_error) is None:
        return None
    # Not simply the last one that failed, which may be a manual retry that the endpoint does not count.
    made = (each for each in tenant.attempts if each.webhook_endpoint == endpoint.id and each.at == error.at)
    return next((result_of(each) for each in made if each.error == error.message), error.message)


def _reason(response: ReceiverResponse) -> str | None:
    """Return the reason of an error that a body gives, in JSON or as text; None if it gives none."""
    found = json_body(response.body, response.body_is_whole)
    text = _reason_in(found) if isinstance(found, (dict, list)) else response.body.decode(errors="replace")
    line = " ".join((text or "").split())
    if line.startswith("<") or "\0" in line:
        return None
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _reason_in(value: Any) -> str | None:
    """Return a text, or the first text under one of the usual names; None if there is none."""
    if isinstance(value, dict):
        return next(filter(None, (_reason_in(value.get(name)) for name in _REASONS)), None)
    return value if isinstance(value, str) else None


def endpoint_details(tenant: Tenant, endpoint: WebhookEndpoint) -> dict[str, Any]:
    """Return the variables of the page of an endpoint: whether its receiver works, and its deliveries."""
    attempts = [each for each in all_attempts(tenant) if each.webhook_endpoint == endpoint.id]
    return {
        "was_attempted": bool(attempts or endpoint.last_delivered_at),
        "failures": [*takewhile(lambda each: each.error is not None, reversed(attempts))],
        "related": [page_of(tenant, "webhook_deliveries", {"webhook_endpoint": endpoint.id}, DELIVERIES)],
    }


OUTBOUND_EVENTS = "outbound_events"
"""The name of the view, and the first part of its addresses."""

_WORDS = {
    "failed": "failed",
    STOPPED: STOPPED,
    "pending": "pending",
    "succeeded": "delivered",
    "deleted": "deleted with the endpoint",
}
"""Status of a delivery to its word in the summary, the most urgent first."""

_SHORT_REASONS = {Kind.NOT_SUBSCRIBED: "not subscribed", Kind.ENDPOINT_DISABLED: "disabled"}


class FoundEvent(NamedTuple):
    """An event that is in the history; many are counted for each one that is shown."""

    record: Record
    number: int
    statuses: frozenset[str]

    @property
    def key(self) -> str:
        """What identifies it in addresses: the id of its object, its type, and its number among such events."""
        return f"{self.record.id}.{self.record.kind}.{self.number}"


_FILTERS: Mapping[str, Callable[[FoundEvent], bool]] = {
    "": lambda _: True,
    "not_sent": lambda event: event.statuses <= {"not_sent"},
    "pending": lambda event: "pending" in event.statuses,
    "failed": lambda event: "failed" in event.statuses,
    STOPPED: lambda event: STOPPED in event.statuses,
    "delivered": lambda event: "succeeded" in event.statuses,
}
"""Name of a filter to whether it selects an event."""


def list_of_events(tenant: Tenant, query: Mapping[str, str]) -> ListPage:
    """Return a page of the list.

    Args:
        tenant: the state of the organization.
        query: ``show``, ``type`` and ``day`` are filters. The page begins after the event with the key ``after``.
    """
    facets: dict[str, Callable[[FoundEvent], str]] = {
        "type": lambda event: event.record.kind,
        "day": lambda event: day_in(tenant, event.record.at),
    }
    return list_page(OUTBOUND_EVENTS, [*_find_events(tenant)], query, attrgetter("key"), facets, _FILTERS)


def one_event(tenant: Tenant, key: str) -> FoundEvent:
    """Return one event.

    Raises:
        ServiceError: 404 if there is no event with this key.
    """
    return existing(next((each for each in _find_events(tenant) if each.key == key), None), "outbound event")


def _find_events(tenant: Tenant) -> Iterator[FoundEvent]:
    """Yield all outbound events that the history has, newest first, also those that nobody received."""
    records = [record for record in reversed(tenant.history.records) if record.receipts]
    # Numbers count from the oldest, so that an address stays that of its event when others follow.
    left = Counter((record.id, record.kind) for record in records)
    for record in records:
        number = left[record.id, record.kind]
        left[record.id, record.kind] -= 1
        yield FoundEvent(record, number, frozenset(status_of(tenant, receipt) for receipt in record.receipts))


def status_of(tenant: Tenant, receipt: Receipt) -> str:
    """Return the result of an event at an endpoint: the status of its delivery, ``deleted`` or ``not_sent``."""
    if receipt.delivery is None:
        return "not_sent"
    delivery = tenant.webhook_deliveries.get(receipt.delivery)
    return "deleted" if delivery is None else state_of(delivery)


def summary_of(tenant: Tenant, record: Record) -> list[tuple[str, str]]:
    """Return texts with the class of their colour, such as ``2 delivered`` and ``1 failed``."""
    counts = Counter(status_of(tenant, receipt) for receipt in record.receipts)
    deliveries = filter(None, (tenant.webhook_deliveries.get(each.delivery or "") for each in record.receipts))
    tones = {"pending": "retried"} if any(each.status == "pending" and each.attempts for each in deliveries) else {}
    made = [(f"{counts[each]} {word}", tones.get(each, each)) for each, word in _WORDS.items() if counts[each]]
    reasons = [each.reason for each in record.receipts if each.reason is not None and each.delivery is None]
    if not reasons:
        return made
    shortened = Counter(_SHORT_REASONS.get(reason.kind, reason.why) for reason in reasons)
    is_one = len(record.receipts) == 1
    listed = ", ".join(reason if is_one else f"{count} {reason}" for reason, count in sorted(shortened.items()))
    # Where some endpoint received it, others that did not are normal.
    return [*made, (f"not sent: {listed}", "quiet" if made else "not_sent")]
