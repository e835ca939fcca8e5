"""Intake requests (specification, sections 3 and 4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from followup import IntakeRequest, Patient, PatientInput
from followup._for_mockserver import IDENTIFYING, IntakeRequests, camel
from followup_mockserver.rules import patients
from followup_mockserver.rules.patients import normalized_phone
from followup_mockserver.rules.reminders import NO_PHONE, OPTED_OUT, texts_of, write
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.schema.shapes import shape_of
from followup_mockserver.world.schema.validation import LENIENT
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

Data = dict[str, Any]

_PATIENT = shape_of(PatientInput)
_TO_WIRE = {parameter.name: parameter for parameter in IntakeRequests.create.parameters}


def create(tenant: Tenant, **fields: Any) -> IntakeRequest:
    """Create an intake request, identify its patient, and determine which data is missing."""
    data = _checked(tenant, fields)
    if not any(each and each.strip() for each in _identifying_values(data)):
        raise invalid("parameter_missing", "Pass a name, document or phone of the patient or of a contact.", "patient")
    now = tenant.at
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
    # First, because the webhooks contain the request as it is after the check (docs/open-points.md).
    ready = _becomes_ready(tenant, intake)
    for event_type in ("intake.requested", "intake.created", *(("intake.ready",) if ready else ())):
        _publish(tenant, event_type, intake)
    _schedule_question(tenant, intake)
    return intake


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Reassess open requests after a change of a patient: they may now be complete, or have a phone to write to."""
    if event.type == "patient.upserted":
        for intake in tenant.intake_requests.find_all("patient", event.subject.id):
            _assess(tenant, intake)
    elif event.type == patients.SERVICE_FIELDS_CHANGED:
        # Not only the patient's own requests: the patient may also be a contact in the requests of others.
        for intake in tenant.intake_requests.find_all("status", "new"):
            if event.subject.phone is not None and _phone_to_ask(tenant, intake) == event.subject.phone:
                _ask_if_possible(tenant, intake)


def answer(tenant: Tenant, intake: IntakeRequest, **fields: Any) -> IntakeRequest:
    """Merge the answer of the patient or of a contact, in the shape of the creation body, into the request."""
    _require_open(intake, "answered")
    data = _merged(intake.data, _checked(tenant, fields))
    tenant.intake_requests.update(
        intake,
        data=data,
        summary=data.get("summary"),
        patient=intake.patient or _identified(tenant, data),
        updated_at=tenant.at,
    )
    if (patient := _patient_of(tenant, intake)) is not None:
        patients.fill(tenant, patient, _patient_details(data))
    _assess(tenant, intake)
    return intake


def load(tenant: Tenant, intake: IntakeRequest) -> IntakeRequest:
    """Mark a request that is ready as loaded into the organization's own system."""
    if intake.status != "ready":
        raise invalid("intake_request_not_loadable", "Only an intake request that is ready can be loaded.")
    now = tenant.at
    tenant.intake_requests.update(intake, status="loaded", loaded_at=now, closed_at=now, updated_at=now)
    return intake


def discard(tenant: Tenant, intake: IntakeRequest, *, reason: str | None = None) -> IntakeRequest:
    """Discard a request that has not been loaded."""
    _require_open(intake, "discarded")
    now = tenant.at
    tenant.intake_requests.update(intake, status="discarded", discard_reason=reason, closed_at=now, updated_at=now)
    tenant.cancel_jobs(intake.id, Outcome(Kind.DISCARDED))
    return intake


def _schedule_question(tenant: Tenant, intake: IntakeRequest) -> None:
    """Schedule a message that asks for the missing data, unless the organization has turned these messages off."""
    if tenant.organization.intake_messages and intake.status == "new" and intake.missing:
        tenant.schedule(tenant.at, Job("intake", intake.id))


def _ask_if_possible(tenant: Tenant, intake: IntakeRequest) -> None:
    """Schedule the message if none is pending and the recipient can be written to."""
    if not tenant.scheduler.pending(about=intake.id) and obstacle_to_question(tenant, intake) is None:
        _schedule_question(tenant, intake)


def ask(tenant: Tenant, job: Job) -> Outcome:
    """Send the message, and set the status of the request to ``validating``. Return the outcome of the job."""
    intake = tenant.intake_requests.get(job.about)
    assert intake is not None  # intake requests are never removed
    if (obstacle := obstacle_to_question(tenant, intake)) is not None:
        return obstacle
    tenant.intake_requests.update(intake, status="validating", updated_at=tenant.at)
    patient, phone, texts = _patient_of(tenant, intake), _phone_to_ask(tenant, intake), texts_of(tenant)
    missing = ", ".join(texts.get(name, name) for name in intake.missing)
    return write(tenant, patient, phone, "intake", intake.id, missing=missing)


