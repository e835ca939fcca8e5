"""Inbound events that do not come from the API: of a practice system, e-mails, tools, the team or an import."""

from collections.abc import Mapping
from typing import Literal, get_args

from followup import Event, EventInput
from followup._for_mockserver import Events
from followup_mockserver.control.arguments import json_object
from followup_mockserver.rules import events
from followup_mockserver.schema.checks import one_of
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.state.access import TenantAccess
from followup_mockserver.state.tenant import Tenant

OtherEventSource = Literal["pms", "email", "tool", "manual", "import"]

_source = one_of(get_args(OtherEventSource))


class SourceControls:
    """Let inbound events enter from sources other than the API."""

    _access: TenantAccess

    def receive_event(self, event: EventInput, *, source: OtherEventSource) -> Event:
        """Receive an inbound event from another source than the API (specification, section 6.1).

        It is processed and stored like an event of ``events.create``. Its ``id`` becomes the ``source_ref``: an id that
        the same source has sent before changes nothing, unless that event failed.

        Args:
            event: the event, with ``id``, ``type`` and ``data``; the functions of ``followup.inbound`` build one.
            source: ``pms`` (practice-system connector), ``email``, ``tool`` (a tool of the service's agent),
                ``manual`` (the team) or ``import``.

        Returns:
            The stored event, also if it failed; its ``status`` and ``error`` tell.

        Raises:
            TypeError: an argument of the wrong type, as in ``events.create``.
            ValueError: an invalid argument, or an event that is invalid and therefore not stored.
        """
        _source("source", source)
        if not isinstance(event, Mapping):
            raise InvalidArgument("event", "one event, as a function of followup.inbound returns it")
        raw = json_object("event", Events.create.parameters[0].encode(event, "event"))

        def receive(tenant: Tenant) -> Event:
            result = events.process(tenant, raw, source)
            stored = tenant.events.get(result.event or "")
            if stored is None:
                raise InvalidArgument("event", f"a valid event ({result.error})")
            return stored

        return self._access.change("receive_event", receive)
