"""Reminders, and all else that the service writes to patients: when it is due, and its text (specification, section 1).

Messages are jobs, which are scheduled, moved and cancelled with what they are about. Patients who have opted out get
none. Which data the message about an intake request asks for is in ``intake_requests``.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta

from followup import Appointment, Patient, Visit
from followup._for_mockserver import package_text, zone_of
from followup_mockserver.rules.patients import UPCOMING, follows_appointment, patient_about
from followup_mockserver.world.outcomes import Kind, Outcome, other
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.history import MESSAGE
from followup_mockserver.world.state.records import MESSAGE_PREFIX, Message
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

_TEXTS: Mapping[str, Mapping[str, str]] = json.loads(package_text(__name__, "messages.json"))
"""The texts by language."""

OPTED_OUT = Outcome(Kind.OPTED_OUT)
NO_PHONE = Outcome(Kind.NO_PHONE)
SENT = Outcome(Kind.SENT)


def _schedule_reminders(tenant: Tenant, appointment: Appointment) -> None:
    job = Job("reminder", appointment.id)
    for hours in tenant.organization.reminder_hours:
        at = appointment.start_at - timedelta(hours=hours)
        if at >= tenant.at:
            tenant.schedule(at, job, hours)
        else:
            # A record without a job: a test that misses this reminder can see why it was not sent.
            tenant.skip_job(job, Outcome(Kind.ALREADY_PAST, hours=hours))


keep_reminders: Callable[[Tenant, DomainEvent], None] = follows_appointment("reminder", _schedule_reminders)


def send_reminder(tenant: Tenant, job: Job) -> Outcome:
    """Remind the patient of an appointment. The text has the time in the organization's time zone."""
    appointment = tenant.appointments.get(job.about)
    assert appointment is not None  # appointments are never removed
    if (obstacle := obstacle_to_patient(tenant, appointment)) is not None:
        return obstacle
    texts, start = texts_of(tenant), appointment.start_at.astimezone(zone_of(tenant.organization.time_zone))
    day, time = start.strftime(texts["day"]), start.strftime(texts["time"])
    patient = patient_about(tenant, appointment)
    return write(tenant, patient, patient.phone, "reminder", appointment.id, day=day, time=time)


def schedule_post_visit(tenant: Tenant, event: DomainEvent) -> None:
    """Schedule the message after a visit."""
    if event.type == "visit.completed":
        at = event.subject.visited_at + timedelta(hours=tenant.organization.post_visit_hours)
        # A visit of last week is written about at once: unlike a reminder, the message does not lose its sense.
        tenant.schedule(max(at, tenant.at), Job("post_visit", event.subject.id))


def send_post_visit(tenant: Tenant, job: Job) -> Outcome:
    """Ask the patient how they are after a visit."""
    visit = tenant.visits.get(job.about)
    assert visit is not None  # visits are never removed
    patient = patient_about(tenant, visit)
    return obstacle_to_patient(tenant, visit) or write(tenant, patient, patient.phone, "post_visit", visit.id)


def obstacle_to_patient(tenant: Tenant, about: Appointment | Visit) -> Outcome | None:
    """Return the outcome of a message to the patient of an object that cannot be sent; None if it can be sent."""
    # What ends it cancels its reminders, but in a snapshot that was edited it may have ended all the same.
    if isinstance(about, Appointment) and about.status not in UPCOMING:
        return Outcome(Kind.CLOSED)
    patient = patient_about(tenant, about)
    if patient.opted_out:
        return OPTED_OUT
    return NO_PHONE if patient.phone is None else None


def write(tenant: Tenant, patient: Patient | None, phone: str | None, kind: str, about: str, **values: str) -> Outcome:
    """Write the message of a kind about an object to a phone. ``values`` are the further fields of its text."""
    assert phone is not None  # or it would be the obstacle
    message, patient_id = tenant.ids.new(MESSAGE_PREFIX), patient.id if patient else None
    texts = texts_of(tenant)
    first_name = (patient.full_name or "").split(" ")[0] if patient else ""
    greeting = texts["greeting"].format(name=first_name).replace(" .", ".")  # "Hola ." of somebody without a name
    text = texts[kind].format(greeting=greeting, organization=tenant.organization.name, **values)
    tenant.messages.append(
        Message(id=message, patient=patient_id, phone=phone, kind=kind, text=text, sent_at=tenant.at, about=about)
    )
    tenant.note(MESSAGE, message, other(kind), about=about, patient=patient_id)
    return SENT


def texts_of(tenant: Tenant) -> Mapping[str, str]:
    """Return the texts in the language of the organization."""
    return _TEXTS[tenant.organization.language]
