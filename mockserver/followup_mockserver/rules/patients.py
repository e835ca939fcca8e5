"""Patients, references to them, their phones, documents and conversations (specification, sections 2, 4 and 6.2).

The stage of a patient changes with appointments, visits and time (section 3).
"""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast
from unicodedata import category

from followup import Appointment, Patient, PatientInput, Visit
from followup._for_mockserver import camel, phones
from followup_mockserver.rules import page
from followup_mockserver.world.outcomes import Kind, Outcome, other
from followup_mockserver.world.schema.errors import invalid, missing
from followup_mockserver.world.state.clock import Job, JobKind
from followup_mockserver.world.state.collection import PageResult
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

_MEXICAN_PREFIX = "1"
"""It is still used by messaging apps."""


def normalized_phone(tenant: Tenant, phone: str, param: str) -> str:
    """Return a phone number in E.164. Without a country code, it is a number of the organization's country.

    Raises:
        ServiceError: 400: it is not a possible phone number, or has more than E.164 can express, such as an extension.
    """
    found = _e164(phone, tenant.organization.country, tenant.organization.mobiles)
    if found is None:
        raise invalid("parameter_invalid", "This must be a valid phone number, with its area code.", param)
    return found


@functools.lru_cache(4096)  # to parse a number takes a sixth of a call, and most calls of a test send the same few
def _e164(phone: str, country: str, mobiles: str) -> str | None:
    number = phones.possible_number(phone, country, _MEXICAN_PREFIX)
    if number is None:
        return None
    if mobiles == "assume":
        phones.make_mobile(number)
    return phones.e164(number)


def normalized_dni(dni: str, param: str) -> str:
    """Return a document in upper case, without dots, white space and invisible characters (Unicode category Cf).

    Raises:
        ServiceError: 400: the document has no other characters.
    """
    # What is copied from a PDF or a web page has soft hyphens and zero-width marks (Cf), which nobody sees.
    bare = "".join(each for each in dni if not (each == "." or each.isspace() or category(each) == "Cf")).upper()
    if not bare:
        raise invalid("parameter_invalid", "This must be a document number.", param)
    return bare


FoundBy = tuple[str, ...]

BY_PHONE_OR_DNI: FoundBy = ("phone", "dni")
"""The fields that identify a patient in a request (specification, section 4, Patients)."""

IN_EVENTS: FoundBy = ("phone", "dni", "external_id")
"""The fields that identify the patient of an inbound event (specification, section 6.1)."""

SERVICE_FIELDS_CHANGED = "patient.service_fields_changed"
"""Type of the internal event of ``set_service_fields``. No webhook carries it."""

OPTED_OUT = "opted out"
"""What this event says of a patient who does not want messages any more."""


def create(tenant: Tenant, **details: Any) -> Patient:
    """Find a patient by phone, then by DNI, and fill in missing fields; create the patient if there is none."""
    return save(tenant, normalized(tenant, cast("PatientInput", details), ""))


def update(tenant: Tenant, patient: Patient, **changes: Any) -> Patient:
    """Update a patient. Omitted fields stay unchanged."""
    if changes.get("dni") is not None:
        changes["dni"] = normalized_dni(changes["dni"], "dni")
    _change(tenant, patient, changes)
    return patient


def list_(tenant: Tenant, **query: Any) -> PageResult[Patient]:
    """Return a page of patients, most recently created first."""
    found = normalized(tenant, cast("PatientInput", query), "")
    return page(tenant.patients, found, where=("phone", "dni", "external_id"))


def normalized(tenant: Tenant, details: PatientInput, path: str) -> PatientInput:
    """Return details with a normalized phone and document. Errors name fields under ``path`` in the request."""
    prefix = f"{path}." if path else ""
    result = details.copy()
    if (phone := details.get("phone")) is not None:
        result["phone"] = normalized_phone(tenant, phone, f"{prefix}phone")
    if (dni := details.get("dni")) is not None:
        result["dni"] = normalized_dni(dni, f"{prefix}dni")
    return result


