"""Appointments (specification, sections 3 and 4)."""

from typing import Any

from followup import Appointment, DoctorInput, PatientInput
from followup._for_mockserver import AppointmentSource, AppointmentStatus
from followup_mockserver.rules import page
from followup_mockserver.rules.doctors import doctor_id
from followup_mockserver.rules.patients import BY_PHONE_OR_DNI, FoundBy, PatientReference, patient_about, refresh_stage
from followup_mockserver.world.outcomes import Kind, Outcome, other
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.state.collection import PageResult
from followup_mockserver.world.state.tenant import Tenant


def create(
    tenant: Tenant,
    *,
    patient: str | PatientInput,
    doctor: str | DoctorInput | None = None,
    external_id: str | None = None,
    found_by: FoundBy = BY_PHONE_OR_DNI,
    source: AppointmentSource = "api",
    status: AppointmentStatus = "confirmed",
    **fields: Any,
) -> Appointment:
    """Book an appointment, or return the existing one with the same external id unchanged."""
    if external_id is not None and (existing := tenant.appointments.find("external_id", external_id)):
        return existing
    reference = PatientReference(tenant, patient, found_by)
    doctor = doctor_id(tenant, doctor)
    if source == "agent" and doctor in {each.id for each in tenant.doctors.find_all("active", False)}:
        raise invalid("doctor_inactive", "The agent books appointments only with active doctors.", "doctor")
    now = tenant.at
    # Last, because it may create the patient: a rejected booking must leave nobody behind.
    booked_for = reference.resolve()
    appointment = Appointment(
        id=tenant.ids.new("apt_"),
        object="appointment",
        patient=booked_for.id,
        doctor=doctor,
        status=status,
        external_id=external_id,
        source=source,
        created_at=now,
        updated_at=now,
        **fields,
    )
    tenant.appointments.add(appointment)
    _publish(tenant, "appointment.created", appointment)
    return appointment


def update(tenant: Tenant, appointment: Appointment, **changes: Any) -> Appointment:
    """Update an appointment. Omitted fields stay unchanged; a new start sets the status to ``rescheduled``."""
    _require_modifiable(appointment)
    if "doctor" in changes:
        found = doctor_id(tenant, changes["doctor"])
        # A doctor who is not in the roster leaves the field unchanged; null removes the doctor.
        changes["doctor"] = appointment.doctor if found is None and changes["doctor"] is not None else found
    start_before = appointment.start_at
    rescheduled = changes.get("start_at", start_before) != start_before
    if rescheduled:
        changes["status"] = "rescheduled"
    # A PATCH that is repeated leaves ``updated_at`` as it is.
    if any(getattr(appointment, name) != value for name, value in changes.items()):
        tenant.appointments.update(appointment, **changes, updated_at=tenant.at)
    if rescheduled:
        change = Outcome(Kind.RESCHEDULED, at=appointment.start_at, before=start_before)
        _publish(tenant, "appointment.rescheduled", appointment, change)
    return appointment


def confirm(tenant: Tenant, appointment: Appointment) -> Appointment:
    """Set the status to ``confirmed``. No webhook exists for this change."""
    _require_modifiable(appointment)
    if appointment.status != "confirmed":
        tenant.appointments.update(appointment, status="confirmed", updated_at=tenant.at)
    return appointment


def cancel(
    tenant: Tenant,
    appointment: Appointment,
    *,
    reason: str | None = None,  # noqa: ARG001 - accepted, but no result of the API shows it
) -> Appointment:
    """Cancel an appointment; if it is cancelled already, return it unchanged."""
    if appointment.status != "cancelled":  # a completed one can be cancelled (section 3)
        now = tenant.at
        tenant.appointments.update(appointment, status="cancelled", cancelled_at=now, updated_at=now)
        _publish(tenant, "appointment.cancelled", appointment)
    return appointment


def complete(tenant: Tenant, appointment: Appointment) -> None:
    """Set the status to ``completed``, unless the appointment was cancelled."""
    if appointment.status not in ("cancelled", "completed"):
        tenant.appointments.update(appointment, status="completed", updated_at=tenant.at)
        tenant.note("appointment.completed", appointment.id, other("completed"), patient=appointment.patient)


def list_(tenant: Tenant, **query: Any) -> PageResult[Appointment]:
    """Return a page of appointments, most recently created first."""
    bounds = (query.get("start_at_gte"), query.get("start_at_lt"))
    between = {"start_at": bounds} if bounds != (None, None) else None
    return page(tenant.appointments, query, where=("patient", "status", "external_id"), between=between)


def _require_modifiable(appointment: Appointment) -> None:
    """Reject a change of an appointment that is cancelled or completed (400)."""
    if appointment.status in ("cancelled", "completed"):
        raise invalid("appointment_not_modifiable", f"An appointment that is {appointment.status} cannot be changed.")


def _publish(tenant: Tenant, type: str, appointment: Appointment, change: Outcome | None = None) -> None:
    patient = patient_about(tenant, appointment)
    # First, because the webhook contains the patient.
    refresh_stage(tenant, patient)
    tenant.publish(type, appointment, patient, change=change)
