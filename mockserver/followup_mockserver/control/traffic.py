"""The calls and the webhooks of a test: the journal, deliveries and receivers, faults for the next ones, and causes."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from followup import WebhookDelivery
from followup._for_mockserver import OutboundEventType
from followup_mockserver.control.arguments import arguments_of, json_object
from followup_mockserver.control.duplicates import journal_of
from followup_mockserver.control.engine import Engine
from followup_mockserver.control.occurrences import HistoryEntry
from followup_mockserver.deliveries import OUTBOUND_TYPES
from followup_mockserver.deliveries.mounts import Mounts, Receiver
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.rules import triggered_events
from followup_mockserver.world.schema.errors import boolean, matching, one_of
from followup_mockserver.world.settings import webhook_target
from followup_mockserver.world.state import faults as planned
from followup_mockserver.world.state.faults import Fault, FaultKind, FaultMoment, WebhookFault, WebhookFaultKind
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.records import Attempt, copied
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import TenantAccess, existing

_operation_or_all = matching(
    [planned.EVERY_OPERATION, *OPERATIONS].__contains__,
    "the name of an operation, such as patients.create, or * for all",
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
            times: number of calls that fail, for kind ``event`` number of events; null for all.
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
        # The class checks its fields, in the control API too.
        fault = Fault(**arguments_of(locals()))

        def add(tenant: Tenant) -> list[Fault]:
            fault.id = tenant.ids.new(planned.FAULT_PREFIX)
            tenant.faults.pending.append(fault)
            return [fault]  # not the fault itself: it is no object whose history has this call

        return self._access.change("add_fault", add, operation=operation, kind=kind)[0]

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
            ServiceError: 404: the history has nothing about this id.
        """
        from followup_mockserver.control import causes  # imported late: a start does not need it

        found = self._access.read(lambda tenant: existing(causes.explain(tenant, id), "id in the history"))
        return [each.entry for each in found]


