"""Visits (specification, sections 2, 3 and 4)."""

# pyright: reportReturnType=false

from datetime import datetime
from typing import Literal

import attrs

from followup._core.api_rules import AppointmentId, DoctorId, NonEmpty, PageLimit, PatientId, VisitId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of, post
from followup._core.results import Result, personal
from followup.resources.doctors import DoctorInput
from followup.resources.patients import PatientInput

VisitSource = Literal["pms", "manual"]


@attrs.define(kw_only=True, eq=False, repr=False)
class Visit(Result):
    """An attended visit, as the API returns it (specification, section 2). ``repr`` shows no clinical data.

    Attributes:
        patient: id of the patient.
        doctor: id of the doctor.
        appointment: id of the appointment that it completed.
        visited_at: time of the visit.
        external_id: the visit's id in your system.
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


class Visits(Resource, group="visits"):
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
        # Not an AppointmentId: section 4 allows the external id of the appointment as well.
        appointment: str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Visit:
        """Create a visit, which starts the post-visit follow-up of the patient.

        If a visit with this external id exists, it is returned and none is created (specification, section 4,
        Visits).

        Args:
            patient: id of the patient, or data by which to find or create them.
            visited_at: time of the visit; a time with an offset: 2030-05-17T14:30:00-03:00.
            doctor: id of the doctor, or data by which to find them.
            type: type of visit.
            external_id: the visit's id in your system.
            diagnosis: the doctor's diagnosis.
            notes: the doctor's notes.
            appointment: id or external id of the appointment that this visit completes.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The visit, new or existing.
        """

    @get("/v1/visits/{id}")
    def retrieve(self, id: VisitId, /) -> Visit:
        """Retrieve a visit (specification, section 4, Visits).

        Args:
            id: id of the visit, begins with ``vis_``.

        Returns:
            The visit.

        Raises:
            NotFoundError: there is no such visit.
        """

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
        """List visits, the most recently created first (specification, section 4, Visits).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            patient: only visits of this patient.
            external_id: only the visit with this id in your system.

        Returns:
            The first page of visits.
        """
