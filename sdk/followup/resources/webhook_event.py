"""The event of a webhook (specification, section 6.2, Request body)."""

# The properties below can so name followup.Patient and the others without importing their modules.
from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import attrs

import followup
from followup._core.api_rules import OutboundEventType, WebhookDeliveryId
from followup._core.codec.decode import decode
from followup._core.codec.wire import WireError
from followup._core.results import Model, personal

M = TypeVar("M", bound=Model)

_Record: TypeAlias = "followup.Patient | followup.Doctor | followup.Appointment | followup.Visit | followup.Treatment"
_Message: TypeAlias = "followup.IntakeRequest | followup.Event | followup.WebhookEndpoint | followup.WebhookDelivery"
Retrieved: TypeAlias = "_Record | _Message"


@runtime_checkable
class Headers(Protocol):
    """The headers of a request in any framework: a dict, or an object with the ``items()`` method of a dict."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return pairs of header name and value."""
        ...


@attrs.define(kw_only=True, eq=False, repr=False)
class WebhookEvent(Model):
    """The event that a webhook delivers (specification, section 6.2, Request body). ``repr`` does not show its data.

    The same event may be delivered twice, and events may be delivered out of order: deduplicate by ``id``, and order by
    ``occurred_at``. It has ``to_dict()``, ``to_json()`` and ``extra``, the fields that this version of the package does
    not know, like a result.

    Attributes:
        id: id of the delivery, the same in every attempt.
        object: ``event``.
        type: one of the outbound event types, such as ``appointment.created``.
        api_version: dated version of the body.
        livemode: true in production, false in the test environment.
        occurred_at: time at which the event happened.
        ref: id of the object that triggered the event.
        data: data of the event with camelCase keys, as it was received.
    """

    id: WebhookDeliveryId
    object: Literal["event"] = "event"
    type: OutboundEventType
    api_version: str
    livemode: bool
    occurred_at: datetime
    ref: str
    data: Mapping[str, Any] = personal()

    @property
    def patient(self) -> followup.Patient | None:
        """The patient in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "patient", followup.Patient)

    @property
    def appointment(self) -> followup.Appointment | None:
        """The appointment in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "appointment", followup.Appointment)

    @property
    def visit(self) -> followup.Visit | None:
        """The visit in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "visit", followup.Visit)

    @property
    def treatment(self) -> followup.Treatment | None:
        """The treatment in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "treatment", followup.Treatment)

    @property
    def intake_request(self) -> followup.IntakeRequest | None:
        """The intake request in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "intakeRequest", followup.IntakeRequest)

    @overload
    def retrieve(self, client: followup.FollowUp) -> Retrieved: ...
    @overload
    def retrieve(self, client: followup.AsyncFollowUp) -> Coroutine[Any, Any, Retrieved]: ...
    def retrieve(self, client: followup.FollowUp | followup.AsyncFollowUp) -> Any:
        """Retrieve the object that ``ref`` names as it is now, which may be newer than the event.

        Args:
            client: the client to call the service with; an ``AsyncFollowUp`` returns an awaitable.

        Returns:
            The object, of the class that belongs to the prefix of ``ref``: an ``Appointment`` for ``apt_``.

        Raises:
            ValueError: ``ref`` is not the id of an object that can be retrieved.
            NotFoundError: the object does not exist any more.
        """
        from followup._core.operations import declarations_of, group_name
        from followup.resources import all_groups

        # Only the prefix of an id tells its class (section 2); `type` names what happened.
        for group in all_groups():
            name = group_name(group)
            operation = declarations_of(group).get(f"{name}.retrieve")
            if operation and operation.id_prefix and self.ref.startswith(operation.id_prefix.prefix):
                return getattr(client, name).retrieve(self.ref)
        raise ValueError("ref is not the id of an object that can be retrieved")


def _decoded(data: Mapping[str, Any], key: str, cls: type[M]) -> M | None:
    try:
        return decode(cls, data.get(key))
    except WireError:
        return None
