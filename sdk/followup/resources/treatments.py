"""Treatments (specification, sections 2 and 4)."""

# pyright: reportReturnType=false

from datetime import datetime
from typing import Annotated, Literal

import attrs

from followup._core.api_rules import Default, NonEmpty, PageLimit, PatientId, TreatmentId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of, post
from followup._core.results import Result, personal
from followup.resources.patients import PatientInput

TreatmentKind = Literal["medication", "therapy", "diet", "study", "lab", "work", "lifestyle"]
DEFAULT_TREATMENT_KIND: TreatmentKind = "medication"


@attrs.define(kw_only=True, eq=False, repr=False)
class Treatment(Result):
    """A treatment in a patient's record, as the API returns it (specification, section 2).

    ``repr`` shows no clinical data.

    Attributes:
        patient: id of the patient.
        kind: ``medication``, ``therapy``, ``diet``, ``study``, ``lab``, ``work`` or ``lifestyle``.
        active: whether the treatment is still in effect.
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


class Treatments(Resource, group="treatments"):
    """Treatments in the patients' records. The service sends no medication reminders."""

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
        # Timestamps on the wire, in spite of their names (section 4).
        start_date: datetime | str | None | NotGiven = NOT_GIVEN,
        end_date: datetime | str | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> Treatment:
        """Create a treatment in the patient's record (specification, section 4, Treatments).

        Args:
            patient: id of the patient, or data by which to find or create them.
            name: name of the treatment, for example of the drug.
            kind: kind of treatment; ``medication`` when omitted.
            dosage: dosage, for example ``1 tablet``.
            frequency: frequency, for example ``every 12 h``.
            instructions: the doctor's instructions.
            start_date: time at which it begins; a time with an offset: 2030-05-17T14:30:00-03:00.
            end_date: time at which it ends; a time with an offset: 2030-05-17T14:30:00-03:00.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The new treatment.
        """

    @get("/v1/treatments/{id}")
    def retrieve(self, id: TreatmentId, /) -> Treatment:
        """Retrieve a treatment (specification, section 4, Treatments).

        Args:
            id: id of the treatment, begins with ``trt_``.

        Returns:
            The treatment.

        Raises:
            NotFoundError: there is no such treatment.
        """

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
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            patient: only treatments of this patient.
            active: only active treatments, or only inactive ones.

        Returns:
            The first page of treatments.
        """
