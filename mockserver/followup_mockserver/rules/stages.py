"""The stage of a patient, which changes with appointments, visits and time (specification, sections 2 and 3)."""

from datetime import timedelta

from followup import Appointment, Patient
from followup._for_mockserver import format_timestamp
from followup_mockserver.state.jobs import RecomputeStage
from followup_mockserver.state.tenant import DomainEvent, Tenant

_PASSED = timedelta(milliseconds=1)
"""The resolution of the mock's clock: an appointment is over this long after its start."""

UPCOMING = ("confirmed", "pending", "rescheduled")
"""Statuses of an appointment that is expected to take place."""

CANCELLED = "cancelled: the appointment was cancelled"
VISITED = "cancelled: the visit has taken place"


def refresh(tenant: Tenant, patient: Patient) -> None:
    """Recompute the stage from the upcoming appointments and the visits."""
    now = tenant.now()
    has_upcoming = any(
        appointment.status in UPCOMING and appointment.start_at >= now
        for appointment in tenant.appointments.find_all("patient", patient.id)
    )
    if has_upcoming:
        stage = "scheduled"
    else:
        stage = "periodic_follow_up" if tenant.visits.count("patient", patient.id) else "pending_follow_up"
    if stage != patient.stage:
        tenant.patients.update(patient, stage=stage, updated_at=now)


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Schedule a recomputation for the time when an upcoming appointment is over."""
    if event.type == "appointment.created":
        _schedule(tenant, event.subject)
    elif event.type == "appointment.rescheduled":
        tenant.cancel_jobs(event.subject.id, moved(event.subject), RecomputeStage.kind)
        _schedule(tenant, event.subject)
    elif event.type == "appointment.cancelled":
        tenant.cancel_jobs(event.subject.id, CANCELLED, RecomputeStage.kind)
    elif event.type == "visit.completed" and event.subject.appointment is not None:
        tenant.cancel_jobs(event.subject.appointment, VISITED, RecomputeStage.kind)


def recompute(tenant: Tenant, job: RecomputeStage) -> str:
    """Recompute the stage after the time of an appointment. Return the outcome of the job: the stage."""
    appointment = tenant.appointments.get(job.about)
    patient = tenant.patients.get(appointment.patient) if appointment else None
    assert patient is not None  # neither appointments nor patients are removed
    refresh(tenant, patient)
    return patient.stage


def _schedule(tenant: Tenant, appointment: Appointment) -> None:
    if appointment.start_at >= tenant.now():
        tenant.schedule(appointment.start_at + _PASSED, RecomputeStage(about=appointment.id))


def moved(appointment: Appointment) -> str:
    """Return the reason for cancelling the jobs of the former start of an appointment."""
    return f"moved: the appointment now starts at {format_timestamp(appointment.start_at)}"
