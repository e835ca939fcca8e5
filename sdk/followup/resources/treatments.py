"""Treatments (specification, sections 2 and 4)."""

from datetime import datetime
from typing import Annotated, Literal

import attrs

from followup._annotations import Default, NonEmpty, PageLimit, PatientId, TreatmentId
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, get, list_of, post
from followup._pagination import Page
from followup._results import Result, personal
from followup.resources.patients import PatientInput

TreatmentKind = Literal["medication", "therapy", "diet", "study", "lab", "work", "lifestyle"]
DEFAULT_TREATMENT_KIND: TreatmentKind = "medication"


@attrs.define(kw_only=True)
class Treatment(Result):
    """A treatment in the patient's record; the service's agent takes it into account. ``repr`` shows nothing clinical.

    Attributes:
        patient: id of the patient.
        kind: ``medication``, ``therapy``, ``diet``, ``study``, ``lab``, ``work`` or ``lifestyle``.
        active: whether it goes on.
    """

    id: TreatmentId
    object: Literal["treatment"]
    patient: PatientId
    kind: TreatmentKind
    name: str = personal()
    dosage: str | None = personal(None)
    frequency: str | None = personal(None)
    instructions: str | None = personal(None)
    start_date: datetime | None = None
    end_date: datetime | None = None
    active: bool
    created_at: datetime
    updated_at: datetime


class Treatments(Resource[Mode], group="treatments"):
    """Treatments in the patients' records. No medication reminders follow from them."""

    @post("/v1/treatments")
    def create(
        self,
        *,
        patient: PatientId | PatientInput,
        name: NonEmpty,
        kind: Annotated[TreatmentKind, Default(DEFAULT_TREATMENT_KIND)] | None | NotGiven = NOT_GIVEN,
        dosage: str | None | NotGiven = NOT_GIVEN,
        frequency: str | None | NotGiven = NOT_GIVEN,
        instructions: str | None | NotGiven = NOT_GIVEN,
        start_date: datetime | str | None | NotGiven = NOT_GIVEN,
        end_date: datetime | str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Treatment:
        """Store a treatment in the patient's record (specification, section 4, Treatments).

        Args:
            patient: id of the patient, or what is known of them.
            name: for example the drug.
            kind: ``medication`` when left out.
            dosage: how much.
            frequency: how often.
            instructions: in the doctor's words.
            start_date: when it begins; an aware ``datetime`` or an ISO 8601 string.
            end_date: when it ends; an aware ``datetime`` or an ISO 8601 string.
            idempotency_key: made for you when omitted.
        """
        ...

    @get("/v1/treatments/{id}")
    def retrieve(self, id: TreatmentId, /) -> Treatment:
        """Retrieve a treatment (specification, section 4, Treatments)."""
        ...

    @list_of("/v1/treatments")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: TreatmentId | None | NotGiven = NOT_GIVEN,
        ending_before: TreatmentId | None | NotGiven = NOT_GIVEN,
        patient: PatientId | None | NotGiven = NOT_GIVEN,
        active: bool | None | NotGiven = NOT_GIVEN,
    ) -> Page[Treatment]:
        """List treatments, newest first (specification, section 4, Treatments).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
            patient: only treatments of this patient.
            active: only treatments that go on, or only those that do not.
        """
        ...
