"""Where a patient stands: kept true by what happens, and by the passing of time (specification, sections 2 and 3)."""

from datetime import timedelta

from followup import Patient
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.jobs import RecomputeStage
from followup_mockserver.state.tenant import Tenant

_PASSED = timedelta(milliseconds=1)
"""The least by which the time of an appointment is over: the resolution of the mock's clock."""

AHEAD = ("confirmed", "pending", "rescheduled")
"""Statuses of an appointment that is still to come."""


def refresh(tenant: Tenant, patient: Patient) -> None:
    """Recompute the stage from the appointments ahead and the visits that were."""
    now = tenant.now()
    ahead = any(
        appointment.status in AHEAD and appointment.start_at >= now
        for appointment in tenant.appointments.find_all("patient", patient.id)
    )
    if ahead:
        stage = "scheduled"
    else:
        stage = "periodic_follow_up" if tenant.visits.count("patient", patient.id) else "pending_follow_up"
    if stage != patient.stage:
        tenant.patients.update(patient, stage=stage, updated_at=now)


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Look again when the time of an appointment has passed; one that is over needs no look."""
    if event.type in ("appointment.created", "appointment.rescheduled"):
        _forget(tenant, event.subject.id)
        if event.subject.start_at >= tenant.now():
            tenant.scheduler.schedule(event.subject.start_at + _PASSED, RecomputeStage(about=event.subject.id))
    elif event.type == "appointment.cancelled":
        _forget(tenant, event.subject.id)
    elif event.type == "visit.completed" and event.subject.appointment is not None:
        _forget(tenant, event.subject.appointment)


def recompute(tenant: Tenant, job: RecomputeStage) -> str:
    """The time of an appointment has passed. Returns the outcome."""
    appointment = tenant.appointments.get(job.about)
    patient = tenant.patients.get(appointment.patient) if appointment else None
    assert patient is not None  # neither appointments nor patients are removed
    refresh(tenant, patient)
    return patient.stage


def _forget(tenant: Tenant, appointment: str) -> None:
    tenant.scheduler.cancel_about(appointment, RecomputeStage.kind)