def obstacle_to_question(tenant: Tenant, intake: IntakeRequest) -> Outcome | None:
    """Return the outcome of a message that cannot be sent as things stand; None if it can be sent."""
    if intake.status != "new":  # in a snapshot that was edited; the rules cancel the message
        return Outcome(Kind.CLOSED)
    patient = _patient_of(tenant, intake)
    if patient is not None and patient.opted_out:
        return OPTED_OUT
    phone = _phone_to_ask(tenant, intake)
    if phone is None:
        return NO_PHONE
    # The phone of a contact may be that of a patient who wants no messages.
    owner = tenant.patients.find("phone", phone)
    return OPTED_OUT if owner is not None and owner.opted_out else None


def _phone_to_ask(tenant: Tenant, intake: IntakeRequest) -> str | None:
    """Return the phone to send the message to: the patient's, or that of the first contact who has one."""
    patient, people = _patient_of(tenant, intake), [intake.data.get("patient", {}), *intake.data.get("contacts", ())]
    if patient is not None and patient.phone:
        return patient.phone
    return next((each["phone"] for each in people if each.get("phone")), None)


def _patient_of(tenant: Tenant, intake: IntakeRequest) -> Patient | None:
    """Return the patient of a request; None until the patient is identified."""
    return tenant.patients.get(intake.patient) if intake.patient else None


def _require_open(intake: IntakeRequest, action: str) -> None:
    if intake.status in ("loaded", "discarded"):
        raise invalid("intake_request_closed", f"An intake request that is {intake.status} cannot be {action}.")


def _checked(tenant: Tenant, fields: Mapping[str, Any]) -> Data:
    """Return the fields by their wire names, with normalized phones and documents."""
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
    """Return the old data updated with the new: objects are merged recursively, other values are replaced."""
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        merged[name] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _identifying_values(data: Data) -> Iterator[Any]:
    patient = data.get("patient", {})
    yield from (patient.get(camel(name)) for name in IDENTIFYING["patient"])
    for contact in data.get("contacts", ()):
        yield from (contact.get(camel(name)) for name in IDENTIFYING["contacts"])


def _patient_details(data: Data) -> PatientInput:
    details: PatientInput = _PATIENT.argument_of(data.get("patient", {}), LENIENT)
    return details


def _identified(tenant: Tenant, data: Data) -> str | None:
    """Return the id of the patient, who is found by phone or DNI, or created; None without phone and DNI."""
    details = _patient_details(data)
    return patients.save(tenant, details).id if "phone" in details or "dni" in details else None


def _assess(tenant: Tenant, intake: IntakeRequest) -> None:
    """Determine which data an open request is missing: it becomes ready, or a question may be scheduled."""
    if intake.status not in ("new", "validating"):
        return
    if _becomes_ready(tenant, intake):
        tenant.cancel_jobs(intake.id, Outcome(Kind.COMPLETED))
        _publish(tenant, "intake.ready", intake)
    else:
        _ask_if_possible(tenant, intake)


def _becomes_ready(tenant: Tenant, intake: IntakeRequest) -> bool:
    """Update the missing data of an open request, and its status if it is ready. Return whether it is."""
    missing = [name for name in tenant.organization.intake_required if not _has(tenant, intake, name)]
    now = tenant.at
    if missing != intake.missing:
        tenant.intake_requests.update(intake, missing=missing, updated_at=now)
    if not missing:
        tenant.intake_requests.update(intake, status="ready", ready_at=now, updated_at=now)
    return not missing


_PATIENT_FIELDS = {"fullName": "full_name", "dni": "dni"}


def _has(tenant: Tenant, intake: IntakeRequest, name: str) -> bool:
    """Return whether a request has a datum, in its own data or in the record of its patient."""
    if name == "phone":
        return _phone_to_ask(tenant, intake) is not None
    if name in _PATIENT_FIELDS:
        patient = _patient_of(tenant, intake)
        on_record = patient is not None and getattr(patient, _PATIENT_FIELDS[name]) is not None
        return on_record or bool(intake.data.get("patient", {}).get(name))
    value: Any = intake.data
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value not in (None, "")


def _publish(tenant: Tenant, type: str, intake: IntakeRequest) -> None:
    missing = tuple(intake.missing)
    change = Outcome(Kind.INCOMPLETE, intake.status, names=missing) if missing else None
    tenant.publish(type, intake, _patient_of(tenant, intake), change=change)
