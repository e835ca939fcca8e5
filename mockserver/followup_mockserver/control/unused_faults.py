"""The faults that have had no effect: a test that passes with one of them has not tested what it meant to."""

from followup_mockserver.state.access import TenantAccess
from followup_mockserver.state.faults import Fault, WebhookFault


class UnusedFaultControls:
    """List the faults that have matched nothing."""

    _access: TenantAccess

    def unused_faults(self) -> list[Fault | WebhookFault]:
        """Return the faults that have not matched a single call, event or delivery, oldest first.

        Faults of API calls come first, then webhook faults. Without an API key, these are the faults of every
        organization. Optional faults are excepted, and so are faults with a probability below 1. ``clear_faults``,
        ``clear_webhook_faults``, ``remove_fault`` and ``reset`` remove faults on purpose, so that they do not count as
        unused.
        """
        unused: list[Fault | WebhookFault] = []
        for tenant in self._access.tenants:
            with tenant.lock:
                unused += [*tenant.faults.unused(), *tenant.webhook_faults.unused()]
        return unused
