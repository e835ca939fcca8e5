"""Patients (specification, section 4, Patients)."""

from typing import Any, cast

from followup import Patient
from followup.resources.patients import PatientInput
from followup_mockserver.rules.paging import Listed, page
from followup_mockserver.rules.phones import normalized_dni, normalized_phone
from followup_mockserver.state.domain_events import Fact
from followup_mockserver.state.tenant import World

FoundBy = tuple[str, ...]

BY_PHONE_OR_DNI: FoundBy = ("phone", "dni")
"""How a patient is found who may be created (specification, section 4, Patients)."""

BY_EXTERNAL_ID: FoundBy = ("external_id",)
"""How a patient is found of whom neither phone nor DNI is known."""

IN_EVENTS: FoundBy = ("phone", "dni", "external_id")
"""How the patient of an inbound event is found (specification, section 6.1)."""

MARKED = "patient.marked"
"""What happened when a mark of the service's own changed: nothing that a webhook would carry."""


def create(world: World, **details: Any) -> Patient:
    """Find a patient by phone, then by DNI, and fill in what was missing; create one if there is none."""
    return save(world, normalized(world, cast("PatientInput", details), ""))


def update(world: World, patient: Patient, **changes: Any) -> Patient:
    """Change the fields that were sent."""
    if changes.get("dni") is not None:
        changes["dni"] = normalized_dni(changes["dni"], "dni")
    _change(world, patient, changes)
    return patient


def list_(world: World, **query: Any) -> Listed[Patient]:
    """A page of patients."""
    if "phone" in query:
        query["phone"] = normalized_phone(world, query["phone"], "phone")
    if "dni" in query:
        query["dni"] = normalized_dni(query["dni"], "dni")
    return page(world.patients, query, where=("phone", "dni", "external_id"))


def normalized(world: World, details: PatientInput, path: str) -> PatientInput:
    """The details with phone and document as they are compared; ``path`` is where they stand in the request."""
    prefix = f"{path}." if path else ""
    result = details.copy()
    if (phone := details.get("phone")) is not None:
        result["phone"] = normalized_phone(world, phone, f"{prefix}phone")
    if (dni := details.get("dni")) is not None:
        result["dni"] = normalized_dni(dni, f"{prefix}dni")
    return result


def find(world: World, details: PatientInput, found_by: FoundBy) -> Patient | None:
    """The patient whom these normalized details identify: the first match decides."""
    for name, value in ((name, cast("dict[str, str]", details).get(name)) for name in found_by):
        if value is not None and (patient := world.patients.find(name, value)):
            return patient
    return None


def save(world: World, details: PatientInput) -> Patient:
    """The patient of these normalized details: found, with what was missing filled in, or created."""
    patient = find(world, details, BY_PHONE_OR_DNI)
    if patient is None:
        return add(world, details)
    fill(world, patient, details)
    return patient


def add(world: World, details: PatientInput) -> Patient:
    """Create a patient of these normalized details."""
    now = world.now()
    patient = Patient(
        id=world.ids.new("pat_"),
        object="patient",
        stage="pending_follow_up",
        opted_out=False,
        created_at=now,
        updated_at=now,
        **cast("dict[str, Any]", details),
    )
    world.patients.add(patient)
    _publish(world, patient)
    return patient


def fill(world: World, patient: Patient, details: PatientInput) -> None:
    """Add to a patient what was missing; nothing that is there is overwritten."""
    _change(world, patient, {name: value for name, value in details.items() if getattr(patient, name) is None})


def overwrite(world: World, patient: Patient, details: PatientInput) -> None:
    """Change a patient to these normalized details; a phone that is there stays."""
    keep_phone = patient.phone is not None
    _change(world, patient, {name: value for name, value in details.items() if name != "phone" or not keep_phone})


def mark(world: World, patient: Patient, **marks: Any) -> Patient:
    """Set what the service notes of a patient by itself: the stage, and whether they want messages."""
    if any(getattr(patient, name) != value for name, value in marks.items()):
        world.patients.update(patient, **marks, updated_at=world.now())
        world.publish(Fact(type=MARKED, name="patient", about=patient, patient=patient))
    return patient


def _change(world: World, patient: Patient, changes: Any) -> None:
    if any(getattr(patient, name) != value for name, value in changes.items()):
        world.patients.update(patient, **changes, updated_at=world.now())
        _publish(world, patient)


def _publish(world: World, patient: Patient) -> None:
    world.publish(Fact(type="patient.upserted", name="patient", about=patient, patient=patient))
