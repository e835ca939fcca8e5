"""Reminders of appointments: scheduled, rescheduled and cancelled with the appointment (specification, section 1)."""

from datetime import timedelta

from followup import Appointment
from followup_mockserver.rules import messages
from followup_mockserver.rules.stages import UPCOMING, follows_appointment
from followup_mockserver.state.jobs import SendReminder
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.tenant import Tenant


def send(tenant: Tenant, job: SendReminder) -> Outcome:
    """Send a reminder. Return the outcome of the job."""
    appointment = tenant.appointments.get(job.about)
    if appointment is None or appointment.status not in UPCOMING:
        return Outcome(Kind.NOT_UPCOMING)
    return messages.send_reminder(tenant, appointment)


def obstacle(tenant: Tenant, appointment: Appointment) -> Outcome | None:
    """Return the outcome of a reminder that cannot be sent as things stand; None if it can be sent."""
    if appointment.status not in UPCOMING:
        return Outcome(Kind.NOT_UPCOMING)
    return messages.obstacle_to_patient(tenant, appointment)


def _schedule(tenant: Tenant, appointment: Appointment) -> None:
    now = tenant.now()
    job = SendReminder(about=appointment.id)
    for hours in tenant.organization.reminder_hours:
        at = appointment.start_at - timedelta(hours=hours)
        if at >= now:
            tenant.schedule(at, job, hours)
        else:
            tenant.skip_job(job, Outcome(Kind.ALREADY_PAST, hours=hours))


on_domain_event = follows_appointment(SendReminder, _schedule)
