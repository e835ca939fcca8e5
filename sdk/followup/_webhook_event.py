"""The event that a webhook delivers: its fields, the objects in its data, and the current object at the service.

This module is imported to verify a webhook, so it imports the classes of these objects on first use.
"""

from collections.abc import Coroutine, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import attrs

from followup._annotations import OutboundEventType, WebhookDeliveryId
from followup._codec.decode import WireError, decode
from followup._results.model import Model, personal

if TYPE_CHECKING:
    from followup._client import AsyncFollowUp, FollowUp
    from followup.resources.appointments import Appointment
    from followup.resources.doctors import Doctor
    from followup.resources.events import Event
    from followup.resources.intake_requests import IntakeRequest
    from followup.resources.patients import Patient
    from followup.resources.treatments import Treatment
    from followup.resources.visits import Visit
    from followup.resources.webhook_deliveries import WebhookDelivery
    from followup.resources.webhook_endpoints import WebhookEndpoint

    Retrieved = (
        Patient | Doctor | Appointment | Visit | IntakeRequest | Treatment | Event | WebhookEndpoint | WebhookDelivery
    )

M = TypeVar("M", bound=Model)


@attrs.define(kw_only=True, repr=False)
class WebhookEvent(Model):
    """The event that a webhook delivers (specification, section 6.2, Request body). ``repr`` does not show its data.

    The same event may be delivered twice, and events may be delivered out of order: deduplicate by ``id``, and order by
    ``occurred_at``.

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
    def patient(self) -> "Patient | None":
        """The patient in the data, as of the event; None if the data has none, or only part of one."""
        from followup.resources.patients import Patient

        return _decoded(self.data, "patient", Patient)

    @property
    def appointment(self) -> "Appointment | None":
        """The appointment in the data, as of the event; None if the data has none, or only part of one."""
        from followup.resources.appointments import Appointment

        return _decoded(self.data, "appointment", Appointment)

    @property
    def visit(self) -> "Visit | None":
        """The visit in the data, as of the event; None if the data has none, or only part of one."""
        from followup.resources.visits import Visit

        return _decoded(self.data, "visit", Visit)

    @property
    def treatment(self) -> "Treatment | None":
        """The treatment in the data, as of the event; None if the data has none, or only part of one."""
        from followup.resources.treatments import Treatment

        return _decoded(self.data, "treatment", Treatment)

    @property
    def intake_request(self) -> "IntakeRequest | None":
        """The intake request in the data, as of the event; None if the data has none, or only part of one."""
        from followup.resources.intake_requests import IntakeRequest

        return _decoded(self.data, "intakeRequest", IntakeRequest)

    @overload
    def retrieve(self, client: "FollowUp") -> "Retrieved": ...
    @overload
    def retrieve(self, client: "AsyncFollowUp") -> "Coroutine[Any, Any, Retrieved]": ...
    def retrieve(self, client: "FollowUp | AsyncFollowUp") -> Any:
        """Retrieve the object that ``ref`` names as it is now, which may be newer than the event.

        Args:
            client: the client to call the service with; an ``AsyncFollowUp`` returns an awaitable.

        Returns:
            The object, of the class that belongs to the prefix of ``ref``: an ``Appointment`` for ``apt_``.

        Raises:
            ValueError: ``ref`` is not the id of an object that can be retrieved.
            NotFoundError: the object does not exist any more.
        """
        from followup._declarations.operations import declarations_of, group_name
        from followup.resources import all_groups

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
