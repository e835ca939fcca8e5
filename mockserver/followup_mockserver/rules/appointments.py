"""Appointments (specification, sections 3 and 4)."""

from datetime import datetime
from typing import Any

from followup import Appointment, DoctorInput, Patient, PatientInput
from followup_mockserver.rules import stages
from followup_mockserver.rules.paging import page
from followup_mockserver.rules.patients import BY_PHONE_OR_DNI, FoundBy
from followup_mockserver.rules.references import PatientReference, doctor_id
from followup_mockserver.schema.errors import invalid
from followup_mockserver.state.collection import PageResult
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.tenant import Tenant


def create(
    tenant: Tenant,
    *,
    patient: str | PatientInput,
    start_at: datetime,
    doctor: str | DoctorInput | None = None,
    type: str | None = None,
    external_id: str | None = None,
    found_by: FoundBy = BY_PHONE_OR_DNI,
) -> Appointment:
    """Book an appointment; one with an external id that exists is returned as it is."""
    if external_id is not None and (existing := tenant.appointments.find("external_id", external_id)):
        return existing
    reference = PatientReference(tenant, patient, found_by)
    doctor = doctor_id(tenant, doctor)
    now = tenant.now()
    booked_for = reference.resolve()
    appointment = Appointment(
        id=tenant.ids.new("apt_"),
        object="appointment",
        patient=booked_for.id,
        doctor=doctor,
        start_at=start_at,
        status="confirmed",
        type=type,
        external_id=external_id,
        source="api",
        created_at=now,
        updated_at=now,
    )
    tenant.appointments.add(appointment)
    _happened(tenant, "appointment.created", appointment)
    return appointment


def update(tenant: Tenant, appointment: Appointment, **changes: Any) -> Appointment:
    """Change what was sent; a new start makes the appointment ``rescheduled``."""
    if appointment.status in ("cancelled", "completed"):
        raise invalid(
            "appointment_not_modifiable", f"An appointment that is {appointment.status} cannot be changed any more."
        )
    if "doctor" in changes:
        found = doctor_id(tenant, changes["doctor"])
        # An object that nobody in the roster matches does not say who the doctor is; null says that there is none.
        changes["doctor"] = appointment.doctor if found is None and changes["doctor"] is not None else found
    moved = changes.get("start_at", appointment.start_at) != appointment.start_at
    if moved:
        changes["status"] = "rescheduled"
    if any(getattr(appointment, name) != value for name, value in changes.items()):
        tenant.appointments.update(appointment, **changes, updated_at=tenant.now())
    if moved:
        _happened(tenant, "appointment.rescheduled", appointment)
    return appointment


def cancel(
    tenant: Tenant,
    appointment: Appointment,
    *,
    reason: str | None = None,  # noqa: ARG001 - for the service's own record, of which the API shows nothing
) -> Appointment:
    """Cancel; an appointment that is cancelled stays as it is."""
    if appointment.status != "cancelled":
        now = tenant.now()
        tenant.appointments.update(appointment, status="cancelled", cancelled_at=now, updated_at=now)
        _happened(tenant, "appointment.cancelled", appointment)
    return appointment


def complete(tenant: Tenant, appointment: Appointment) -> None:
    """Mark as attended, unless it was cancelled."""
    if appointment.status not in ("cancelled", "completed"):
        tenant.appointments.update(appointment, status="completed", updated_at=tenant.now())


def list_(tenant: Tenant, **query: Any) -> PageResult[Appointment]:
    """A page of appointments, the last loaded first."""
    bounds = (query.get("start_at_gte"), query.get("start_at_lt"))
    between = {"start_at": bounds} if bounds != (None, None) else None
    return page(tenant.appointments, query, where=("patient", "status", "external_id"), between=between)


def _happened(tenant: Tenant, type: str, appointment: Appointment) -> None:
    patient = _patient(tenant, appointment)
    stages.refresh(tenant, patient)
    tenant.publish(DomainEvent(type=type, name="appointment", subject=appointment, patient=patient))


def _patient(tenant: Tenant, appointment: Appointment) -> Patient:
    patient = tenant.patients.get(appointment.patient)
    assert patient is not None  # patients are never removed
    return patient
