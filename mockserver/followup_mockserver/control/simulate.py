"""Simulated people: what staff, patients and the organization do, and the webhooks that follow."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from followup import (
    NOT_GIVEN,
    ContactInput,
    CoverageInput,
    Doctor,
    IntakeRequest,
    NotGiven,
    Patient,
    PatientInput,
    SenderInput,
    WebhookDelivery,
)
from followup._for_mockserver import IntakeRequests, OutboundEventType, PatientStage
from followup_mockserver.control.tenants import OrganizationControls, existing, passed
from followup_mockserver.options import webhook_target
from followup_mockserver.rules import doctors, intake_requests, patients
from followup_mockserver.schema.checks import Check, boolean, choice, optional, that
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.schema.shapes import MAX_STRING_LENGTH, shape_of
from followup_mockserver.state.copies import copied
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import deliveries, examples
from followup_mockserver.webhooks.mounts import Receiver

_text = that(
    lambda value: 0 < len(value) <= MAX_STRING_LENGTH,
    f"a text that is not empty, of at most {MAX_STRING_LENGTH:,} characters",
)
_DOCTOR: Mapping[str, Check] = {
    "full_name": _text,
    "specialty": optional(_text),
    "license_number": optional(_text),
    "external_id": optional(_text),
    "active": boolean,
}
_PATIENT: Mapping[str, Check] = {"opted_out": boolean, "stage": choice(get_args(PatientStage))}

_INTAKE_PARAMETERS = {each.name: each for each in IntakeRequests.create.parameters}


class Simulation(OrganizationControls):
    """Act as staff, patients and the organization."""

    def mount(self, url: str, app: Receiver) -> None:
        """Send the webhooks to this URL, and to those below it, to an application in this process.

        Args:
            url: an https URL, or an http URL of a loopback address.
            app: a WSGI or ASGI application, or a function that takes an httpx.Request and returns an httpx.Response.

        Raises:
            ValueError: another URL, such as one without a scheme.
        """
        webhook_target("url", url)
        self._mounts.add(url, app)

    def add_doctor(
        self,
        *,
        full_name: str,
        specialty: str | None = None,
        license_number: str | None = None,
        external_id: str | None = None,
        active: bool = True,
    ) -> Doctor:
        """Add a doctor to the roster.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
        fields = passed(
            full_name=full_name,
            specialty=specialty,
            license_number=license_number,
            external_id=external_id,
            active=active,
        )
        _check(fields, _DOCTOR)
        return self._change(lambda tenant: doctors.add(tenant, **fields))

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
    ) -> Doctor:
        """Update a doctor of the roster. Omitted fields stay unchanged, None clears one.

        Raises:
            ServiceError: there is no such doctor.
            ValueError: an invalid argument; the message names it.
        """
        changes = passed(
            full_name=full_name,
            specialty=specialty,
            license_number=license_number,
            external_id=external_id,
            active=active,
        )
        _check(changes, _DOCTOR)
        return self._change(
            lambda tenant: doctors.update(tenant, existing(tenant.doctors.get(id), "doctor"), **changes)
        )

    def update_patient(
        self, id: str, /, *, opted_out: bool | NotGiven = NOT_GIVEN, stage: PatientStage | NotGiven = NOT_GIVEN
    ) -> Patient:
        """Update the fields of a patient that only the service changes. Omitted fields stay unchanged.

        Args:
            id: of the patient.
            opted_out: whether the patient wants no messages.
            stage: where the patient is in the follow-up.

        Raises:
            ServiceError: there is no such patient.
            ValueError: an invalid argument; the message names it.
        """
        changes = passed(opted_out=opted_out, stage=stage)
        _check(changes, _PATIENT)

        def change(tenant: Tenant) -> Patient:
            patient = existing(tenant.patients.get(id), "patient")
            return patients.mark(tenant, patient, **changes)

        return self._change(change)

    def answer_intake_request(
        self,
        id: str,
        /,
        *,
        patient: PatientInput | None = None,
        contacts: Iterable[ContactInput] | None = None,
        coverage: CoverageInput | None = None,
        address: str | None = None,
        requested_service: str | None = None,
        summary: str | None = None,
        hospitalized: bool | None = None,
        sender: SenderInput | None = None,
    ) -> IntakeRequest:
        """Let the patient answer an intake request with data, in the shape of ``intake_requests.create``.

        Raises:
            ServiceError: there is no such intake request, or it is closed.
            TypeError: an argument of the wrong type, as in ``intake_requests.create``.
            ValueError: an invalid argument; the message names it.
        """
        arguments = {
            "patient": patient,
            "contacts": contacts,
            "coverage": coverage,
            "address": address,
            "requested_service": requested_service,
            "summary": summary,
            "hospitalized": hospitalized,
            "sender": sender,
        }
        answers = _encoded({name: value for name, value in arguments.items() if value is not None})
        return self._change(lambda tenant: intake_requests.answer(tenant, _intake(tenant, id), **answers))

    def load_intake_request(self, id: str, /) -> IntakeRequest:
        """Let the organization load an intake request that is ready into its own system.

        Raises:
            ServiceError: there is no such intake request, or it is not ready.
        """
        return self._change(lambda tenant: intake_requests.load(tenant, _intake(tenant, id)))

    def discard_intake_request(self, id: str, /, *, reason: str | None = None) -> IntakeRequest:
        """Let the organization discard an intake request.

        Raises:
            ServiceError: there is no such intake request, or it is closed.
        """
        return self._change(lambda tenant: intake_requests.discard(tenant, _intake(tenant, id), reason=reason))

    def trigger(self, type: OutboundEventType, *, data: Mapping[str, Any] | None = None) -> list[WebhookDelivery]:
        """Send an outbound webhook of any type to the endpoints that are subscribed to it.

        Args:
            type: one of the 13 outbound types.
            data: of the event, as JSON has it; by default about the newest object that fits, or an example.

        Returns:
            The delivery to each endpoint.

        Raises:
            ValueError: an invalid argument; the message names it.
        """
        choice(examples.EXAMPLES)("type", type)
        own = None if data is None else _json_copy(data)

        def send(tenant: Tenant) -> list[WebhookDelivery]:
            sent, ref = (own, "trigger") if own is not None else examples.about_newest(tenant, type)
            return deliveries.send_to_subscribers(tenant, type, sent, ref)

        return self._change(send)

    def resend(self, id: str, /) -> WebhookDelivery:
        """Make one more attempt of a delivery now, whatever its status.

        Args:
            id: of the delivery.

        Returns:
            The delivery after the attempt.

        Raises:
            ServiceError: there is no such delivery, or its endpoint is disabled.
        """
        tenant = self._tenant
        with tenant.lock:
            delivery = existing(tenant.webhook_deliveries.get(id), "webhook delivery")
        self._engine.resend(tenant, id)
        with tenant.lock:
            return copied(delivery)


def _check(arguments: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    for argument, value in arguments.items():
        checks[argument](argument, value)


def _encoded(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Encode answers as the SDK does, which checks and copies them, and drops nested keys that are None."""
    sent = {name: _INTAKE_PARAMETERS[name].encode(value, name) for name, value in answers.items()}
    return {name: shape_of(_INTAKE_PARAMETERS[name].annotation).convert(value) for name, value in sent.items()}


def _intake(tenant: Tenant, id: str) -> IntakeRequest:
    return existing(tenant.intake_requests.get(id), "intake request")


def _json_copy(data: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        text.encode()  # a lone surrogate can be dumped, and not sent
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument("data", "what JSON can express") from None
    decoded: Mapping[str, Any] = json.loads(text)
    return decoded
