"""Appointments, visits and events that do not come from the API: of the agent, the team, a practice system."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, get_args

from followup import Appointment, DoctorInput, Event, EventInput, PatientInput, Visit
from followup._for_mockserver import Appointments, Events, PatientId, Visits, VisitSource
from followup_mockserver.control import arguments
from followup_mockserver.rules import appointments, events, visits
from followup_mockserver.world.schema.errors import InvalidArgument, one_of
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import TenantAccess

OwnAppointmentSource = Literal["agent", "manual", "pms"]
OtherEventSource = Literal["pms", "email", "tool", "manual", "import"]
NewAppointmentStatus = Literal["confirmed", "pending"]


class BookingControls:
    """Book, confirm, reschedule and cancel appointments, and add visits, as the service itself does."""

    _access: TenantAccess

    def add_appointment(
        self,
        *,
        patient: PatientId | PatientInput,
        start_at: datetime | str,
        doctor: str | DoctorInput | None = None,
        type: str | None = None,
        external_id: str | None = None,
        source: OwnAppointmentSource = "agent",
        status: NewAppointmentStatus = "confirmed",
    ) -> Appointment:
        """Book an appointment as the service's agent, the team or the practice system does.

        Its reminders and webhooks are those of an appointment that a client creates. An existing appointment with the
        same external id is returned unchanged.

        Args:
            patient: id of the patient, or data by which to find or create them.
            start_at: time at which it begins; a time with an offset: 2030-05-17T14:30:00-03:00.
            doctor: id of the doctor, or data by which to find them. The agent books active doctors only.
            type: type of appointment or procedure.
            external_id: the appointment's id in the organization's own system.
            source: who books it: ``agent``, ``manual`` (the team) or ``pms`` (the practice-system connector).
            status: ``pending`` until the patient or the team confirms it, or ``confirmed``.

        Returns:
            The appointment.

        Raises:
            ServiceError: 400: there is no such patient or doctor, or the agent books an inactive doctor.
            TypeError: an argument of the wrong type, as in ``appointments.create``.
            ValueError: an invalid argument; the message names it.
        """
        one_of(get_args(OwnAppointmentSource))("source", source)
        one_of(get_args(NewAppointmentStatus))("status", status)
        fields = arguments.rule_arguments(Appointments.create, **arguments.arguments_of(locals(), "source", "status"))
        with arguments.naming_arguments():
            return self._access.change(
                "add_appointment", lambda tenant: appointments.create(tenant, **fields, source=source, status=status)
            )

    def confirm_appointment(self, id: str, /) -> Appointment:
        """Confirm an appointment, as the patient or the team does. No webhook reports this.

        Args:
            id: id of the appointment.

        Returns:
            The appointment, whose status is ``confirmed``.

        Raises:
            ServiceError: 404: there is no such appointment; 400: it is cancelled or completed.
        """
        return self._access.change_object("confirm_appointment", "appointment", id, appointments.confirm)

    def reschedule_appointment(self, id: str, /, *, start_at: datetime | str) -> Appointment:
        """Move an appointment to another time, as the service's agent or the team does.

        Args:
            id: id of the appointment.
            start_at: time at which it begins; a time with an offset: 2030-05-17T14:30:00-03:00.

        Returns:
            The appointment after the change.

        Raises:
            ServiceError: 404: there is no such appointment; 400: it is cancelled or completed.
            TypeError: an argument of the wrong type.
            ValueError: an invalid argument; the message names it.
        """
        changes = arguments.rule_arguments(Appointments.create, start_at=start_at)
        return self._access.change_object("reschedule_appointment", "appointment", id, appointments.update, **changes)

    def cancel_appointment(self, id: str, /, *, reason: str | None = None) -> Appointment:
        """Cancel an appointment, as the service's agent or the team does. Cancelling it again changes nothing.

        Args:
            id: id of the appointment.
            reason: reason for the cancellation, for the record.

        Returns:
            The cancelled appointment.

        Raises:
            ServiceError: 404: there is no such appointment.
            TypeError: an argument of the wrong type.
            ValueError: an invalid argument; the message names it.
        """
        details = arguments.rule_arguments(Appointments.cancel, reason=reason)
        return self._access.change_object("cancel_appointment", "appointment", id, appointments.cancel, **details)

    def add_visit(
        self,
        *,
        patient: PatientId | PatientInput,
        visited_at: datetime | str,
        doctor: str | DoctorInput | None = None,
        type: str | None = None,
        external_id: str | None = None,
        diagnosis: str | None = None,
        notes: str | None = None,
        appointment: str | None = None,
        source: VisitSource = "pms",
    ) -> Visit:
        """Add a visit as the practice system or the team does, which starts the post-visit follow-up.

        An existing visit with the same external id is returned unchanged.

        Args:
            patient: id of the patient, or data by which to find or create them.
            visited_at: time of the visit; a time with an offset: 2030-05-17T14:30:00-03:00.
            doctor: id of the doctor, or data by which to find them.
            type: type of visit.
            external_id: the visit's id in the organization's own system.
            diagnosis: the doctor's diagnosis.
            notes: the doctor's notes.
            appointment: id or external id of the appointment that this visit completes.
            source: who adds it: ``pms`` (the practice-system connector) or ``manual`` (the team).

        Returns:
            The visit.

        Raises:
            ServiceError: 400: there is no such patient, doctor or appointment.
            TypeError: an argument of the wrong type, as in ``visits.create``.
            ValueError: an invalid argument; the message names it.
        """
        one_of(get_args(VisitSource))("source", source)
        fields = arguments.rule_arguments(Visits.create, **arguments.arguments_of(locals(), "source"))
        with arguments.naming_arguments():
            return self._access.change("add_visit", lambda tenant: visits.create(tenant, **fields, source=source))

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
        one_of(get_args(OtherEventSource))("source", source)
        if not isinstance(event, Mapping):
            raise InvalidArgument("event", "one event, as a function of followup.inbound returns it")
        raw = arguments.json_object("event", arguments.encoded_argument(Events.create.parameters[0], event))

        def receive(tenant: Tenant) -> Event:
            result = events.process(tenant, raw, source)
            stored = tenant.events.get(result.event or "")
            if stored is None:
                raise InvalidArgument("event", f"a valid event ({result.error})")
            return stored

        return self._access.change("receive_event", receive)
