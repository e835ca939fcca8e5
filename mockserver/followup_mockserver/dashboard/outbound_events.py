"""The outbound events: what became of each at every endpoint, also of those that nobody received."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from followup import WebhookDelivery
from followup_mockserver.control.causes import outbound_events
from followup_mockserver.dashboard.objects import ROWS, ListPage
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.history import Receipt, Record
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.tenant import Tenant

OUTBOUND_EVENTS = "outbound_events"
"""The name of the view, and the first part of its addresses."""


@attrs.frozen(kw_only=True)
class ShownReceipt:
    """What became of an event at one endpoint.

    Attributes:
        endpoint: id of the endpoint; None if the reason concerns no single one.
        exists: whether the endpoint has not been deleted.
        delivery: the delivery; None if none was made, or it was deleted with its endpoint.
        status: ``succeeded``, ``pending``, ``failed`` or ``deleted`` of a delivery; ``not_sent`` if none was made.
        reason: why no delivery was made; empty if one was.
        short_reason: the reason as a summary shows it.
    """

    endpoint: str | None
    exists: bool
    delivery: WebhookDelivery | None
    status: str
    reason: str
    short_reason: str


@attrs.frozen(kw_only=True)
class OutboundEvent:
    """An outbound event as the list shows it.

    Attributes:
        key: what identifies it in addresses: the id of its object, its type, and its number among such events.
        at: when it happened.
        type: its type.
        ref: id of the object that it is about.
        cause: id of its cause; None if that is unknown.
        receipts: what became of it, by endpoint.
    """

    key: str
    at: datetime
    type: str
    ref: str
    cause: str | None
    receipts: Sequence[ShownReceipt]

    @property
    def summary(self) -> list[tuple[str, str]]:
        """Texts with the class of their colour, such as ``2 delivered`` and ``1 failed``."""
        counts = Counter(receipt.status for receipt in self.receipts)
        made = [(f"{counts[status]} {word}", status) for status, word in _WORDS.items() if counts[status]]
        reasons = Counter(receipt.short_reason for receipt in self.receipts if receipt.status == "not_sent")
        if not reasons:
            return made
        if len(self.receipts) == 1 or self.receipts[0].endpoint is None:
            listed = ", ".join(reasons)
        else:
            listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        # Where some endpoint received it, others that did not are normal.
        return [*made, (f"not sent: {listed}", "quiet" if made else "not_sent")]


_WORDS = {"failed": "failed", "pending": "pending", "succeeded": "delivered", "deleted": "deleted with the endpoint"}
"""Status of a delivery to its word in the summary, the most urgent first."""

_FILTERS: Mapping[str, Callable[[frozenset[str]], bool]] = {
    "": lambda _: True,
    "not_sent": lambda statuses: statuses <= {"not_sent"},
    "pending": lambda statuses: "pending" in statuses,
    "failed": lambda statuses: "failed" in statuses,
    "delivered": lambda statuses: "succeeded" in statuses,
}
"""Name of a filter to whether it selects an event with these statuses."""

_TEXTS = {"not_sent": "not sent to anyone"}
"""Name of a filter to its text, if that differs."""


@attrs.frozen(kw_only=True)
class EventsPage(ListPage):
    """A page of the list. It counts the events of each value of ``show``.

    Attributes:
        texts: text of each value of ``show``.
        types: number of events by type.
        is_later_page: whether there are newer rows.
    """

    texts: Mapping[str, str]
    types: Mapping[str, int]
    is_later_page: bool


def list_of_events(tenant: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables of the list.

    Args:
        tenant: the state of the organization.
        query: ``show`` and ``type`` are filters. The page begins after the event with the key ``after``.
    """
    show = query.get("show", "") if query.get("show") in _FILTERS else ""
    event_type = query.get("type", "")
    found = [*_found(tenant)]
    shown = [event for event in found if _FILTERS[show](event.statuses)]
    of_type = [event for event in found if event_type in ("", event.record.kind)]
    matching = [event for event in shown if event_type in ("", event.record.kind)]
    begin = next((position for position, event in enumerate(matching, 1) if event.key == query.get("after")), 0)
    rows = matching[begin : begin + ROWS]
    return {
        "page": EventsPage(
            name=OUTBOUND_EVENTS,
            rows=[_shown(tenant, event) for event in rows],
            matching=len(matching),
            total=len(found),
            filters={"show": show, "type": event_type},
            counts={name: sum(select(event.statuses) for event in of_type) for name, select in _FILTERS.items()},
            texts={name: _TEXTS.get(name, name or "all") for name in _FILTERS},
            types=dict(sorted(Counter(event.record.kind for event in shown).items())),
            is_later_page=begin > 0,
            older=rows[-1].key if len(matching) > begin + ROWS else None,
        ),
        "endpoints": len(tenant.webhook_endpoints),
    }


def one_event(tenant: Tenant, key: str) -> OutboundEvent:
    """Return one event.

    Raises:
        ServiceError: 404 if there is no event with this key.
    """
    found = next((each for each in _found(tenant) if each.key == key), None)
    if found is None:
        raise missing("outbound event", param="id")
    return _shown(tenant, found)


class _Found(NamedTuple):
    """An event that is in the history; many are counted for each one that is shown."""

    record: Record
    number: int
    statuses: frozenset[str]

    @property
    def key(self) -> str:
        return f"{self.record.id}.{self.record.kind}.{self.number}"


def _found(tenant: Tenant) -> Iterator[_Found]:
    """Yield all outbound events that the history has, newest first."""
    records = outbound_events(tenant)
    left = Counter((record.id, record.kind) for record in records)
    for record in records:
        number = left[record.id, record.kind]
        left[record.id, record.kind] -= 1
        yield _Found(record, number, frozenset(_status(tenant, receipt) for receipt in record.receipts))


def _status(tenant: Tenant, receipt: Receipt) -> str:
    if receipt.delivery is None:
        return "not_sent"
    delivery = tenant.webhook_deliveries.get(receipt.delivery)
    return "deleted" if delivery is None else delivery.status


def _shown(tenant: Tenant, found: _Found) -> OutboundEvent:
    record = found.record
    return OutboundEvent(
        key=found.key,
        at=record.at,
        type=record.kind,
        ref=record.id,
        cause=record.cause,
        receipts=[_shown_receipt(tenant, receipt) for receipt in record.receipts],
    )


def _shown_receipt(tenant: Tenant, receipt: Receipt) -> ShownReceipt:
    return ShownReceipt(
        endpoint=receipt.endpoint,
        exists=receipt.endpoint is not None and receipt.endpoint in tenant.webhook_endpoints,
        delivery=tenant.webhook_deliveries.get(receipt.delivery or ""),
        status=_status(tenant, receipt),
        reason="" if receipt.reason is None else receipt.reason.why,
        short_reason=_short(receipt.reason),
    )


_SHORT_REASONS = {Kind.NOT_SUBSCRIBED: "not subscribed", Kind.ENDPOINT_DISABLED: "disabled"}


def _short(reason: Outcome | None) -> str:
    return "" if reason is None else _SHORT_REASONS.get(reason.kind, reason.why)
