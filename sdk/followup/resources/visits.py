"""Visits (specification, sections 2, 3 and 4)."""

from datetime import datetime
from typing import Literal

import attrs

from followup._annotations import AppointmentId, DoctorId, NonEmpty, PageLimit, PatientId, VisitId
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, get, list_of, post
from followup._pagination import Page
from followup._results import Result, personal
from followup.resources.doctors import DoctorInput
from followup.resources.patients import PatientInput

VisitSource = Literal["pms", "manual"]


@attrs.define(kw_only=True)
class Visit(Result):
    """An attended visit. ``repr`` shows nothing clinical.

    Attributes:
        patient: id of the patient.
        doctor: id of the doctor.
        appointment: id of the appointment that it came from.
        external_id: id in your system.
    """

    id: VisitId
    object: Literal["visit"]
    patient: PatientId
    doctor: DoctorId | None = None
    appointment: AppointmentId | None = None
    visited_at: datetime
    type: str | None = personal(None)
    diagnosis: str | None = personal(None)
    notes: str | None = personal(None)
    external_id: str | None = None
    source: VisitSource
    created_at: datetime


class Visits(Resource[Mode], group="visits"):
    """Attended visits; each starts a post-visit follow-up."""

    @post("/v1/visits")
    def create(
        self,
        *,
        patient: PatientId | PatientInput,
        visited_at: datetime | str,
        doctor: DoctorId | DoctorInput | None | NotGiven = NOT_GIVEN,
        type: str | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
        diagnosis: str | None | NotGiven = NOT_GIVEN,
        notes: str | None | NotGiven = NOT_GIVEN,
        appointment: str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Visit:
        """Create a visit; some hours later the service writes to the patient.

        An ``external_id`` that exists returns its visit (specification, section 4, Visits).

        Args:
            patient: id of the patient, or what is known of them.
            visited_at: when it was; an aware ``datetime`` or an ISO 8601 string.
            doctor: id of the doctor, or what is known of them.
            type: type of visit.
            external_id: id in your system.
            diagnosis: as the doctor wrote it.
            notes: as the doctor wrote them.
            appointment: id, or your external id, of the appointment that it came from, which becomes completed.
            idempotency_key: made for you when omitted.
        """
        ...

    @get("/v1/visits/{id}")
    def retrieve(self, id: VisitId, /) -> Visit:
        """Retrieve a visit (specification, section 4, Visits)."""
        ...

    @list_of("/v1/visits")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: VisitId | None | NotGiven = NOT_GIVEN,
        ending_before: VisitId | None | NotGiven = NOT_GIVEN,
        patient: PatientId | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
    ) -> Page[Visit]:
        """List visits, the last loaded first (specification, section 4, Visits).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
            patient: only visits of this patient.
            external_id: only the visit with this id of your system.
        """
        ...
