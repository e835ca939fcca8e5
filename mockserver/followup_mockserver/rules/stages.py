"""Where a patient stands: kept true by what happens, and by the passing of time (specification, sections 2 and 3)."""

from datetime import timedelta

from followup import Patient
from followup_mockserver.state.domain_events import Fact
from followup_mockserver.state.jobs import RecomputeStage
from followup_mockserver.state.tenant import World

_PASSED = timedelta(milliseconds=1)
"""The least by which the time of an appointment is over: the resolution of the mock's clock."""

AHEAD = ("confirmed", "pending", "rescheduled")
"""Statuses of an appointment that is still to come."""


def refresh(world: World, patient: Patient) -> None:
    """Recompute the stage from the appointments ahead and the visits that were."""
    now = world.now()
    ahead = any(
        appointment.status in AHEAD and appointment.start_at >= now
        for appointment in world.appointments.find_all("patient", patient.id)
    )
    if ahead:
        stage = "scheduled"
    else:
        stage = "periodic_follow_up" if world.visits.count("patient", patient.id) else "pending_follow_up"
    if stage != patient.stage:
        world.patients.update(patient, stage=stage, updated_at=now)


def on_fact(world: World, fact: Fact) -> None:
    """Look again when the time of an appointment has passed; one that is over needs no look."""
    if fact.type in ("appointment.created", "appointment.rescheduled"):
        _forget(world, fact.about.id)
        if fact.about.start_at >= world.now():
            world.scheduler.schedule(fact.about.start_at + _PASSED, RecomputeStage(about=fact.about.id))
    elif fact.type == "appointment.cancelled":
        _forget(world, fact.about.id)
    elif fact.type == "visit.completed" and fact.about.appointment is not None:
        _forget(world, fact.about.appointment)


def recompute(world: World, job: RecomputeStage) -> str:
    """The time of an appointment has passed. Returns the outcome."""
    appointment = world.appointments.get(job.about)
    patient = world.patients.get(appointment.patient) if appointment else None
    assert patient is not None  # neither appointments nor patients are removed
    refresh(world, patient)
    return patient.stage


def _forget(world: World, appointment: str) -> None:
    world.scheduler.cancel_about(appointment, RecomputeStage.kind)
