"""Intake requests (specification, sections 2, 3 and 4)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

import attrs

from followup._annotations import Email, IntakeRequestId, NonEmpty, PageLimit, PatientId
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, get, list_of, post
from followup._pagination import Page
from followup._results import Result, personal
from followup.resources.patients import PatientInput

IntakeStatus = Literal["new", "validating", "ready", "loaded", "discarded"]


class ContactInput(TypedDict, total=False):
    """Somebody to ask about the patient.

    Keys:
        name: the contact's name.
        relationship: to the patient, for example ``daughter``.
        phone: messaging-app cell phone in any format.
        email: e-mail address.
    """

    name: NonEmpty | None
    relationship: str | None
    phone: NonEmpty | None
    email: Email | None


class CoverageInput(TypedDict, total=False):
    """Who pays.

    Keys:
        insurer: insurance or health plan.
        plan: the plan's name.
        member_id: the patient's number there.
    """

    insurer: str | None
    plan: str | None
    member_id: str | None


class SenderInput(TypedDict, total=False):
    """Who asks for the service.

    Keys:
        name: the person.
        organization: where they work.
        email: e-mail address.
    """

    name: NonEmpty | None
    organization: str | None
    email: Email | None


@attrs.define(kw_only=True)
class IntakeRequest(Result):
    """A request for the service for a patient. ``repr`` shows nothing that tells who they are.

    Attributes:
        patient: id of the patient once identified.
        summary: administrative summary, without clinical content.
        missing: data still missing for the request to become ready.
        data: the request's data as the service holds it, untouched.
        discard_reason: why it was discarded.
        ready_at: when it became complete.
        loaded_at: when it was loaded into the organization's system.
        closed_at: when it was closed.
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


class IntakeRequests(Resource[Mode], group="intake_requests"):
    """Requests for the service, which completes their data by messaging app."""

    @post("/v1/intake_requests")
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
        """Register a request for the service.

        At least one datum of the patient or of a contact is needed: name, document or phone. The patient is looked up
        by phone, then by DNI, and created if absent (specification, section 4, Intake requests).

        Args:
            patient: what is known of the patient.
            contacts: people to ask about the patient.
            coverage: who pays.
            address: where the patient lives.
            requested_service: what is asked for.
            summary: administrative only, without clinical content.
            hospitalized: whether the patient is in hospital.
            sender: who asks.
            idempotency_key: made for you when omitted.
        """
        ...

    @get("/v1/intake_requests/{id}")
    def retrieve(self, id: IntakeRequestId, /) -> IntakeRequest:
        """Retrieve an intake request with its status and what is missing (specification, section 4)."""
        ...

    @list_of("/v1/intake_requests")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: IntakeRequestId | None | NotGiven = NOT_GIVEN,
        ending_before: IntakeRequestId | None | NotGiven = NOT_GIVEN,
        status: IntakeStatus | None | NotGiven = NOT_GIVEN,
        patient: str | None | NotGiven = NOT_GIVEN,
    ) -> Page[IntakeRequest]:
        """List intake requests, newest first (specification, section 4, Intake requests).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
            status: only requests with this status.
            patient: only requests for the patient with this id; another string matches nothing.
        """
        ...
