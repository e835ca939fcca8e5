"""The API calls of a test: the journal of past calls, faults for the next ones, and the causes of what happened."""

from http import HTTPStatus

from followup_mockserver.control.arguments import arguments_of
from followup_mockserver.control.duplicates import journal_of
from followup_mockserver.control.occurrences import HistoryEntry
from followup_mockserver.gateway.contract.operations import OPERATIONS
from followup_mockserver.world.schema.checks import matching
from followup_mockserver.world.state.access import TenantAccess, existing
from followup_mockserver.world.state.copies import copied
from followup_mockserver.world.state.faults import (
    EVERY_OPERATION,
    FAULT_PREFIX,
    Fault,
    FaultKind,
    FaultMoment,
    WebhookFault,
)
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.tenant import Tenant

_operation_or_all = matching(
    [EVERY_OPERATION, *OPERATIONS].__contains__, "the name of an operation, such as patients.create, or * for all"
)


class CallControls:
    """List the API calls so far, and make the next ones fail."""

    _access: TenantAccess

    @property
    def requests(self) -> list[JournalEntry]:
        """The last 10,000 API calls, newest first."""
        return self._access.read(journal_of)

    @property
    def faults(self) -> list[Fault]:
        """The faults that still apply to future calls, oldest first."""
        return self._access.read(lambda tenant: copied(tenant.faults.pending))

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
        optional: bool = False,
    ) -> Fault:
        """Make the next calls of an operation fail.

        If several faults match a call, the oldest applies. In a ``MockService`` a delay takes no real time: it
        advances the clock (see ``waits``), by the client's timeout at most. If it is longer, the client gets a timeout,
        and the operation is carried out all the same. An event that fails is stored with the status ``failed``;
        duplicates and invalid events are not counted. If all events of a batch fail, the response is a 500 with their
        results (specification, section 4, Events).

        Args:
            operation: name of the operation, such as ``patients.create``; ``*`` for all operations.
            kind: ``status`` responds with an error, and ``delay`` responds late. ``disconnect`` drops the connection
                without a response, ``truncate`` in the middle of it. ``event`` lets single events of a batch end
                ``failed``, and the others go on; ``operation`` is then ``events.create``.
            status: HTTP status from 400 to 599, for kind ``status``.
            seconds: length of the delay, for kind ``delay``; at most a day.
            times: number of calls that fail, for kind ``event`` number of events; None for all.
            when: ``before`` the operation is carried out, or ``after``: then its effects remain, but the client does
                not see its response.
            skip: number of calls, or of events, that succeed first.
            probability: probability of applying to a call, or to an event, from 0 to 1.
            retry_after: seconds in a ``Retry-After`` header, for kind ``status``; default: 1 with status 429, as in the
                service (specification, section 7), else no header.
            optional: whether the fault may remain without effect; otherwise it counts as unused until it has matched.
                A fault with a probability below 1 is always optional.

        Returns:
            The fault, as ``faults`` lists it.

        Raises:
            ValueError: an invalid argument; the message names it and its valid values.
        """
        _operation_or_all("operation", operation)
        if retry_after is None and status == HTTPStatus.TOO_MANY_REQUESTS:
            retry_after = 1
        fault = Fault(**arguments_of(locals()))

        def add(tenant: Tenant) -> list[Fault]:
            fault.id = tenant.ids.new(FAULT_PREFIX)
            tenant.faults.pending.append(fault)
            return [fault]  # not the fault itself: it is no object whose history has this call

        return self._access.change("add_fault", add)[0]

    def remove_fault(self, id: str, /) -> None:
        """Remove one fault, of API calls or of webhook deliveries. What it has done already remains.

        Args:
            id: id of the fault, as ``faults`` and ``webhook_faults`` list it.

        Raises:
            ServiceError: 404: there is no such fault, or it applies to nothing any more.
        """

        def remove(tenant: Tenant) -> None:
            existing(tenant.faults.remove(id) or tenant.webhook_faults.remove(id), "pending fault")

        self._access.change("remove_fault", remove)

    def clear_faults(self) -> None:
        """Remove all faults of API calls. Webhook faults stay."""
        self._access.change("clear_faults", lambda tenant: tenant.faults.pending.clear())

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

    def explain(self, id: str, /) -> list[HistoryEntry]:
        """Return the chain of causes of an object, a delivery, a message or a request, in time order.

        The chain contains what happened to an object, what became of its jobs, messages and webhooks, the reasons why
        something was not sent, and what caused each of these. Each ``cause`` is the ``id`` of an entry before it.

        Args:
            id: id of an API object, a request (``req_…``), an inbound event (``evt_…``), a job (``job_…``), a test
                control (``ctl_…``), a message (``msg_…``), a webhook delivery (``whd_…``) or an attempt (``whd_….1``).

        Returns:
            The entries. The history keeps the last 50,000 records; of what is older, only part of the chain is left.

        Raises:
            ServiceError: 404: there is no such id.
        """
        from followup_mockserver.control import causes  # imported late: a start does not need it

        found = self._access.read(lambda tenant: existing(causes.explain(tenant, id), "id in the history"))
        return [each.entry for each in found]
