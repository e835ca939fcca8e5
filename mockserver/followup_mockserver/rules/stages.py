"""The stage of a patient, which changes with appointments, visits and time (specification, sections 2 and 3)."""

from collections.abc import Callable
from datetime import timedelta

from followup import Appointment, Patient, Visit
from followup_mockserver.world.state.clock import Job, JobKind
from followup_mockserver.world.state.outcomes import Kind, Outcome, other
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

_PASSED = timedelta(milliseconds=1)
"""The resolution of the mock's clock: an appointment is over this long after its start."""

UPCOMING = ("confirmed", "pending", "rescheduled")
"""Statuses of an appointment that is expected to take place."""


def patient_about(tenant: Tenant, about: Appointment | Visit) -> Patient:
    """Return the patient of an appointment or a visit."""
    patient = tenant.patients.get(about.patient)
    assert patient is not None  # patients are never removed
    return patient


def refresh(tenant: Tenant, patient: Patient) -> None:
    """Recompute the stage from the upcoming appointments and the visits."""
    now = tenant.at
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


def recompute(tenant: Tenant, job: Job) -> Outcome:
    """Recompute the stage after the time of an appointment. Return the outcome of the job: the stage."""
    appointment = tenant.appointments.get(job.about)
    assert appointment is not None  # appointments are never removed
    patient = patient_about(tenant, appointment)
    refresh(tenant, patient)
    return other(patient.stage)


def _schedule(tenant: Tenant, appointment: Appointment) -> None:
    if appointment.start_at >= tenant.at:
        tenant.schedule(appointment.start_at + _PASSED, Job("stage", appointment.id))


on_domain_event: Callable[[Tenant, DomainEvent], None] = follows_appointment("stage", _schedule)
