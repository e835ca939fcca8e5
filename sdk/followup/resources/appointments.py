"""Appointments (specification, sections 2, 3 and 4)."""

from datetime import datetime
from typing import Literal

import attrs

from followup._annotations import AppointmentId, DoctorId, NonEmpty, PageLimit, PatientId
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, get, list_of, patch, post
from followup._pagination import Page
from followup._results import Result, personal
from followup.resources.doctors import DoctorInput
from followup.resources.patients import PatientInput

AppointmentStatus = Literal["confirmed", "pending", "rescheduled", "cancelled", "completed"]
AppointmentSource = Literal["api", "pms", "agent", "manual"]


@attrs.define(kw_only=True)
class Appointment(Result):
    """An appointment of a patient.

    Attributes:
        patient: id of the patient.
        doctor: id of the doctor.
        type: type of appointment or procedure.
        external_id: id in your system.
        source: who made it: ``api``, ``pms`` (practice-system connector), ``agent`` (the service's) or
            ``manual`` (the team).
        cancelled_at: when it was cancelled.
    """

    id: AppointmentId
    object: Literal["appointment"]
    patient: PatientId
    doctor: DoctorId | None = None
    start_at: datetime
    status: AppointmentStatus
    type: str | None = personal(None)
    external_id: str | None = None
    source: AppointmentSource
    cancelled_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


class Appointments(Resource[Mode], group="appointments"):
    """Appointments, and the reminders that follow from them."""

    @post("/v1/appointments")
    def create(
        self,
        *,
        patient: PatientId | PatientInput,
        start_at: datetime | str,
        doctor: DoctorId | DoctorInput | None | NotGiven = NOT_GIVEN,
        type: str | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Appointment:
        """Create an appointment; the reminders that the organization configured are scheduled.

        An ``external_id`` that exists returns its appointment, and no other is created
        (specification, section 4, Appointments).

        Args:
            patient: id of the patient, or what is known of them.
            start_at: when it begins; an aware ``datetime`` or an ISO 8601 string.
            doctor: id of the doctor, or what is known of them.
            type: type of appointment or procedure.
            external_id: id in your system; without it the appointment can only be changed by its id here.
            idempotency_key: made for you when omitted.
        """
        ...

    @get("/v1/appointments/{id}")
    def retrieve(self, id: AppointmentId, /) -> Appointment:
        """Retrieve an appointment (specification, section 4, Appointments)."""
        ...

    @patch("/v1/appointments/{id}")
    def update(
        self,
        id: AppointmentId,
        /,
        *,
        start_at: datetime | str | NotGiven = NOT_GIVEN,
        doctor: DoctorId | DoctorInput | None | NotGiven = NOT_GIVEN,
        type: str | None | NotGiven = NOT_GIVEN,
    ) -> Appointment:
        """Change an appointment that is neither cancelled nor completed; a new start moves its pending reminders.

        (Specification, section 4, Appointments.)

        Args:
            id: id of the appointment, begins with ``apt_``.
            start_at: when it begins; an aware ``datetime`` or an ISO 8601 string.
            doctor: id of the doctor, or what is known of them; None for no doctor.
            type: type of appointment or procedure; None clears it.
        """
        ...

    @post("/v1/appointments/{id}/cancel")
    def cancel(
        self,
        id: AppointmentId,
        /,
        *,
        reason: str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Appointment:
        """Cancel an appointment and remove its pending reminders; cancelling it again changes nothing.

        (Specification, sections 3 and 4.)

        Args:
            id: id of the appointment, begins with ``apt_``.
            reason: for the record.
            idempotency_key: made for you when omitted.
        """
        ...

    @list_of("/v1/appointments")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: AppointmentId | None | NotGiven = NOT_GIVEN,
        ending_before: AppointmentId | None | NotGiven = NOT_GIVEN,
        patient: PatientId | None | NotGiven = NOT_GIVEN,
        status: AppointmentStatus | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
        start_at_gte: datetime | str | None | NotGiven = NOT_GIVEN,
        start_at_lt: datetime | str | None | NotGiven = NOT_GIVEN,
    ) -> Page[Appointment]:
        """List appointments, the last loaded first (specification, section 4, Appointments).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
            patient: only appointments of this patient.
            status: only appointments with this status.
            external_id: only the appointment with this id of your system.
            start_at_gte: only appointments that begin at this time or later.
            start_at_lt: only appointments that begin before this time.
        """
        ...
