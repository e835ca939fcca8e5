"""What caused a delivery or a message, and what was not sent and why, as lines of the report of a failing test.

The lines contain ids, types, operations and reasons, but no personal data.
"""

from collections import Counter
from collections.abc import Callable

from followup_mockserver import causes
from followup_mockserver.causes import Occurrence
from followup_mockserver.state.tenant import Tenant


def cause_of(tenant: Tenant, id: str) -> str:
    """Return what caused a delivery or a message, such as ``caused by req_… appointments.create``; empty if unknown."""
    found = {each.id: each for each in causes.occurrences_of(tenant, id)}
    described = []
    cause = found[id].cause if id in found else None
    while cause is not None:
        occurrence = found[cause]
        described.append(_described(occurrence))
        cause = occurrence.cause
    return f"caused by {', '.join(filter(None, described))}" if described else ""


def _described(occurrence: Occurrence) -> str:
    if occurrence.kind == "request":
        operation, _, _ = occurrence.outcome.partition(":")
        return f"{occurrence.id} {operation}"
    if occurrence.id.startswith("job_"):
        return " ".join(filter(None, [occurrence.kind, occurrence.detail]))
    return f"{occurrence.id} {occurrence.outcome}" if occurrence.kind == "control" else occurrence.id


def webhooks_not_sent(tenant: Tenant, host_of: Callable[[str], str]) -> list[str]:
    """Return one line for each reason why an endpoint got no webhook of a type, oldest first.

    Args:
        tenant: the state of the organization. If it has no endpoint, there are no lines: nothing was to be sent.
        host_of: returns the host of the endpoint with this id.
    """
    if not tenant.webhook_endpoints:
        return []
    skipped = Counter(
        (event.kind, receipt.endpoint, receipt.reason)
        for event in reversed(causes.outbound_events(tenant))
        for receipt in event.receipts
        if receipt.reason is not None
    )
    return [
        f"{kind}{'' if endpoint is None else f' to {host_of(endpoint)}'}: {reason.removeprefix('not sent: ')}"
        + ("" if times == 1 else f" ({times} times)")
        for (kind, endpoint, reason), times in skipped.items()
    ]


def messages_not_sent(tenant: Tenant) -> list[str]:
    """Return one line for each message that was not sent, oldest first."""
    return [
        f"{' '.join(filter(None, [each.kind, each.detail]))} about {each.about}: {each.outcome}"
        for each in causes.messages_not_sent(tenant)
    ]
