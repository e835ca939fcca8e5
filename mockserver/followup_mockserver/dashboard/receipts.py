"""What became of an outbound event at each endpoint, as entries of a timeline."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from followup import WebhookDelivery
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS
from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.dashboard.entries import DUE, Entry
from followup_mockserver.dashboard.objects import address
from followup_mockserver.state.outcomes import Outcome, Part
from followup_mockserver.state.tenant import Tenant


def entries_of(
    tenant: Tenant, event: Occurrence, attempts: Mapping[str, Sequence[Occurrence]], own: str
) -> Iterator[Entry]:
    """Return an entry for each delivery of an outbound event, and one for each reason why others were not made.

    Args:
        tenant: the state of the organization.
        event: the outbound event.
        attempts: the attempts of each delivery.
        own: id of the object that the page shows.
    """
    missed: dict[Outcome, list[str]] = defaultdict(list)
    for receipt in event.receipts:
        if receipt.delivery is not None and receipt.endpoint is not None:
            yield _delivery(tenant, event, receipt.endpoint, receipt.delivery, attempts[receipt.delivery], own)
        elif receipt.reason is not None:
            missed[receipt.reason] += [] if receipt.endpoint is None else [receipt.endpoint]
    for reason, endpoints in missed.items():
        to = ", ".join(_address_of(tenant, endpoint) for endpoint in endpoints)
        yield Entry(
            key=f"{event.kind} {event.at} {reason.text}",
            at=event.at,
            title=f"webhook {event.kind} to {to}" if to else f"webhook {event.kind}",
            more=endpoints[0] if len(endpoints) == 1 and endpoints[0] in tenant.webhook_endpoints else None,
            outcome=reason.parts,
            tone=reason.tone,
        )


def progress_of(delivery: WebhookDelivery) -> Sequence[Part]:
    """Return what became of a delivery, such as ``3 attempts failed, delivered at the 4th (204)``."""
    made = delivery.attempts
    failed = "1 attempt failed" if made == 1 else f"{made} attempts failed"
    if delivery.status == "succeeded":
        return [_delivered(delivery)]
    if delivery.status == "failed":
        end = "none is left" if made >= MAX_WEBHOOK_ATTEMPTS else "given up"
        return [f"{failed}, {end}: {delivery.last_error}" if made else f"not attempted: {delivery.last_error}"]
    if delivery.next_attempt_at is None:
        return [f"attempt {max(made, 1)} is in progress"]
    return [f"{failed}, the next is due " if made else "the first attempt is due ", delivery.next_attempt_at]


def _delivered(delivery: WebhookDelivery) -> str:
    before, status = delivery.attempts - 1, delivery.last_status_code
    if before < 1:
        return f"delivered ({status})"
    failed = "1 attempt failed" if before == 1 else f"{before} attempts failed"
    return f"{failed}, delivered at the {_nth(delivery.attempts)} ({status})"


def _delivery(
    tenant: Tenant, event: Occurrence, endpoint: str, id: str, attempts: Sequence[Occurrence], own: str
) -> Entry:
    delivery = tenant.webhook_deliveries.get(id)
    progress: Sequence[Part] = ["deleted with its endpoint"] if delivery is None else progress_of(delivery)
    return Entry(
        key=id,
        at=event.at,
        title=f"webhook {event.kind} to {_address_of(tenant, endpoint)}",
        more=None if id == own or delivery is None else id,
        outcome=progress,
        tone="muted" if delivery is None else delivery.status,
        attempts=[_attempt(each) for each in attempts] if len(attempts) > 1 else (),
    )


def _attempt(attempt: Occurrence) -> Entry:
    number = attempt.id.rpartition(".")[2]
    return Entry(
        key=f"{attempt.id} {attempt.at}",
        at=attempt.at,
        title=f"attempt {number}",
        outcome=attempt.parts,
        tone=attempt.outcome.tone,
    )


def next_attempts(tenant: Tenant, event: Occurrence, own: str) -> Iterator[Entry]:
    """Return the next attempt of each pending delivery of an outbound event."""
    for receipt in event.receipts:
        delivery = tenant.webhook_deliveries.get(receipt.delivery or "")
        if delivery is not None and delivery.next_attempt_at is not None and receipt.endpoint is not None:
            to = _address_of(tenant, receipt.endpoint)
            yield Entry(
                key=f"next {delivery.id}",
                at=delivery.next_attempt_at,
                title=f"attempt {delivery.attempts + 1} of webhook {event.kind} to {to}",
                more=None if delivery.id == own else delivery.id,
                outcome=[DUE],
                tone="pending",
            )


def _address_of(tenant: Tenant, endpoint: str) -> str:
    found = tenant.webhook_endpoints.get(endpoint)
    return endpoint if found is None else address(found.url)


def _nth(number: int) -> str:
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number, 'th')}"
