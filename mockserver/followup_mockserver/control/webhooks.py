"""The test controls of webhooks: receivers, deliveries and their attempts, triggered events, and webhook faults."""

from collections.abc import Mapping
from typing import Any

from followup import WebhookDelivery
from followup._for_mockserver import OutboundEventType
from followup_mockserver.control.arguments import json_object
from followup_mockserver.control.engine import Engine
from followup_mockserver.deliveries import payloads
from followup_mockserver.deliveries.receivers import Mounts, Receiver
from followup_mockserver.rules import triggered_events
from followup_mockserver.world.schema.checks import boolean, one_of
from followup_mockserver.world.settings.options import webhook_target
from followup_mockserver.world.state.access import TenantAccess, existing
from followup_mockserver.world.state.copies import copied
from followup_mockserver.world.state.faults import FAULT_PREFIX, WebhookFault, WebhookFaultKind
from followup_mockserver.world.state.records import Attempt
from followup_mockserver.world.state.tenant import Tenant


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
        tenant = self._access.tenant
        with tenant.lock:
            existing(tenant.webhook_deliveries.get(id), "webhook delivery")
            return copied(tenant.attempts.of(id))

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
        one_of(payloads.OUTBOUND_TYPES)("type", type)
        own = None if data is None else json_object("data", data)

        def send(tenant: Tenant) -> list[WebhookDelivery]:
            return triggered_events.send(tenant, type, own)

        return self._access.change("trigger", send)

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
        tenant, delivery = self._existing_delivery(id)
        self._engine.resend(tenant, id)
        with tenant.lock:
            return copied(delivery)

    async def resend_async(self, id: str, /) -> WebhookDelivery:
        """Do the same as ``resend`` in an asyncio task; see ``advance_async``.

        Args:
            id: id of the delivery.

        Returns:
            The delivery after the attempt.

        Raises:
            ServiceError: as ``resend``.
            BaseException: as ``resend``.
        """
        tenant, delivery = self._existing_delivery(id)
        await self._engine.resend_async(tenant, id)
        with tenant.lock:
            return copied(delivery)

    def _existing_delivery(self, id: str) -> tuple[Tenant, WebhookDelivery]:
        tenant = self._access.tenant
        with tenant.lock:
            return tenant, existing(tenant.webhook_deliveries.get(id), "webhook delivery")

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
            type: outbound type that the fault is limited to; None for any.
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
            fault.id = tenant.ids.new(FAULT_PREFIX)
            tenant.webhook_faults.pending.append(fault)
            return [fault]  # as in ``add_fault``

        return self._access.change("disturb", add)[0]

    @property
    def webhook_faults(self) -> list[WebhookFault]:
        """The webhook faults that still apply to future deliveries, oldest first."""
        return self._access.read(lambda tenant: copied(tenant.webhook_faults.pending))

    def clear_webhook_faults(self) -> None:
        """Remove all webhook faults that apply to future deliveries. Faults of API calls stay."""
        self._access.change("clear_webhook_faults", lambda tenant: tenant.webhook_faults.pending.clear())


def all_attempts(tenant: Tenant) -> list[Attempt]:
    """Return every attempt of every delivery, oldest first."""
    with tenant.lock:
        return sorted(tenant.attempts, key=lambda each: each.at)
