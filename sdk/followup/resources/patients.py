"""Patients (specification, sections 2 and 4)."""

from datetime import date, datetime
from typing import Literal, TypedDict

import attrs

from followup._annotations import Email, NonEmpty, PageLimit, PatientId
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, get, list_of, patch, post
from followup._pagination import Page
from followup._results import Result, personal

PatientStage = Literal["pending_follow_up", "in_conversation", "scheduled", "periodic_follow_up", "discharged", "lost"]


class PatientInput(TypedDict, total=False):
    """A patient given by what is known of them, where an id would do as well.

    The service looks for one with this phone, then for one with this DNI, and creates the patient if there is none.

    Keys:
        phone: messaging-app cell phone in any format; the patient's primary identity.
        full_name: the patient's name.
        dni: national document.
        email: e-mail address.
        external_id: the patient's id in your system.
        date_of_birth: a ``date``, or ``YYYY-MM-DD``.
    """

    phone: NonEmpty | None
    full_name: NonEmpty | None
    dni: NonEmpty | None
    email: Email | None
    external_id: NonEmpty | None
    date_of_birth: date | str | None


@attrs.define(kw_only=True)
class Patient(Result):
    """A patient. ``repr`` shows nothing that tells who they are.

    Attributes:
        phone: normalized; the patient's identity in the messaging app.
        dni: national document, without dots.
        external_id: id in your system.
        stage: where the patient stands in follow-up.
        opted_out: true when the patient asked not to receive messages; the service does not write to them.
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


class Patients(Resource[Mode], group="patients"):
    """The people whom the organization cares for."""

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
        """Create a patient, or return the one who has this phone or DNI.

        A patient who exists gets only the data that was missing; nothing loaded is overwritten. Creating a patient
        does not contact them (specification, section 4, Patients).

        Args:
            phone: messaging-app cell phone in any format.
            full_name: the patient's name.
            dni: national document; dots do not matter.
            external_id: id in your system.
            email: e-mail address.
            date_of_birth: a ``date``, or ``YYYY-MM-DD``.
            idempotency_key: made for you when omitted.
        """
        ...

    @get("/v1/patients/{id}")
    def retrieve(self, id: PatientId, /) -> Patient:
        """Retrieve a patient (specification, section 4, Patients)."""
        ...

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
        """Update a patient. Omitted fields stay unchanged; None clears a field.

        The phone cannot be changed (specification, section 4, Patients).

        Args:
            id: id of the patient, begins with ``pat_``.
            full_name: the patient's name.
            email: e-mail address.
            dni: national document; dots do not matter.
            external_id: id in your system.
            date_of_birth: a ``date``, or ``YYYY-MM-DD``.
        """
        ...

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
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
            phone: only patients with this phone, in any format.
            dni: only patients with this national document.
            external_id: only patients with this id of your system.
        """
        ...
