"""Reminders of appointments: scheduled, rescheduled and cancelled with the appointment (specification, section 1)."""

from datetime import timedelta

from followup import Appointment
from followup_mockserver.rules import messages
from followup_mockserver.rules.stages import CANCELLED, UPCOMING, VISITED, moved
from followup_mockserver.state.jobs import SendReminder
from followup_mockserver.state.tenant import DomainEvent, Tenant

_NOT_UPCOMING = "not sent: the appointment is no longer upcoming"


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Update the pending reminders of an appointment."""
    if event.type == "appointment.created":
        _schedule(tenant, event.subject)
    elif event.type == "appointment.rescheduled":
        tenant.cancel_jobs(event.subject.id, moved(event.subject), SendReminder.kind)
        _schedule(tenant, event.subject)
    elif event.type == "appointment.cancelled":
        tenant.cancel_jobs(event.subject.id, CANCELLED, SendReminder.kind)
    elif event.type == "visit.completed" and event.subject.appointment is not None:
        tenant.cancel_jobs(event.subject.appointment, VISITED, SendReminder.kind)


def send(tenant: Tenant, job: SendReminder) -> str:
    """Send a reminder. Return the outcome of the job."""
    appointment = tenant.appointments.get(job.about)
    if appointment is None or appointment.status not in UPCOMING:
        return _NOT_UPCOMING
    return messages.send_reminder(tenant, appointment)


def obstacle(tenant: Tenant, appointment: Appointment) -> str | None:
    """Return the outcome of a reminder that cannot be sent as things stand; None if it can be sent."""
    return messages.obstacle_to_patient(tenant, appointment) if appointment.status in UPCOMING else _NOT_UPCOMING


def _schedule(tenant: Tenant, appointment: Appointment) -> None:
    now = tenant.now()
    job = SendReminder(about=appointment.id)
    for hours in tenant.organization.reminder_hours:
        at = appointment.start_at - timedelta(hours=hours)
        detail = f"{hours:g} h before the start"
        if at >= now:
            tenant.schedule(at, job, detail)
        else:
            tenant.skip_job(job, f"not scheduled: {detail} was already past", detail)
