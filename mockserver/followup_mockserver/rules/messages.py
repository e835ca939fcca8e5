"""Messages to patients: reminders, those after a visit, and questions for missing data (specification, section 1).

They are jobs, which are scheduled, moved and cancelled with what they are about. Patients who have opted out get none.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta

from followup import Appointment, IntakeRequest, Patient, Visit
from followup._for_mockserver import package_text, zone_of
from followup_mockserver.rules.patients import UPCOMING, follows_appointment, patient_about
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.history import MESSAGE
from followup_mockserver.world.state.outcomes import Kind, Outcome, other
from followup_mockserver.world.state.records import MESSAGE_PREFIX, Message
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

TEXTS: Mapping[str, Mapping[str, str]] = json.loads(package_text(__name__, "messages.json"))
"""The texts by language."""

OPTED_OUT = Outcome(Kind.OPTED_OUT)
NO_PHONE = Outcome(Kind.NO_PHONE)
SENT = Outcome(Kind.SENT)


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Schedule the message after a visit."""
    if event.type == "visit.completed":
        at = event.subject.visited_at + timedelta(hours=tenant.organization.post_visit_hours)
        tenant.schedule(max(at, tenant.at), Job("post_visit", event.subject.id))


def obstacle_to_patient(tenant: Tenant, about: Appointment | Visit) -> Outcome | None:
    """Return the outcome of a message to the patient of an object that cannot be sent; None if it can be sent."""
    patient = patient_about(tenant, about)
    if patient.opted_out:
        return OPTED_OUT
    return NO_PHONE if patient.phone is None else None


def send_post_visit(tenant: Tenant, job: Job) -> Outcome:
    """Ask the patient how they are after a visit. Return the outcome, as ``send_reminder`` does."""
    visit = tenant.visits.get(job.about)
    assert visit is not None  # visits are never removed
    patient, obstacle = patient_about(tenant, visit), obstacle_to_patient(tenant, visit)
    text = _text(tenant, patient, "post_visit")
    return obstacle or _write(tenant, patient, patient.phone, "post_visit", text, visit.id)


def _write(tenant: Tenant, patient: Patient | None, phone: str | None, kind: str, text: str, about: str) -> Outcome:
    assert phone is not None  # or it would be the obstacle
    message, patient_id = tenant.ids.new(MESSAGE_PREFIX), patient.id if patient else None
    tenant.messages.append(
        Message(id=message, patient=patient_id, phone=phone, kind=kind, text=text, sent_at=tenant.at, about=about)
    )
    tenant.note(MESSAGE, message, other(kind), about=about, patient=patient_id)
    return SENT


def _texts(tenant: Tenant) -> Mapping[str, str]:
    return TEXTS[tenant.organization.language]


def _text(tenant: Tenant, patient: Patient | None, kind: str, **values: str) -> str:
    texts = _texts(tenant)
    first_name = (patient.full_name or "").split(" ")[0] if patient else ""
    greeting = texts["greeting"].format(name=first_name).replace(" .", ".")
    return texts[kind].format(greeting=greeting, organization=tenant.organization.name, **values)


def send_reminder(tenant: Tenant, job: Job) -> Outcome:
    """Remind the patient of an appointment. The text has the time in the organization's time zone."""
    appointment = tenant.appointments.get(job.about)
    if appointment is None or appointment.status not in UPCOMING:
        return Outcome(Kind.NOT_UPCOMING)
    texts, start = _texts(tenant), appointment.start_at.astimezone(zone_of(tenant.organization.time_zone))
    day, time = start.strftime(texts["day"]), start.strftime(texts["time"])
    patient, obstacle = patient_about(tenant, appointment), obstacle_to_patient(tenant, appointment)
    text = _text(tenant, patient, "reminder", day=day, time=time)
    return obstacle or _write(tenant, patient, patient.phone, "reminder", text, appointment.id)


def obstacle_to_reminder(tenant: Tenant, appointment: Appointment) -> Outcome | None:
    """Return the outcome of a reminder that cannot be sent as things stand; None if it can be sent."""
    if appointment.status not in UPCOMING:
        return Outcome(Kind.NOT_UPCOMING)
    return obstacle_to_patient(tenant, appointment)


def _schedule_reminders(tenant: Tenant, appointment: Appointment) -> None:
    now = tenant.at
    job = Job("reminder", appointment.id)
    for hours in tenant.organization.reminder_hours:
        at = appointment.start_at - timedelta(hours=hours)
        if at >= now:
            tenant.schedule(at, job, hours)
        else:
            tenant.skip_job(job, Outcome(Kind.ALREADY_PAST, hours=hours))


keep_reminders: Callable[[Tenant, DomainEvent], None] = follows_appointment("reminder", _schedule_reminders)


def schedule_question(tenant: Tenant, intake: IntakeRequest) -> None:
    """Schedule a message that asks for the missing data, unless the organization has turned these messages off."""
    if tenant.organization.intake_messages and intake.status == "new" and intake.missing:
        tenant.schedule(tenant.at, Job("intake", intake.id))


def ask_if_possible(tenant: Tenant, intake: IntakeRequest) -> None:
    """Schedule the message if none is pending and the recipient can be written to."""
    if not tenant.scheduler.pending(about=intake.id) and obstacle_to_question(tenant, intake) is None:
        schedule_question(tenant, intake)


def ask(tenant: Tenant, job: Job) -> Outcome:
    """Send the message, and set the status of the request to ``validating``. Return the outcome of the job."""
    intake = tenant.intake_requests.get(job.about)
    assert intake is not None  # intake requests are never removed
    if (obstacle := obstacle_to_question(tenant, intake)) is not None:
        return obstacle
    tenant.intake_requests.update(intake, status="validating", updated_at=tenant.at)
    patient, texts = patient_of(tenant, intake), _texts(tenant)
    missing = ", ".join(texts.get(name, name) for name in intake.missing)
    text = _text(tenant, patient, "intake", missing=missing)
    return _write(tenant, patient, phone_to_ask(tenant, intake), "intake", text, intake.id)


def obstacle_to_question(tenant: Tenant, intake: IntakeRequest) -> Outcome | None:
    """Return the outcome of a message that cannot be sent as things stand; None if it can be sent."""
    if intake.status != "new" or not intake.missing:
        return Outcome(Kind.NOTHING_MISSING)
    patient = patient_of(tenant, intake)
    if patient is not None and patient.opted_out:
        return OPTED_OUT
    phone = phone_to_ask(tenant, intake)
    if phone is None:
        return NO_PHONE
    owner = tenant.patients.find("phone", phone)
    return OPTED_OUT if owner is not None and owner.opted_out else None


def phone_to_ask(tenant: Tenant, intake: IntakeRequest) -> str | None:
    """Return the phone to send the message to: the patient's, or that of the first contact who has one."""
    patient, people = patient_of(tenant, intake), [intake.data.get("patient", {}), *intake.data.get("contacts", ())]
    if patient is not None and patient.phone:
        return patient.phone
    return next((each["phone"] for each in people if each.get("phone")), None)


def patient_of(tenant: Tenant, intake: IntakeRequest) -> Patient | None:
    """Return the patient of a request; None until the patient is identified."""
    return tenant.patients.get(intake.patient) if intake.patient else None
