"""The outbound events: what became of each at every endpoint, also of those that nobody received."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import attrs

from followup_mockserver.control.titles import STOPPED, state_of
from followup_mockserver.web.dashboard.columns import day_in
from followup_mockserver.web.dashboard.objects import ListPage, list_page
from followup_mockserver.world.schema.errors import missing
from followup_mockserver.world.state.history import Receipt, Record
from followup_mockserver.world.state.outcomes import Kind
from followup_mockserver.world.state.tenant import Tenant

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


class _Found(NamedTuple):
    """An event that is in the history; many are counted for each one that is shown."""

    record: Record
    number: int
    statuses: frozenset[str]

    @property
    def key(self) -> str:
        """What identifies it in addresses: the id of its object, its type, and its number among such events."""
        return f"{self.record.id}.{self.record.kind}.{self.number}"


_FILTERS: Mapping[str, Callable[[_Found], bool]] = {
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
    facets: dict[str, Callable[[_Found], str]] = {
        "type": lambda event: event.record.kind,
        "day": lambda event: day_in(tenant, event.record.at),
    }
    page = list_page(OUTBOUND_EVENTS, [*_found(tenant)], query, attrgetter("key"), facets, _FILTERS)
    return attrs.evolve(page, rows=[_shown(tenant, event) for event in page.rows])


def one_event(tenant: Tenant, key: str) -> dict[str, Any]:
    """Return one event.

    Raises:
        ServiceError: 404 if there is no event with this key.
    """
    found = next((each for each in _found(tenant) if each.key == key), None)
    if found is None:
        raise missing("outbound event", param="id")
    return _shown(tenant, found)


def _found(tenant: Tenant) -> Iterator[_Found]:
    """Yield all outbound events that the history has, newest first, also those that nobody received."""
    records = [record for record in reversed(tenant.history.records) if record.receipts]
    left = Counter((record.id, record.kind) for record in records)
    for record in records:
        number = left[record.id, record.kind]
        left[record.id, record.kind] -= 1
        yield _Found(record, number, frozenset(_status(tenant, receipt) for receipt in record.receipts))


def _status(tenant: Tenant, receipt: Receipt) -> str:
    """Return what became of an event at an endpoint: the status of its delivery, ``deleted`` or ``not_sent``."""
    if receipt.delivery is None:
        return "not_sent"
    delivery = tenant.webhook_deliveries.get(receipt.delivery)
    return "deleted" if delivery is None else state_of(delivery)


def _shown(tenant: Tenant, found: _Found) -> dict[str, Any]:
    return {
        "key": found.key,
        "record": found.record,
        "summary": _summary(tenant, found.record),
        "receipts": [
            {
                "endpoint": receipt.endpoint,
                "exists": receipt.endpoint is not None and receipt.endpoint in tenant.webhook_endpoints,
                "delivery": tenant.webhook_deliveries.get(receipt.delivery or ""),
                "status": _status(tenant, receipt),
                "reason": "" if receipt.reason is None else receipt.reason.why,
            }
            for receipt in found.record.receipts
        ],
    }


def _summary(tenant: Tenant, record: Record) -> list[tuple[str, str]]:
    """Return texts with the class of their colour, such as ``2 delivered`` and ``1 failed``."""
    counts = Counter(_status(tenant, receipt) for receipt in record.receipts)
    made = [(f"{counts[status]} {word}", status) for status, word in _WORDS.items() if counts[status]]
    reasons = [each.reason for each in record.receipts if each.reason is not None and each.delivery is None]
    if not reasons:
        return made
    shortened = Counter(_SHORT_REASONS.get(reason.kind, reason.why) for reason in reasons)
    is_one = len(record.receipts) == 1
    listed = ", ".join(reason if is_one else f"{count} {reason}" for reason, count in sorted(shortened.items()))
    # Where some endpoint received it, others that did not are normal.
    return [*made, (f"not sent: {listed}", "quiet" if made else "not_sent")]
