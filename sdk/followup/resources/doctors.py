"""Doctors: the organization's roster, read-only in this API (specification, sections 2 and 4)."""

# pyright: reportReturnType=false

from datetime import datetime
from typing import Literal, TypedDict

import attrs

from followup._core.api_rules import DoctorId, NonEmpty, PageLimit
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of
from followup._core.results import Result


class DoctorInput(TypedDict, total=False):
    """A doctor, identified by their data instead of an id (specification, section 2, Embedded input shapes).

    Keys:
        external_id: the doctor's id in your system.
        full_name: the doctor's name.
        specialty: for example ``cardiology``.
    """

    external_id: NonEmpty | None
    full_name: NonEmpty | None
    specialty: str | None


@attrs.define(kw_only=True, eq=False, repr=False)
class Doctor(Result):
    """A doctor of the roster, which the organization maintains in the service itself (specification, section 2).

    Attributes:
        specialty: for example ``cardiology``.
        license_number: number of the professional license.
        external_id: the doctor's id in your system.
        active: whether the doctor currently sees patients; the service's agent books only with active doctors.
    """

    id: DoctorId
    object: Literal["doctor"]
    full_name: str
    specialty: str | None = None
    license_number: str | None = None
    external_id: str | None = None
    active: bool
    created_at: datetime


class Doctors(Resource, group="doctors"):
    """The organization's roster of doctors."""

    @get("/v1/doctors/{id}")
    def retrieve(self, id: DoctorId, /) -> Doctor:
        """Retrieve a doctor (specification, section 4, Doctors).

        Args:
            id: id of the doctor, begins with ``doc_``.

        Returns:
            The doctor.

        Raises:
            NotFoundError: there is no such doctor.
        """

    @list_of("/v1/doctors")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: DoctorId | None | NotGiven = NOT_GIVEN,
        ending_before: DoctorId | None | NotGiven = NOT_GIVEN,
        active: bool | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
    ) -> Page[Doctor]:
        """List doctors, newest first (specification, section 4, Doctors).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            active: only active doctors, or only inactive ones.
            external_id: only the doctor with this id in your system.

        Returns:
            The first page of doctors.
        """
