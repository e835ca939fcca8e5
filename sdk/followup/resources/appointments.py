"""Appointments (specification, sections 2, 3 and 4)."""

# pyright: reportReturnType=false

from datetime import datetime
from typing import Literal

import attrs

from followup._core.api_rules import AppointmentId, DoctorId, NonEmpty, PageLimit, PatientId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of, patch, post
from followup._core.results import Result, personal
from followup.resources.doctors import DoctorInput
from followup.resources.patients import PatientInput

AppointmentStatus = Literal["confirmed", "pending", "rescheduled", "cancelled", "completed"]
AppointmentSource = Literal["api", "pms", "agent", "manual"]


@attrs.define(kw_only=True, eq=False, repr=False)
class Appointment(Result):
    """An appointment, as the API returns it (specification, section 2). ``repr`` does not show its ``type``.

    Attributes:
        patient: id of the patient.
        doctor: id of the doctor.
        start_at: time at which it begins.
        type: type of appointment or procedure.
        external_id: the appointment's id in your system.
        source: who created it: ``api``, ``pms`` (practice-system connector), ``agent`` (the service's agent) or
            ``manual`` (the team).
        cancelled_at: time of the cancellation.
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


class Appointments(Resource, group="appointments"):
    """Appointments and their reminders."""

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
        """Create an appointment and schedule its reminders, as the organization configured them.

        If an appointment with this external id exists, it is returned and none is created
        (specification, section 4, Appointments).

        Args:
            patient: id of the patient, or data by which to find or create them.
            start_at: time at which it begins; a time with an offset: 2030-05-17T14:30:00-03:00.
            doctor: id of the doctor, or data by which to find them.
            type: type of appointment or procedure.
            external_id: the appointment's id in your system; inbound events refer to the appointment by it.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The appointment, new or existing.
        """

    @get("/v1/appointments/{id}")
    def retrieve(self, id: AppointmentId, /) -> Appointment:
        """Retrieve an appointment (specification, section 4, Appointments).

        Args:
            id: id of the appointment, begins with ``apt_``.

        Returns:
            The appointment.

        Raises:
            NotFoundError: there is no such appointment.
        """

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
        """Update an appointment. Omitted fields stay unchanged; a new start moves its pending reminders.

        A cancelled or completed appointment cannot be updated (specification, sections 3 and 4, Appointments).

        Args:
            id: id of the appointment, begins with ``apt_``.
            start_at: time at which it begins; a time with an offset: 2030-05-17T14:30:00-03:00.
            doctor: id of the doctor, or data by which to find them.
            type: type of appointment or procedure.

        Returns:
            The appointment after the update.

        Raises:
            APIStatusError: the appointment is cancelled or completed.
            NotFoundError: there is no such appointment.
        """

    @post("/v1/appointments/{id}/cancel")
    def cancel(
        self, id: AppointmentId, /, *, reason: str | None | NotGiven = NOT_GIVEN, idempotency_key: str | None = None
    ) -> Appointment:
        """Cancel an appointment and remove its pending reminders.

        Cancelling it again changes nothing (specification, sections 3 and 4, Appointments).

        Args:
            id: id of the appointment, begins with ``apt_``.
            reason: reason for the cancellation, kept for the record.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The cancelled appointment.

        Raises:
            NotFoundError: there is no such appointment.
        """

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
        """List appointments, the most recently created first (specification, section 4, Appointments).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            patient: only appointments of this patient.
            status: only appointments with this status.
            external_id: only the appointment with this id in your system.
            start_at_gte: only appointments that begin at this time or later.
            start_at_lt: only appointments that begin before this time.

        Returns:
            The first page of appointments.
        """
