"""Reminders of appointments: scheduled, rescheduled and cancelled with the appointment (specification, section 1)."""

from datetime import timedelta

from followup import Appointment
from followup_mockserver.rules import messages
from followup_mockserver.rules.stages import UPCOMING
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.jobs import SendReminder
from followup_mockserver.state.tenant import Tenant


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Update the pending reminders of an appointment."""
    if event.type in ("appointment.created", "appointment.rescheduled"):
        _schedule(tenant, event.subject)
    elif event.type == "appointment.cancelled":
        _cancel(tenant, event.subject.id)
    elif event.type == "visit.completed" and event.subject.appointment is not None:
        _cancel(tenant, event.subject.appointment)


def send(tenant: Tenant, job: SendReminder) -> str:
    """Send a reminder. Return the outcome of the job."""
    appointment = tenant.appointments.get(job.about)
    if appointment is None or appointment.status not in UPCOMING:
        return "not sent: the appointment is no longer upcoming"
    return messages.send_reminder(tenant, appointment)


def _schedule(tenant: Tenant, appointment: Appointment) -> None:
    _cancel(tenant, appointment.id)
    now = tenant.now()
    for hours in tenant.organization.reminder_hours:
        at = appointment.start_at - timedelta(hours=hours)
        if at >= now:
            tenant.scheduler.schedule(at, SendReminder(about=appointment.id))


def _cancel(tenant: Tenant, appointment: str) -> None:
    tenant.scheduler.cancel_about(appointment, SendReminder.kind)
