"""Simulated people: what staff and patients do outside the API, and the messages that patients receive."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import followup
from followup import NOT_GIVEN, NotGiven
from followup._for_mockserver import IntakeRequests, PatientStage
from followup_mockserver.control.arguments import arguments_of, rule_arguments, takes_body_of
from followup_mockserver.rules import doctors, intake_requests, patients
from followup_mockserver.world.schema.errors import Check, boolean, matching, one_of, optional, text
from followup_mockserver.world.schema.shapes import MAX_STRING_LENGTH
from followup_mockserver.world.state.records import Message, passed
from followup_mockserver.world.state.tenant_access import TenantAccess

_text = matching(
    lambda value: 0 < len(value) <= MAX_STRING_LENGTH, f"a non-empty string of at most {MAX_STRING_LENGTH:,} characters"
)
_DOCTOR: Mapping[str, Check] = {
    "full_name": _text,
    "specialty": optional(_text),
    "license_number": optional(_text),
    "external_id": optional(_text),
    "active": boolean,
}
_PATIENT: Mapping[str, Check] = {"opted_out": boolean, "stage": one_of(get_args(PatientStage))}


class PeopleControls:
    """Act as staff and patients, and read the messages to patients."""

    _access: TenantAccess

    @property
    def messages(self) -> list[Message]:
        """The messages that the service has written to patients, oldest first."""
        return self._access.read(lambda tenant: list(tenant.messages))

    def add_doctor(
        self,
        *,
        full_name: str,
        specialty: str | None = None,
        license_number: str | None = None,
        external_id: str | None = None,
        active: bool = True,
    ) -> followup.Doctor:
        """Add a doctor to the roster.

        Args:
            full_name: name, not empty.
            specialty: medical specialty.
            license_number: professional license.
            external_id: id in the organization's own system.
            active: whether the doctor receives appointments (specification, section 2, Doctor).

        Returns:
            The new doctor.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
        fields = passed(**arguments_of(locals()))
        _check(fields, _DOCTOR)
        return self._access.change("add_doctor", lambda tenant: doctors.add(tenant, **fields))

    def update_doctor(
        self,
        id: str,
        /,
        *,
        full_name: str | NotGiven = NOT_GIVEN,
        specialty: str | None | NotGiven = NOT_GIVEN,
        license_number: str | None | NotGiven = NOT_GIVEN,
        external_id: str | None | NotGiven = NOT_GIVEN,
        active: bool | NotGiven = NOT_GIVEN,
    ) -> followup.Doctor:
        """Update a doctor of the roster. Omitted fields stay unchanged; null clears a field.

        Args:
            id: id of the doctor.
            full_name: name, not empty; it cannot be cleared.
            specialty: medical specialty.
            license_number: professional license.
            external_id: id in the organization's own system.
            active: whether the doctor receives appointments (specification, section 2, Doctor).

        Returns:
            The doctor after the change.

        Raises:
            ServiceError: 404: there is no such doctor.
            ValueError: an invalid argument; the message names it.
        """
        changes = passed(**arguments_of(locals()))
        _check(changes, _DOCTOR)
        return self._access.change_object("update_doctor", "doctor", id, doctors.update, **changes)

    def update_patient(
        self, id: str, /, *, opted_out: bool | NotGiven = NOT_GIVEN, stage: PatientStage | NotGiven = NOT_GIVEN
    ) -> followup.Patient:
        """Update the two fields of a patient that cannot be set through the API. Omitted fields stay unchanged.

        Args:
            id: id of the patient.
            opted_out: whether the patient has asked not to receive messages.
            stage: stage of the follow-up (specification, section 3, Patient).

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient.
            ValueError: an invalid argument; the message names it.
        """
        changes = passed(opted_out=opted_out, stage=stage)
        _check(changes, _PATIENT)
        return self._access.change_object("update_patient", "patient", id, patients.set_service_fields, **changes)

    @takes_body_of(IntakeRequests.create)
    def answer_intake_request(
        self,
        id: str,
        /,
        *,
        patient: followup.PatientInput | None = None,
        contacts: Iterable[followup.ContactInput] | None = None,
        coverage: followup.CoverageInput | None = None,
        address: str | None = None,
        requested_service: str | None = None,
        summary: str | None = None,
        hospitalized: bool | None = None,
        sender: followup.SenderInput | None = None,
    ) -> followup.IntakeRequest:
        """Supply data of an intake request, as the patient does by replying to the service's message.

        The arguments are those of ``intake_requests.create``. ``patient``, ``coverage`` and ``sender`` are merged into
        the data of the request, field by field; other arguments replace its data. A request that lacks nothing becomes
        ``ready`` (specification, section 3, Intake request).

        Args:
            id: id of the intake request.
            patient: the patient.
            contacts: people to contact about the patient.
            coverage: insurance coverage.
            address: address of the patient.
            requested_service: the service requested.
            summary: administrative summary, without clinical content.
            hospitalized: whether the patient is in hospital.
            sender: the person or institution that submitted the request.

        Returns:
            The intake request after the change.

        Raises:
            ServiceError: 404: there is no such intake request; 400: it is closed, or the data is invalid.
            TypeError: an argument of the wrong type, as in ``intake_requests.create``.
            ValueError: an invalid argument; the message names it.
        """
        data = rule_arguments(IntakeRequests.create, **arguments_of(locals()))
        return self._access.change_object("answer_intake_request", "intake request", id, intake_requests.answer, **data)

    def load_intake_request(self, id: str, /) -> followup.IntakeRequest:
        """Mark an intake request as loaded into the organization's own system.

        Args:
            id: id of the intake request.

        Returns:
            The intake request, whose status is ``loaded``.

        Raises:
            ServiceError: 404: there is no such intake request; 400: it is not ``ready``.
        """
        return self._access.change_object("load_intake_request", "intake request", id, intake_requests.load)

    def discard_intake_request(self, id: str, /, *, reason: str | None = None) -> followup.IntakeRequest:
        """Discard an intake request, as the organization's staff can.

        Args:
            id: id of the intake request.
            reason: the reason, which the intake request then shows.

        Returns:
            The intake request, whose status is ``discarded``.

        Raises:
            ServiceError: 404: there is no such intake request; 400: it is already loaded or discarded.
        """
        return self._access.change_object(
            "discard_intake_request", "intake request", id, intake_requests.discard, reason=reason
        )

    def receive_reply(self, id: str, /) -> followup.Patient:
        """Receive a message of a patient, such as the reply to a reminder.

        The stage becomes ``in_conversation``. It changes again with the next appointment or visit, or with
        ``update_patient``.

        Args:
            id: id of the patient.

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient; 400: the patient has no phone.
        """
        return self._access.change_object("receive_reply", "patient", id, patients.reply)

    def report_silence(self, id: str, /) -> followup.Patient:
        """Note that a patient stopped answering: the stage becomes ``lost``, and ``patient.silent`` occurs.

        The stage stays ``scheduled`` or ``discharged``. The service does not send this webhook yet: an
        organization gets it if ``patient.silent`` is one of its activated events.

        Args:
            id: id of the patient.

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient; 400: the patient has no phone.
        """
        return self._access.change_object("report_silence", "patient", id, patients.fall_silent)

    def hand_off_conversation(self, id: str, /, *, reason: str | None = None) -> followup.Patient:
        """Hand the conversation with a patient off to the team: ``conversation.handoff`` occurs.

        The stage becomes ``in_conversation``. The service does not send this webhook yet: an organization gets
        it if ``conversation.handoff`` is one of its activated events.

        Args:
            id: id of the patient.
            reason: why the conversation needs a person; part of the webhook's data.

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient; 400: the patient has no phone.
            ValueError: an invalid argument; the message names it.
        """
        optional(text)("reason", reason)
        return self._access.change_object("hand_off_conversation", "patient", id, patients.hand_off, reason=reason)


def _check(arguments: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    for argument, value in arguments.items():
        checks[argument](argument, value)
