"""Patients (specification, sections 2 and 4)."""

# pyright: reportReturnType=false

from datetime import date, datetime
from typing import Literal, TypedDict

import attrs

from followup._core.api_rules import Email, NonEmpty, PageLimit, PatientId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of, patch, post
from followup._core.results import Result, personal

PatientStage = Literal["pending_follow_up", "in_conversation", "scheduled", "periodic_follow_up", "discharged", "lost"]


class PatientInput(TypedDict, total=False):
    """A patient, identified by their data instead of an id (specification, section 2, Embedded input shapes).

    The service looks for a patient with this phone, then for one with this DNI. If there is neither, it creates one.

    Keys:
        phone: cell phone with the messaging app, in any format; it identifies the patient.
        full_name: the patient's name.
        dni: number of the national identity document.
        email: e-mail address.
        external_id: the patient's id in your system.
        date_of_birth: a date, YYYY-MM-DD.
    """

    phone: NonEmpty | None
    full_name: NonEmpty | None
    dni: NonEmpty | None
    email: Email | None
    external_id: NonEmpty | None
    date_of_birth: date | str | None


@attrs.define(kw_only=True, eq=False, repr=False)
class Patient(Result):
    """A patient, as the API returns it (specification, section 2). ``repr`` shows no personal data.

    Attributes:
        phone: normalized cell phone, which identifies the patient in the messaging app.
        dni: number of the national identity document, without dots.
        external_id: the patient's id in your system.
        stage: stage of the patient's follow-up.
        opted_out: whether the patient asked not to receive messages. If so, the service does not write to them.
    """

    id: PatientId
    object: Literal["patient"]
    full_name: str | None = personal(None)
    phone: str | None = personal(None)
    email: Email | None = personal(None)
    dni: str | None = personal(None)
    external_id: str | None = personal(None)
    date_of_birth: date | None = personal(None)
    stage: PatientStage
    opted_out: bool
    created_at: datetime
    updated_at: datetime


class Patients(Resource, group="patients"):
    """The patients of the organization."""

    @post("/v1/patients")
    def create(
        self,
        *,
        phone: NonEmpty,
        full_name: NonEmpty | None | NotGiven = NOT_GIVEN,
        dni: NonEmpty | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
        email: Email | None | NotGiven = NOT_GIVEN,
        date_of_birth: date | str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Patient:
        """Create a patient, or return the existing one with this phone or DNI.

        For an existing patient, only missing data is filled in; existing values are never overwritten. The service
        does not write to the patient because of this call (specification, section 4, Patients).

        Args:
            phone: cell phone with the messaging app, in any format.
            full_name: the patient's name.
            dni: number of the national identity document; dots are ignored.
            external_id: the patient's id in your system.
            email: e-mail address.
            date_of_birth: a date, YYYY-MM-DD.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The patient, new or existing.
        """

    @get("/v1/patients/{id}")
    def retrieve(self, id: PatientId, /) -> Patient:
        """Retrieve a patient (specification, section 4, Patients).

        Args:
            id: id of the patient, begins with ``pat_``.

        Returns:
            The patient.

        Raises:
            NotFoundError: there is no such patient.
        """

    @patch("/v1/patients/{id}")
    def update(
        self,
        id: PatientId,
        /,
        *,
        full_name: NonEmpty | None | NotGiven = NOT_GIVEN,
        email: Email | None | NotGiven = NOT_GIVEN,
        dni: NonEmpty | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
        date_of_birth: date | str | None | NotGiven = NOT_GIVEN,
    ) -> Patient:
        """Update a patient. Omitted fields stay unchanged; null clears a field.

        The phone cannot be changed (specification, section 4, Patients).

        Args:
            id: id of the patient, begins with ``pat_``.
            full_name: the patient's name.
            email: e-mail address.
            dni: number of the national identity document; dots are ignored.
            external_id: the patient's id in your system.
            date_of_birth: a date, YYYY-MM-DD.

        Returns:
            The patient after the update.

        Raises:
            NotFoundError: there is no such patient.
        """

    @list_of("/v1/patients")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: PatientId | None | NotGiven = NOT_GIVEN,
        ending_before: PatientId | None | NotGiven = NOT_GIVEN,
        phone: NonEmpty | None | NotGiven = NOT_GIVEN,
        dni: NonEmpty | None | NotGiven = NOT_GIVEN,
        external_id: NonEmpty | None | NotGiven = NOT_GIVEN,
    ) -> Page[Patient]:
        """List patients, newest first (specification, section 4, Patients).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            phone: only patients with this phone, in any format.
            dni: only patients with this national identity document.
            external_id: only patients with this id in your system.

        Returns:
            The first page of patients.
        """
