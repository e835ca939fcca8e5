"""Fault injection: planned failures of calls and of webhook deliveries."""

from http import HTTPStatus

from followup._for_mockserver import OutboundEventType
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.control.tenants import OrganizationControls
from followup_mockserver.schema.checks import that
from followup_mockserver.state.copies import copied
from followup_mockserver.state.request_faults import EVERY_OPERATION, Fault, FaultKind, FaultMoment
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.state.webhook_faults import WebhookFault, WebhookFaultKind

_operation_or_all = that(
    [EVERY_OPERATION, *OPERATIONS].__contains__, "the name of an operation, such as patients.create, or * for all"
)


class FaultControls(OrganizationControls):
    """Add, list and remove faults."""

    @property
    def faults(self) -> list[Fault]:
        """The faults that wait for their calls."""
        tenant = self._tenant
        with tenant.lock:
            return copied(tenant.faults.all())

    def add_fault(
        self,
        *,
        operation: str,
        kind: FaultKind,
        status: int = 500,
        seconds: float = 0,
        times: int | None = 1,
        when: FaultMoment = "before",
        skip: int = 0,
        probability: float = 1,
        retry_after: float | None = None,
    ) -> Fault:
        """Make the next calls of an operation fail.

        Args:
            operation: its name, such as ``patients.create``; ``*`` for every one.
            kind: ``status``, ``delay``, ``disconnect`` or ``truncate``.
            status: HTTP status, for kind ``status``.
            seconds: how long, for kind ``delay``.
            times: for how many calls; None for all.
            when: ``before`` or ``after`` the work is done.
            skip: how many calls pass first.
            probability: of hitting a call, 0 to 1.
            retry_after: seconds in a ``Retry-After`` header, for kind ``status``; with status 429, as in the service,
                1 by default.

        Returns:
            The fault, as it waits for its calls.

        Raises:
            ValueError: an invalid argument; the message names it, and the values that it can have.
        """
        _operation_or_all("operation", operation)
        if retry_after is None and status == HTTPStatus.TOO_MANY_REQUESTS:
            retry_after = 1
        fault = Fault(
            operation=operation,
            kind=kind,
            status=status,
            seconds=seconds,
            times=times,
            when=when,
            skip=skip,
            probability=probability,
            retry_after=retry_after,
        )

        def add(tenant: Tenant) -> Fault:
            tenant.faults.add(fault)
            return fault

        return self._change(add)

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._change(lambda tenant: tenant.faults.clear())

    def disturb(
        self,
        *,
        kind: WebhookFaultKind,
        type: OutboundEventType | None = None,
        times: int = 1,
        seconds: float = 600,
    ) -> WebhookFault:
        """Add a webhook fault: the next deliveries fail as planned.

        Args:
            kind: ``duplicate``, ``reorder``, ``late``, ``wrong_signature`` or ``old_signature``.
            type: only webhooks of this type.
            times: for how many deliveries.
            seconds: how late, or how old.

        Returns:
            The fault, as it waits for its deliveries.

        Raises:
            ValueError: an invalid argument; the message names it, and the values that it can have.
        """
        fault = WebhookFault(kind=kind, type=type, times=times, seconds=seconds)

        def add(tenant: Tenant) -> WebhookFault:
            tenant.webhook_faults.add(fault)
            return fault

        return self._change(add)

    @property
    def webhook_faults(self) -> list[WebhookFault]:
        """The webhook faults that wait for their deliveries."""
        tenant = self._tenant
        with tenant.lock:
            return copied(tenant.webhook_faults.all())

    def clear_webhook_faults(self) -> None:
        """Remove all webhook faults."""
        self._change(lambda tenant: tenant.webhook_faults.clear())
