"""Intake requests (specification, sections 2, 3 and 4)."""

# pyright: reportReturnType=false

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

import attrs

from followup._core.api_rules import Email, IntakeRequestId, NonEmpty, PageLimit, PatientId
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of, post
from followup._core.results import Result, personal
from followup.resources.patients import PatientInput

IntakeStatus = Literal["new", "validating", "ready", "loaded", "discarded"]


class ContactInput(TypedDict, total=False):
    """A person whom the service may ask about the patient.

    Keys:
        name: the contact's name.
        relationship: relationship to the patient, for example ``daughter``.
        phone: cell phone with the messaging app, in any format.
        email: e-mail address.
    """

    name: NonEmpty | None
    relationship: str | None
    phone: NonEmpty | None
    email: Email | None


class CoverageInput(TypedDict, total=False):
    """The patient's insurance coverage.

    Keys:
        insurer: name of the insurer.
        plan: name of the plan.
        member_id: the patient's member number.
    """

    insurer: str | None
    plan: str | None
    member_id: str | None


class SenderInput(TypedDict, total=False):
    """The person or organization that submits an intake request.

    Keys:
        name: name of the person.
        organization: name of their organization.
        email: e-mail address.
    """

    name: NonEmpty | None
    organization: str | None
    email: Email | None


IDENTIFYING: Final[dict[str, tuple[str, ...]]] = {
    "patient": ("full_name", "dni", "phone"),
    "contacts": ("name", "phone"),
}
"""An intake request needs one of these data, of the patient or of a contact (specification, section 4)."""


@attrs.define(kw_only=True, eq=False, repr=False)
class IntakeRequest(Result):
    """A request to admit a patient to follow-up, as the API returns it (specification, section 2).

    ``repr`` shows no personal data.

    Attributes:
        status: ``new``, ``validating`` (the service is completing its data), ``ready`` (complete), ``loaded`` (into
            the organization's system) or ``discarded``.
        patient: id of the patient once identified.
        summary: administrative summary, without clinical content.
        missing: data still missing for the request to become ready.
        data: data of the request, as the service stores it.
        discard_reason: reason why it was discarded.
        ready_at: time at which it became complete.
        loaded_at: time at which it was loaded into the organization's system.
        closed_at: time at which it was closed.
    """

    id: IntakeRequestId
    object: Literal["intake_request"]
    status: IntakeStatus
    patient: PatientId | None = None
    summary: str | None = personal(None)
    missing: list[str]
    data: Mapping[str, Any] = personal()
    discard_reason: str | None = personal(None)
    ready_at: datetime | None = None
    loaded_at: datetime | None = None
    closed_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


class IntakeRequests(Resource, group="intake_requests"):
    """Requests to admit patients to follow-up; the service completes their data by messaging app."""

    @post("/v1/intake_requests", one_of=IDENTIFYING)
    def create(
        self,
        *,
        patient: PatientInput | None | NotGiven = NOT_GIVEN,
        contacts: Iterable[ContactInput] | None | NotGiven = NOT_GIVEN,
        coverage: CoverageInput | None | NotGiven = NOT_GIVEN,
        address: str | None | NotGiven = NOT_GIVEN,
        requested_service: str | None | NotGiven = NOT_GIVEN,
        summary: str | None | NotGiven = NOT_GIVEN,
        hospitalized: bool | None | NotGiven = NOT_GIVEN,
        sender: SenderInput | None | NotGiven = NOT_GIVEN,
        idempotency_key: str | None = None,
    ) -> IntakeRequest:
        """Create an intake request; the service may write to the patient to complete its data.

        At least a name, document or phone of the patient or of a contact is required. The patient is looked up by
        phone, then by DNI, and created if there is none (specification, section 4, Intake requests).

        Args:
            patient: data of the patient.
            contacts: people whom the service may ask about the patient.
            coverage: insurance coverage.
            address: the patient's address.
            requested_service: the service requested.
            summary: administrative summary, without clinical content.
            hospitalized: whether the patient is in hospital.
            sender: the person or organization that submits the request.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The new intake request.

        Raises:
            InvalidRequestError: there is no name, document or phone.
        """

    @get("/v1/intake_requests/{id}")
    def retrieve(self, id: IntakeRequestId, /) -> IntakeRequest:
        """Retrieve an intake request, with its status and its missing data (specification, section 4).

        Args:
            id: id of the intake request, begins with ``int_``.

        Returns:
            The intake request.

        Raises:
            NotFoundError: there is no such intake request.
        """

    @list_of("/v1/intake_requests")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: IntakeRequestId | None | NotGiven = NOT_GIVEN,
        ending_before: IntakeRequestId | None | NotGiven = NOT_GIVEN,
        status: IntakeStatus | None | NotGiven = NOT_GIVEN,
        # Not a PatientId: section 4 demands the prefix in the filter of appointments, and any string here.
        patient: str | None | NotGiven = NOT_GIVEN,
    ) -> Page[IntakeRequest]:
        """List intake requests, newest first (specification, section 4, Intake requests).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            status: only requests with this status.
            patient: only requests for the patient with this id; any other string matches none.

        Returns:
            The first page of intake requests.
        """
