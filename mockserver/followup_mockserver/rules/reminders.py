"""Reminders of appointments: made, moved and removed with them, sent when they are due (specification, section 1)."""

from datetime import timedelta

from followup import Appointment
from followup_mockserver.rules import messages
from followup_mockserver.rules.stages import AHEAD
from followup_mockserver.state.domain_events import Fact
from followup_mockserver.state.jobs import SendReminder
from followup_mockserver.state.tenant import World


def on_fact(world: World, fact: Fact) -> None:
    """Keep the pending reminders of an appointment true."""
    if fact.type in ("appointment.created", "appointment.rescheduled"):
        _schedule(world, fact.about)
    elif fact.type == "appointment.cancelled":
        _remove(world, fact.about.id)
    elif fact.type == "visit.completed" and fact.about.appointment is not None:
        _remove(world, fact.about.appointment)


def send(world: World, job: SendReminder) -> str:
    """Write to the patient; says what came of it."""
    appointment = world.appointments.get(job.about)
    if appointment is None or appointment.status not in AHEAD:
        return "not sent: the appointment is not ahead any more"
    return messages.send_reminder(world, appointment)


def _schedule(world: World, appointment: Appointment) -> None:
    _remove(world, appointment.id)
    now = world.now()
    for hours in world.organization.reminder_hours:
        at = appointment.start_at - timedelta(hours=hours)
        if at >= now:
            world.scheduler.schedule(at, SendReminder(about=appointment.id))


def _remove(world: World, appointment: str) -> None:
    world.scheduler.cancel_about(appointment, SendReminder.kind)
