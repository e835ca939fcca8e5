"""Intake requests (specification, sections 3 and 4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from followup import IntakeRequest, PatientInput
from followup._for_mockserver import IntakeRequests
from followup_mockserver.rules import patients, questions
from followup_mockserver.rules.paging import page
from followup_mockserver.rules.phones import normalized_phone
from followup_mockserver.rules.questions import record_of
from followup_mockserver.schema.errors import invalid
from followup_mockserver.schema.shapes import shape_of
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.tenant import Tenant

Data = dict[str, Any]

_PATIENT = shape_of(PatientInput)
_TO_WIRE = {parameter.name: parameter for parameter in IntakeRequests.create.parameters}


def create(tenant: Tenant, **fields: Any) -> IntakeRequest:
    """Register a request, identify its patient, and see what is missing."""
    data = _checked(tenant, fields)
    if not any(_identifying(data)):
        raise invalid(
            "parameter_missing", "A name, document or phone of the patient or of a contact is needed.", "patient"
        )
    now = tenant.now()
    intake = IntakeRequest(
        id=tenant.ids.new("int_"),
        object="intake_request",
        status="new",
        patient=_identified(tenant, data),
        summary=data.get("summary"),
        missing=[],
        data=data,
        created_at=now,
        updated_at=now,
    )
    tenant.intake_requests.add(intake)
    ready = _becomes_ready(tenant, intake)
    for event_type in ("intake.requested", "intake.created", *(("intake.ready",) if ready else ())):
        _publish(tenant, event_type, intake)
    questions.ask_soon(tenant, intake)
    return intake


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """What becomes known of a patient may complete an open request of theirs, or tell whom to ask."""
    if event.type == "patient.upserted":
        for intake in tenant.intake_requests.find_all("patient", event.subject.id):
            _assess(tenant, intake)
    elif event.type == patients.MARKED:
        # Not the patient's own requests alone: as a contact of others' they may be asked again too.
        for intake in tenant.intake_requests.find_all("status", "new"):
            if event.subject.phone is not None and questions.phone_to_ask(tenant, intake) == event.subject.phone:
                questions.ask_if_possible(tenant, intake)


def list_(tenant: Tenant, **query: Any) -> PageResult[IntakeRequest]:
    """A page of intake requests."""
    return page(tenant.intake_requests, query, where=("status", "patient"))


def answer(tenant: Tenant, intake: IntakeRequest, **fields: Any) -> IntakeRequest:
    """The patient, or a contact, answers with data in the shape of the creation body."""
    _refuse_closed(intake, "answered")
    data = _merged(intake.data, _checked(tenant, fields))
    tenant.intake_requests.update(
        intake,
        data=data,
        summary=data.get("summary"),
        patient=intake.patient or _identified(tenant, data),
        updated_at=tenant.now(),
    )
    if (patient := record_of(tenant, intake)) is not None:
        patients.fill(tenant, patient, _patient_details(data))
    _assess(tenant, intake)
    return intake


def load(tenant: Tenant, intake: IntakeRequest) -> IntakeRequest:
    """The organization loads a request that is ready into its own system."""
    if intake.status != "ready":
        raise invalid("intake_request_not_loadable", "Only an intake request that is ready can be loaded.")
    now = tenant.now()
    tenant.intake_requests.update(intake, status="loaded", loaded_at=now, closed_at=now, updated_at=now)
    return intake


def discard(tenant: Tenant, intake: IntakeRequest, *, reason: str | None = None) -> IntakeRequest:
    """The organization discards a request that it has not loaded."""
    _refuse_closed(intake, "discarded")
    now = tenant.now()
    tenant.intake_requests.update(intake, status="discarded", discard_reason=reason, closed_at=now, updated_at=now)
    tenant.scheduler.cancel_about(intake.id)
    return intake


def _refuse_closed(intake: IntakeRequest, what: str) -> None:
    if intake.status in ("loaded", "discarded"):
        raise invalid("intake_request_closed", f"An intake request that is {intake.status} cannot be {what}.")


def _checked(tenant: Tenant, fields: Mapping[str, Any]) -> Data:
    """The fields by their names on the wire, with phones and documents as they are compared."""
    checked = dict(fields)
    if "patient" in checked:
        checked["patient"] = patients.normalized(tenant, checked["patient"], "patient")
    if "contacts" in checked:
        checked["contacts"] = [
            {**contact, "phone": normalized_phone(tenant, contact["phone"], f"contacts[{position}].phone")}
            if "phone" in contact
            else contact
            for position, contact in enumerate(checked["contacts"])
        ]
    return {_TO_WIRE[name].wire_name: _TO_WIRE[name].encode(value, name) for name, value in checked.items()}


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Data:
    """New data over old; objects field by field, everything else as a whole."""
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        merged[name] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _identifying(data: Data) -> Iterator[Any]:
    patient = data.get("patient", {})
    yield from (patient.get(name) for name in ("fullName", "dni", "phone"))
    for contact in data.get("contacts", ()):
        yield from (contact.get(name) for name in ("name", "phone"))


def _patient_details(data: Data) -> PatientInput:
    details: PatientInput = _PATIENT.convert(data.get("patient", {}))
    return details


def _identified(tenant: Tenant, data: Data) -> str | None:
    """The id of the patient, who is looked up by phone, then by DNI, and created if absent."""
    details = _patient_details(data)
    return patients.save(tenant, details).id if "phone" in details or "dni" in details else None


def _assess(tenant: Tenant, intake: IntakeRequest) -> None:
    """See what an open request is missing; one that lacks nothing is ready, of another the service may ask."""
    if intake.status not in ("new", "validating"):
        return
    if _becomes_ready(tenant, intake):
        tenant.scheduler.cancel_about(intake.id)
        _publish(tenant, "intake.ready", intake)
    else:
        questions.ask_if_possible(tenant, intake)


def _becomes_ready(tenant: Tenant, intake: IntakeRequest) -> bool:
    """Write down what an open request is missing, and whether it is ready with that."""
    missing = [name for name in tenant.organization.intake_required if not _has(tenant, intake, name)]
    now = tenant.now()
    if missing != intake.missing:
        tenant.intake_requests.update(intake, missing=missing, updated_at=now)
    if not missing:
        tenant.intake_requests.update(intake, status="ready", ready_at=now, updated_at=now)
    return not missing


_IN_THE_RECORD = {"fullName": "full_name", "dni": "dni"}


def _has(tenant: Tenant, intake: IntakeRequest, name: str) -> bool:
    """Whether the request has this datum, in its own data or in the record of its patient."""
    if name == "phone":
        return questions.phone_to_ask(tenant, intake) is not None
    if name in _IN_THE_RECORD:
        patient = record_of(tenant, intake)
        in_record = patient is not None and getattr(patient, _IN_THE_RECORD[name]) is not None
        return in_record or bool(intake.data.get("patient", {}).get(name))
    value: Any = intake.data
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value not in (None, "")


def _publish(tenant: Tenant, type: str, intake: IntakeRequest) -> None:
    tenant.publish(DomainEvent(type=type, name="intakeRequest", subject=intake, patient=record_of(tenant, intake)))
