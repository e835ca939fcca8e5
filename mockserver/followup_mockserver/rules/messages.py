"""Messages to patients: after a visit, for what an intake request is missing, and the texts of all of them."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from followup import Appointment, IntakeRequest, Patient, Visit
from followup_mockserver.state.domain_events import Fact
from followup_mockserver.state.jobs import SendPostVisitMessage
from followup_mockserver.state.records import Message
from followup_mockserver.state.tenant import World

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

OPTED_OUT = "not sent: the patient asked for no messages"
NO_PHONE = "not sent: there is no phone to write to"
SENT = "sent"


def on_fact(world: World, fact: Fact) -> None:
    """Plan the message that follows from a visit."""
    if fact.type == "visit.completed":
        at = fact.about.visited_at + timedelta(hours=world.organization.post_visit_hours)
        world.scheduler.schedule(max(at, world.now()), SendPostVisitMessage(about=fact.about.id))


def send_reminder(world: World, appointment: Appointment) -> str:
    """Remind the patient of the appointment, with the time in the organization's time zone."""
    texts = _texts(world)
    start = _local(world, appointment.start_at)
    return _send_to_patient(
        world,
        appointment,
        kind="reminder",
        text=_text(
            world,
            _patient(world, appointment),
            "reminder",
            day=start.strftime(texts["day"]),
            time=start.strftime(texts["time"]),
        ),
    )


def send_post_visit(world: World, job: SendPostVisitMessage) -> str:
    """Ask the patient how they are after the visit."""
    visit = world.visits.get(job.about)
    assert visit is not None  # visits are never removed
    return _send_to_patient(world, visit, kind="post_visit", text=_text(world, _patient(world, visit), "post_visit"))


def send_question(world: World, intake: IntakeRequest, patient: Patient | None, phone: str) -> str:
    """Ask for what an intake request is missing."""
    texts = _texts(world)
    missing = ", ".join(texts.get(name, name) for name in intake.missing)
    return _write(world, patient, phone, "intake", _text(world, patient, "intake", missing=missing), intake)


def _send_to_patient(world: World, about: Appointment | Visit, *, kind: str, text: str) -> str:
    patient = _patient(world, about)
    if patient.opted_out:
        return OPTED_OUT
    if patient.phone is None:
        return NO_PHONE
    return _write(world, patient, patient.phone, kind, text, about)


def _write(
    world: World, patient: Patient | None, phone: str, kind: str, text: str, about: Appointment | Visit | IntakeRequest
) -> str:
    world.messages.append(
        Message(
            patient=patient.id if patient else None,
            phone=phone,
            kind=kind,
            text=text,
            sent_at=world.now(),
            about=about.id,
        )
    )
    return SENT


def _patient(world: World, about: Appointment | Visit) -> Patient:
    patient = world.patients.get(about.patient)
    assert patient is not None  # patients are never removed
    return patient


def _texts(world: World) -> dict[str, str]:
    return TEXTS[world.organization.language]


def _text(world: World, patient: Patient | None, kind: str, **facts: str) -> str:
    texts = _texts(world)
    first_name = (patient.full_name or "").split(" ")[0] if patient else ""
    greeting = texts["greeting"].format(name=first_name).replace(" .", ".")
    return texts[kind].format(greeting=greeting, organization=world.organization.name, **facts)


def _local(world: World, instant: datetime) -> datetime:
    return instant.astimezone(ZoneInfo(world.organization.time_zone))