def save(tenant: Tenant, details: PatientInput) -> Patient:
    """Find the patient whom normalized details identify and fill in missing fields, or create the patient."""
    patient = tenant.patients.find_first(details, BY_PHONE_OR_DNI)
    if patient is None:
        return add(tenant, details)
    fill(tenant, patient, details)
    return patient


def add(tenant: Tenant, details: PatientInput) -> Patient:
    """Create a patient from normalized details."""
    now = tenant.at
    patient = Patient(
        id=tenant.ids.new("pat_"),
        object="patient",
        stage="pending_follow_up",
        opted_out=False,
        created_at=now,
        updated_at=now,
        **cast("dict[str, Any]", details),
    )
    tenant.patients.add(patient)
    _publish(tenant, patient, other("created"))
    return patient


def fill(tenant: Tenant, patient: Patient, details: PatientInput) -> None:
    """Set the missing fields of a patient. Existing values are not overwritten."""
    _change(tenant, patient, {name: value for name, value in details.items() if getattr(patient, name) is None})


def overwrite(tenant: Tenant, patient: Patient, details: PatientInput) -> None:
    """Update a patient with normalized details. An existing phone is not overwritten."""
    keep_phone = patient.phone is not None
    _change(tenant, patient, {name: value for name, value in details.items() if name != "phone" or not keep_phone})


class PatientReference:
    """A validated reference to a patient.

    ``resolve`` cannot fail. A rule calls it after all its other checks, so that a rejected request creates no patient.

    Attributes:
        patient: the patient, if there is one already.

    Args:
        tenant: the organization.
        reference: id of a patient, or an object with identifying fields.
        found_by: the fields of an object that identify a patient; without phone and DNI it is always the external id.

    Raises:
        ServiceError: 400: there is no such patient, and the reference lacks the phone or DNI to create one.
    """

    def __init__(self, tenant: Tenant, reference: str | PatientInput, found_by: FoundBy = BY_PHONE_OR_DNI) -> None:
        self._tenant = tenant
        self._details = PatientInput()
        if isinstance(reference, str):
            self.patient = tenant.patients.get(reference)
            if self.patient is None:
                raise missing("patient", status=400, param="patient")
            return
        if reference.keys().isdisjoint(IN_EVENTS):
            raise invalid("parameter_missing", "A patient needs a phone, dni or externalId.", "patient.phone")
        self._details = normalized(tenant, reference, "patient")
        creatable = "phone" in reference or "dni" in reference
        self.patient = tenant.patients.find_first(self._details, found_by if creatable else ("external_id",))
        if self.patient is None and not creatable:
            raise missing("patient; pass a phone or a DNI to create one", status=400, param="patient.externalId")

    def resolve(self, change: Callable[[Tenant, Patient, PatientInput], None] = fill) -> Patient:
        """Return the patient: created, or changed; by default, missing fields are filled in."""
        if self.patient is None:
            return add(self._tenant, self._details)
        change(self._tenant, self.patient, self._details)
        return self.patient


def set_service_fields(tenant: Tenant, patient: Patient, **changes: Any) -> Patient:
    """Set fields that the service alone can change: ``stage`` and ``opted_out``."""
    changed = [name for name, value in changes.items() if getattr(patient, name) != value]
    if changed:
        tenant.patients.update(patient, **changes, updated_at=tenant.at)
        change = ", ".join(_service_field(patient, name) for name in changed)
        _publish(tenant, patient, other(change), type=SERVICE_FIELDS_CHANGED)
    return patient


def _service_field(patient: Patient, name: str) -> str:
    if name == "stage":
        return f"stage {patient.stage}"
    return OPTED_OUT if patient.opted_out else "opted in"


def _change(tenant: Tenant, patient: Patient, changes: Any) -> None:
    changed = [name for name, value in changes.items() if getattr(patient, name) != value]
    if changed:
        tenant.patients.update(patient, **changes, updated_at=tenant.at)
        _publish(tenant, patient, Outcome(Kind.CHANGED, names=tuple(map(camel, changed))))


def _publish(tenant: Tenant, patient: Patient, change: Outcome, type: str = "patient.upserted", **details: Any) -> None:
    tenant.publish(type, patient, patient, change=change, details=details)


