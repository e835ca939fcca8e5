"""Patients (specification, section 4, Patients)."""

from typing import Any, cast

from followup import Patient
from followup.resources.patients import PatientInput
from followup_mockserver.errors import missing
from followup_mockserver.facts import Fact
from followup_mockserver.rules.paging import Listed, page
from followup_mockserver.rules.phones import normalized_dni, normalized_phone
from followup_mockserver.world import World

AHEAD = ("confirmed", "pending", "rescheduled")
"""Statuses of an appointment that is still to come."""


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
    if "phone" in details:
        result["phone"] = normalized_phone(world, details["phone"], f"{prefix}phone")
    if "dni" in details:
        result["dni"] = normalized_dni(details["dni"], f"{prefix}dni")
    return result


def find(world: World, details: PatientInput) -> Patient | None:
    """The patient with this phone, else with this DNI, else (where neither is given) with this external id."""
    for name, value in (("phone", details.get("phone")), ("dni", details.get("dni"))):
        if value is not None and (patient := world.patients.find(name, value)):
            return patient
    if "phone" in details or "dni" in details or "external_id" not in details:
        return None
    return world.patients.find("external_id", details["external_id"])


def save(world: World, details: PatientInput) -> Patient:
    """The patient of these normalized details: found, with what was missing filled in, or created."""
    patient = find(world, details)
    if patient is None:
        return _add(world, details)
    fill(world, patient, details)
    return patient


def fill(world: World, patient: Patient, details: PatientInput) -> None:
    """Add to a patient what was missing; nothing that is there is overwritten."""
    _change(world, patient, {name: value for name, value in details.items() if getattr(patient, name) is None})


def upsert(world: World, details: PatientInput) -> Patient:
    """Create the patient of these normalized details, or change the one found; a phone that is there stays."""
    patient = find(world, details)
    if patient is None:
        if "phone" not in details and "dni" not in details:
            raise missing("patient, and no phone or DNI to create one", status=400)
        return _add(world, details)
    keep_phone = patient.phone is not None
    _change(world, patient, {name: value for name, value in details.items() if name != "phone" or not keep_phone})
    return patient


def refresh_stage(world: World, patient: Patient) -> None:
    """Where the patient stands, from the appointments ahead and the visits that were."""
    now = world.now()
    ahead = any(
        appointment.status in AHEAD and appointment.start_at > now
        for appointment in world.appointments.find_all("patient", patient.id)
    )
    if ahead:
        stage = "scheduled"
    else:
        stage = "periodic_follow_up" if world.visits.count("patient", patient.id) else "pending_follow_up"
    if stage != patient.stage:
        world.patients.update(patient, stage=stage, updated_at=now)


def _add(world: World, details: PatientInput) -> Patient:
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


def _change(world: World, patient: Patient, changes: Any) -> None:
    if any(getattr(patient, name) != value for name, value in changes.items()):
        world.patients.update(patient, **changes, updated_at=world.now())
        _publish(world, patient)


def _publish(world: World, patient: Patient) -> None:
    world.publish(Fact(type="patient.upserted", name="patient", about=patient, patient=patient))
