"""Patients (specification, section 4, Patients)."""

from typing import Any, cast

from followup import Patient, PatientInput
from followup_mockserver.rules.paging import page
from followup_mockserver.rules.phones import normalized_dni, normalized_phone
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.tenant import Tenant

FoundBy = tuple[str, ...]

BY_PHONE_OR_DNI: FoundBy = ("phone", "dni")
"""How a patient is found who may be created (specification, section 4, Patients)."""

BY_EXTERNAL_ID: FoundBy = ("external_id",)
"""How a patient is found of whom neither phone nor DNI is known."""

IN_EVENTS: FoundBy = ("phone", "dni", "external_id")
"""How the patient of an inbound event is found (specification, section 6.1)."""

MARKED = "patient.marked"
"""What happened when a mark of the service's own changed: nothing that a webhook would carry."""


def create(tenant: Tenant, **details: Any) -> Patient:
    """Find a patient by phone, then by DNI, and fill in what was missing; create one if there is none."""
    return save(tenant, normalized(tenant, cast("PatientInput", details), ""))


def update(tenant: Tenant, patient: Patient, **changes: Any) -> Patient:
    """Change the fields that were sent."""
    if changes.get("dni") is not None:
        changes["dni"] = normalized_dni(changes["dni"], "dni")
    _change(tenant, patient, changes)
    return patient


def list_(tenant: Tenant, **query: Any) -> PageResult[Patient]:
    """A page of patients."""
    if "phone" in query:
        query["phone"] = normalized_phone(tenant, query["phone"], "phone")
    if "dni" in query:
        query["dni"] = normalized_dni(query["dni"], "dni")
    return page(tenant.patients, query, where=("phone", "dni", "external_id"))


def normalized(tenant: Tenant, details: PatientInput, path: str) -> PatientInput:
    """The details with phone and document as they are compared; ``path`` is where they stand in the request."""
    prefix = f"{path}." if path else ""
    result = details.copy()
    if (phone := details.get("phone")) is not None:
        result["phone"] = normalized_phone(tenant, phone, f"{prefix}phone")
    if (dni := details.get("dni")) is not None:
        result["dni"] = normalized_dni(dni, f"{prefix}dni")
    return result


def find(tenant: Tenant, details: PatientInput, found_by: FoundBy) -> Patient | None:
    """The patient whom these normalized details identify: the first match decides."""
    for name, value in ((name, cast("dict[str, str]", details).get(name)) for name in found_by):
        if value is not None and (patient := tenant.patients.find(name, value)):
            return patient
    return None


def save(tenant: Tenant, details: PatientInput) -> Patient:
    """The patient of these normalized details: found, with what was missing filled in, or created."""
    patient = find(tenant, details, BY_PHONE_OR_DNI)
    if patient is None:
        return add(tenant, details)
    fill(tenant, patient, details)
    return patient


def add(tenant: Tenant, details: PatientInput) -> Patient:
    """Create a patient of these normalized details."""
    now = tenant.now()
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
    _publish(tenant, patient)
    return patient


def fill(tenant: Tenant, patient: Patient, details: PatientInput) -> None:
    """Add to a patient what was missing; nothing that is there is overwritten."""
    _change(tenant, patient, {name: value for name, value in details.items() if getattr(patient, name) is None})


def overwrite(tenant: Tenant, patient: Patient, details: PatientInput) -> None:
    """Change a patient to these normalized details; a phone that is there stays."""
    keep_phone = patient.phone is not None
    _change(tenant, patient, {name: value for name, value in details.items() if name != "phone" or not keep_phone})


def mark(tenant: Tenant, patient: Patient, **marks: Any) -> Patient:
    """Set what the service notes of a patient by itself: the stage, and whether they want messages."""
    if any(getattr(patient, name) != value for name, value in marks.items()):
        tenant.patients.update(patient, **marks, updated_at=tenant.now())
        tenant.publish(DomainEvent(type=MARKED, name="patient", subject=patient, patient=patient))
    return patient


def _change(tenant: Tenant, patient: Patient, changes: Any) -> None:
    if any(getattr(patient, name) != value for name, value in changes.items()):
        tenant.patients.update(patient, **changes, updated_at=tenant.now())
        _publish(tenant, patient)


def _publish(tenant: Tenant, patient: Patient) -> None:
    tenant.publish(DomainEvent(type="patient.upserted", name="patient", subject=patient, patient=patient))
