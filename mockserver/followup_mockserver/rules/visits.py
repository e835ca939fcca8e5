"""Visits (specification, sections 3 and 4)."""

from typing import Any

from followup import Appointment, DoctorInput, PatientInput, Visit
from followup._for_mockserver import VisitSource
from followup_mockserver.rules.appointments import complete
from followup_mockserver.rules.doctors import doctor_id
from followup_mockserver.rules.patients import BY_PHONE_OR_DNI, FoundBy, PatientReference, refresh_stage
from followup_mockserver.world.schema.errors import invalid, missing
from followup_mockserver.world.state.tenant import Tenant


def create(
    tenant: Tenant,
    *,
    patient: str | PatientInput,
    doctor: str | DoctorInput | None = None,
    external_id: str | None = None,
    appointment: str | None = None,
    found_by: FoundBy = BY_PHONE_OR_DNI,
    source: VisitSource = "manual",
    **fields: Any,
) -> Visit:
    """Create a visit and complete its appointment, or return the existing visit with the same external id unchanged."""
    if external_id is not None and (existing := tenant.visits.find("external_id", external_id)):
        return existing
    attended = _appointment(tenant, appointment)
    doctor = doctor_id(tenant, doctor)
    reference = PatientReference(tenant, patient, found_by)
    if attended and (reference.patient is None or reference.patient.id != attended.patient):
        raise invalid("parameter_invalid", "This must be an appointment of the same patient.", "appointment")
    # All checks have passed; only now may a patient be created.
    visitor = reference.resolve()
    visit = Visit(
        id=tenant.ids.new("vis_"),
        object="visit",
        patient=visitor.id,
        doctor=doctor,
        appointment=attended.id if attended else None,
        external_id=external_id,
        source=source,
        created_at=tenant.at,
        **fields,
    )
    tenant.visits.add(visit)
    # In this order: a completed appointment is no longer ahead, and the webhook contains the stage.
    if attended:
        complete(tenant, attended)
    refresh_stage(tenant, visitor)
    tenant.publish("visit.completed", visit, visitor)
    return visit


def _appointment(tenant: Tenant, reference: str | None) -> Appointment | None:
    """Return the appointment with this id or external id."""
    if reference is None:
        return None
    appointment = tenant.appointments.get(reference) or tenant.appointments.find("external_id", reference)
    if appointment is None:
        raise missing("appointment", status=400, param="appointment")
    return appointment