_NOT_LOST = ("scheduled", "discharged")
"""Stages that silence does not change: the patient is expected at an appointment, or nobody waits for a reply."""


def reply(tenant: Tenant, patient: Patient) -> Patient:
    """Receive a reply of the patient, which begins or continues a conversation."""
    _require_phone(patient)
    return set_service_fields(tenant, patient, stage="in_conversation")


def fall_silent(tenant: Tenant, patient: Patient) -> Patient:
    """Note that the patient stopped answering: lost to follow-up, unless an appointment is ahead."""
    _require_phone(patient)
    if patient.stage not in _NOT_LOST:
        set_service_fields(tenant, patient, stage="lost")
    _publish(tenant, patient, other("silent"), type="patient.silent")
    return patient


def hand_off(tenant: Tenant, patient: Patient, *, reason: str | None = None) -> Patient:
    """Hand the conversation with the patient off to the team."""
    reply(tenant, patient)
    change = other("handed off to the team")
    _publish(tenant, patient, change, type="conversation.handoff", conversation={"reason": reason})
    return patient


def _require_phone(patient: Patient) -> None:
    if patient.phone is None:
        raise invalid("patient_without_phone", "A patient without a phone has no conversation with the service.")


_PASSED = timedelta(milliseconds=1)
"""The resolution of the mock's clock: an appointment is over this long after its start."""

UPCOMING = ("confirmed", "pending", "rescheduled")
"""Statuses of an appointment that is expected to take place."""


def patient_about(tenant: Tenant, about: Appointment | Visit) -> Patient:
    """Return the patient of an appointment or a visit."""
    patient = tenant.patients.get(about.patient)
    assert patient is not None  # patients are never removed
    return patient


def refresh_stage(tenant: Tenant, patient: Patient) -> None:
    """Recompute the stage from the upcoming appointments and the visits."""
    now = tenant.at
    has_upcoming = any(
        appointment.status in UPCOMING and appointment.start_at >= now
        for appointment in tenant.appointments.find_all("patient", patient.id)
    )
    if has_upcoming:
        stage = "scheduled"
    else:
        stage = "periodic_follow_up" if tenant.visits.find("patient", patient.id) else "pending_follow_up"
    # Without an event: the stage is the service's own mark, and no fact about the patient (docs/open-points.md).
    if stage != patient.stage:
        tenant.patients.update(patient, stage=stage, updated_at=now)


def follows_appointment(
    kind: JobKind, schedule: Callable[[Tenant, Appointment], None]
) -> Callable[[Tenant, DomainEvent], None]:
    """Return a subscriber that keeps the jobs of an appointment up to date.

    Args:
        kind: the kind of the jobs.
        schedule: schedules the jobs of an appointment.
    """

    def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
        if event.type == "appointment.created":
            schedule(tenant, event.subject)
        elif event.type == "appointment.rescheduled":
            moved = Outcome(Kind.APPOINTMENT_MOVED, at=event.subject.start_at)
            tenant.cancel_jobs(event.subject.id, moved, kind)
            schedule(tenant, event.subject)
        elif event.type == "appointment.cancelled":
            tenant.cancel_jobs(event.subject.id, Outcome(Kind.APPOINTMENT_CANCELLED), kind)
        elif event.type == "visit.completed" and event.subject.appointment is not None:
            tenant.cancel_jobs(event.subject.appointment, Outcome(Kind.VISITED), kind)

    return on_domain_event


def recompute_stage(tenant: Tenant, job: Job) -> Outcome:
    """Recompute the stage after the time of an appointment. Return the outcome of the job: the stage."""
    appointment = tenant.appointments.get(job.about)
    assert appointment is not None  # appointments are never removed
    patient = patient_about(tenant, appointment)
    refresh_stage(tenant, patient)
    return other(patient.stage)


def _schedule_stage(tenant: Tenant, appointment: Appointment) -> None:
    if appointment.start_at >= tenant.at:
        tenant.schedule(appointment.start_at + _PASSED, Job("stage", appointment.id))


keep_stage: Callable[[Tenant, DomainEvent], None] = follows_appointment("stage", _schedule_stage)