class WebhookControls:
    """Mount receivers, list and send webhooks, and make their deliveries fail."""

    _access: TenantAccess
    _engine: Engine
    _mounts: Mounts

    def mount(self, url: str, app: Receiver, *, raise_exceptions: bool = True) -> None:
        """Deliver webhooks to an application in this process instead of over the network.

        This applies to webhooks of every organization whose URL is ``url`` or begins with it, at a ``/`` or a ``?``. If
        several mounted URLs match, the longest wins. Mounting again replaces the application; the old one is shut down
        when the mock is closed.

        In a ``MockService``, an exception of the application is recorded as a failed attempt. Then ``advance``,
        ``step`` or ``resend`` raises it, even if Flask or Django has turned it into a response with status 500.
        In a ``MockServer`` it is recorded and logged.

        Args:
            url: an https URL, or an http URL of a loopback address.
            app: an ASGI or WSGI application, or a function or coroutine function that takes an ``httpx.Request`` and
                returns an ``httpx.Response``.
            raise_exceptions: whether exceptions are raised in a ``MockService``; if not, they are only recorded, except
                exits such as ``KeyboardInterrupt`` and the outcomes of pytest.

        Raises:
            TypeError: ``app`` is not callable.
            ValueError: an invalid URL, such as one without a scheme; ``raise_exceptions`` is not true or false.
        """
        webhook_target("url", url)
        boolean("raise_exceptions", raise_exceptions)
        self._mounts.add(url, app, raise_exceptions=raise_exceptions)

    @property
    def deliveries(self) -> list[WebhookDelivery]:
        """The webhook deliveries, newest first."""
        return self._access.read(lambda tenant: copied([*reversed([*tenant.webhook_deliveries])]))

    def attempts(self, id: str, /) -> list[Attempt]:
        """Return every attempt of a delivery, oldest first.

        Args:
            id: id of the delivery.

        Returns:
            The attempts, repetitions by webhook faults included.

        Raises:
            ServiceError: 404: there is no such delivery.
        """
        return self._access.read(lambda tenant: copied(tenant.attempts.of(_delivery(tenant, id).id)))

    def trigger(self, type: OutboundEventType, *, data: Mapping[str, Any] | None = None) -> list[WebhookDelivery]:
        """Send an outbound webhook of any type, also of one that the service does not send yet.

        The event is about the newest object that fits the type, such as a cancelled appointment for
        ``appointment.cancelled``. If there is none, one is made, with all its fields, for an invented patient. It is an
        object like any other, but making it sends no webhooks of its own: only the triggered event is sent.

        Args:
            type: the event type, such as ``appointment.created`` (specification, section 6.2).
            data: data of the event, as JSON with names in camelCase; by default that of the object. If it contains an
                object with an id, this id becomes the ``ref`` of the event; otherwise ``ref`` stays the same.

        Returns:
            One pending delivery for each enabled endpoint that is subscribed to the type. ``webhook.ping`` goes to
            every enabled endpoint, about itself.

        Raises:
            ServiceError: 400: no endpoint would receive it; nothing is made.
            ValueError: an invalid argument; the message names it.
        """
        one_of(OUTBOUND_TYPES)("type", type)
        own = None if data is None else json_object("data", data)
        return self._access.change("trigger", lambda tenant: triggered_events.send(tenant, type, own), event_type=type)

    def resend(self, id: str, /) -> WebhookDelivery:
        """Make one more attempt of a delivery now, whatever its status: a manual retry.

        Args:
            id: id of the delivery.

        Returns:
            The delivery after the attempt.

        Raises:
            ServiceError: 404: there is no such delivery; 400: its endpoint is disabled.
            BaseException: in a ``MockService``, the exception of a mounted receiver, after the attempt was recorded.
        """
        tenant = self._access.tenant
        with tenant.lock:
            delivery = _delivery(tenant, id)
        self._engine.resend(tenant, id)
        with tenant.lock:
            return copied(delivery)

    def disturb(
        self,
        *,
        kind: WebhookFaultKind,
        type: OutboundEventType | None = None,
        times: int = 1,
        seconds: float = 600,
        optional: bool = False,
    ) -> WebhookFault:
        """Add a webhook fault, which applies to the next deliveries.

        A delivery is queued by the call that causes its event, so add the fault before that call.

        Args:
            kind: ``duplicate`` sends the first attempt twice. ``reorder`` holds a delivery until the next one to the
                same endpoint has been sent. ``late`` delays the first attempt. ``wrong_signature`` and
                ``old_signature`` give the first attempt an invalid signature, or an expired timestamp.
            type: outbound type that the fault is limited to; by default any.
            times: number of deliveries that it applies to.
            seconds: on the mock's clock, the delay for ``late`` and the longest hold for ``reorder``; the age of the
                timestamp for ``old_signature``. At most 30 days.
            optional: whether the fault may remain without effect; otherwise it counts as unused until it has matched.

        Returns:
            The fault, as ``webhook_faults`` lists it.

        Raises:
            ValueError: an invalid argument; the message names it and its valid values.
        """
        fault = WebhookFault(kind=kind, type=type, times=times, seconds=seconds, optional=optional)

        def add(tenant: Tenant) -> list[WebhookFault]:
            fault.id = tenant.ids.new(planned.FAULT_PREFIX)
            tenant.webhook_faults.pending.append(fault)
            return [fault]  # as in ``add_fault``

        return self._access.change("disturb", add, kind=kind)[0]

    @property
    def webhook_faults(self) -> list[WebhookFault]:
        """The webhook faults that still apply to future deliveries, oldest first."""
        return self._access.read(lambda tenant: copied(tenant.webhook_faults.pending))

    def clear_webhook_faults(self) -> None:
        """Remove all webhook faults that apply to future deliveries. Faults of API calls stay."""
        self._access.change("clear_webhook_faults", lambda tenant: tenant.webhook_faults.pending.clear())


def _delivery(tenant: Tenant, id: str) -> WebhookDelivery:
    return existing(tenant.webhook_deliveries.get(id), "webhook delivery")


def all_attempts(tenant: Tenant) -> list[Attempt]:
    """Return every attempt of every delivery, oldest first."""
    with tenant.lock:
        return sorted(tenant.attempts, key=lambda each: each.at)
