"""The state of an organization in a few words, for ``repr``."""

from followup._for_mockserver import format_timestamp
from followup_mockserver.state.tenant import Tenant


def state_of(tenant: Tenant) -> str:
    """Return the time of the clock, and how many calls, jobs and so on there are.

    It does not wait for the lock of the tenant, because a debugger calls ``repr`` while other threads stand still.
    """
    counts = {
        "API call": len(tenant.journal),
        "pending job": len(tenant.scheduler),
        "delivery": len(tenant.webhook_deliveries),
        "message": len(tenant.messages),
        "fault": len(tenant.faults) + len(tenant.webhook_faults),
    }
    clock = f"{format_timestamp(tenant.now())}{' (frozen)' if tenant.clock.frozen else ''}"
    return ", ".join([clock, *(_counted(number, name) for name, number in counts.items() if number)])


def _counted(number: int, name: str) -> str:
    plural = name if number == 1 else f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number} {plural}"
