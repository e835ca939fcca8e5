"""Messages to patients: reminders, questions after a visit or for missing data, and their texts."""

from datetime import datetime, timedelta

from followup import Appointment, IntakeRequest, Patient, Visit
from followup_mockserver.state.history import MESSAGE, Record
from followup_mockserver.state.jobs import SendPostVisitMessage
from followup_mockserver.state.outcomes import Kind, Outcome, other
from followup_mockserver.state.records import MESSAGE_PREFIX, Message
from followup_mockserver.state.tenant import DomainEvent, Tenant

TEXTS = {
    "es": {
        "greeting": "Hola {name}.",
        "reminder": "{greeting} Le recordamos su turno del {day} a las {time} en {organization}.",
        "post_visit": "{greeting} ¿Cómo se siente después de su visita a {organization}?",
        "intake": "{greeting} Para completar su solicitud en {organization} nos falta: {missing}.",
        "day": "%d/%m/%Y",
        "time": "%H:%M",
        "fullName": "nombre completo",
        "dni": "documento",
        "phone": "teléfono",
        "coverage.insurer": "obra social",
        "address": "domicilio",
        "requestedService": "servicio solicitado",
    },
    "en": {
        "greeting": "Hello {name}.",
        "reminder": "{greeting} This is a reminder of your appointment on {day} at {time} at {organization}.",
        "post_visit": "{greeting} How are you feeling after your visit to {organization}?",
        "intake": "{greeting} To complete your request at {organization} we still need: {missing}.",
        "day": "%d %B %Y",
        "time": "%H:%M",
        "fullName": "full name",
        "dni": "national document",
        "phone": "phone",
        "coverage.insurer": "health insurance",
        "address": "address",
        "requestedService": "requested service",
    },
    "pt": {
        "greeting": "Olá {name}.",
        "reminder": "{greeting} Lembramos a sua consulta de {day} às {time} em {organization}.",
        "post_visit": "{greeting} Como se sente depois da sua visita a {organization}?",
        "intake": "{greeting} Para completar o seu pedido em {organization} falta: {missing}.",
        "day": "%d/%m/%Y",
        "time": "%H:%M",
        "fullName": "nome completo",
        "dni": "documento",
        "phone": "telefone",
        "coverage.insurer": "plano de saúde",
        "address": "endereço",
        "requestedService": "serviço solicitado",
    },
}

OPTED_OUT = Outcome(Kind.OPTED_OUT)
NO_PHONE = Outcome(Kind.NO_PHONE)


def on_domain_event(tenant: Tenant, event: DomainEvent) -> None:
    """Schedule the message after a visit."""
    if event.type == "visit.completed":
        at = event.subject.visited_at + timedelta(hours=tenant.organization.post_visit_hours)
        tenant.schedule(max(at, tenant.now()), SendPostVisitMessage(about=event.subject.id))


def send_reminder(tenant: Tenant, appointment: Appointment) -> Outcome:
    """Remind the patient of an appointment. The text has the time in the organization's time zone.

    Returns:
        The outcome: ``sent``, or the reason why no message was sent.
    """
    texts = _texts(tenant)
    start = _local(tenant, appointment.start_at)
    return _send_to_patient(
        tenant,
        appointment,
        kind="reminder",
        text=_text(
            tenant,
            _patient(tenant, appointment),
            "reminder",
            day=start.strftime(texts["day"]),
            time=start.strftime(texts["time"]),
        ),
    )


def obstacle_to_patient(tenant: Tenant, about: Appointment | Visit) -> Outcome | None:
    """Return the outcome of a message to the patient of an object that cannot be sent; None if it can be sent."""
    patient = _patient(tenant, about)
    if patient.opted_out:
        return OPTED_OUT
    return NO_PHONE if patient.phone is None else None


def send_post_visit(tenant: Tenant, job: SendPostVisitMessage) -> Outcome:
    """Ask the patient how they are after a visit. Return the outcome, as ``send_reminder`` does."""
    visit = tenant.visits.get(job.about)
    assert visit is not None  # visits are never removed
    return _send_to_patient(tenant, visit, kind="post_visit", text=_text(tenant, _patient(tenant, visit), "post_visit"))


def send_question(tenant: Tenant, intake: IntakeRequest, patient: Patient | None, phone: str) -> Outcome:
    """Ask for the missing data of an intake request. Return the outcome."""
    texts = _texts(tenant)
    missing = ", ".join(texts.get(name, name) for name in intake.missing)
    return _write(tenant, patient, phone, "intake", _text(tenant, patient, "intake", missing=missing), intake)


def _send_to_patient(tenant: Tenant, about: Appointment | Visit, *, kind: str, text: str) -> Outcome:
    patient = _patient(tenant, about)
    obstacle = obstacle_to_patient(tenant, about)
    if obstacle is not None or patient.phone is None:
        return obstacle or NO_PHONE
    return _write(tenant, patient, patient.phone, kind, text, about)


def _write(
    tenant: Tenant,
    patient: Patient | None,
    phone: str,
    kind: str,
    text: str,
    about: Appointment | Visit | IntakeRequest,
) -> Outcome:
    now = tenant.now()
    message = tenant.ids.new(MESSAGE_PREFIX)
    tenant.messages.append(
        Message(
            id=message,
            patient=patient.id if patient else None,
            phone=phone,
            kind=kind,
            text=text,
            sent_at=now,
            about=about.id,
        )
    )
    tenant.history.add(
        Record(now, MESSAGE, message, tenant.cause, other(kind), about.id, patient.id if patient else None)
    )
    return Outcome(Kind.SENT)


def _patient(tenant: Tenant, about: Appointment | Visit) -> Patient:
    patient = tenant.patients.get(about.patient)
    assert patient is not None  # patients are never removed
    return patient


def _texts(tenant: Tenant) -> dict[str, str]:
    return TEXTS[tenant.organization.language]


def _text(tenant: Tenant, patient: Patient | None, kind: str, **values: str) -> str:
    texts = _texts(tenant)
    first_name = (patient.full_name or "").split(" ")[0] if patient else ""
    greeting = texts["greeting"].format(name=first_name).replace(" .", ".")
    return texts[kind].format(greeting=greeting, organization=tenant.organization.name, **values)


def _local(tenant: Tenant, instant: datetime) -> datetime:
    from zoneinfo import ZoneInfo  # imported late, because every start would wait for it

    return instant.astimezone(ZoneInfo(tenant.organization.time_zone))
