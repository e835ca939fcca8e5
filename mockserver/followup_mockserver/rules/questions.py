"""Asking for what an intake request is missing, once somebody can be asked (specification, sections 1 and 3)."""

from collections.abc import Iterator

from followup import IntakeRequest, Patient
from followup_mockserver.rules import messages
from followup_mockserver.state.jobs import AskForMissingData
from followup_mockserver.state.tenant import World


def ask_soon(world: World, intake: IntakeRequest) -> None:
    """Have the service write for what is missing, unless the organization wants no such messages."""
    if world.organization.intake_messages and intake.status == "new" and intake.missing:
        world.scheduler.schedule(world.now(), AskForMissingData(about=intake.id))


def ask_if_possible(world: World, intake: IntakeRequest) -> None:
    """The same for a request that nobody could be asked about so far."""
    waiting = next(world.scheduler.pending(about=intake.id), None)
    if waiting is None and _obstacle(world, intake) is None:
        ask_soon(world, intake)


def ask(world: World, job: AskForMissingData) -> str:
    """Write to the patient or a contact; the request is ``validating`` from then on. Returns the outcome."""
    intake = world.intake_requests.get(job.about)
    assert intake is not None  # intake requests are never removed
    if intake.status != "new" or not intake.missing:
        return "not sent: nothing is missing"
    phone = phone_to_ask(world, intake)
    obstacle = _obstacle(world, intake)
    if obstacle is not None or phone is None:
        return obstacle or messages.NO_PHONE
    world.intake_requests.update(intake, status="validating", updated_at=world.now())
    return messages.send_question(world, intake, record_of(world, intake), phone)


def phone_to_ask(world: World, intake: IntakeRequest) -> str | None:
    """Where to write for what is missing: the patient's phone, or the first one of a contact."""
    return next(_phones(world, intake), None)


def record_of(world: World, intake: IntakeRequest) -> Patient | None:
    """The patient of a request, once identified."""
    return world.patients.get(intake.patient) if intake.patient else None


def _phones(world: World, intake: IntakeRequest) -> Iterator[str]:
    patient = record_of(world, intake)
    if patient is not None and patient.phone:
        yield patient.phone
    if phone := intake.data.get("patient", {}).get("phone"):
        yield phone
    yield from (contact["phone"] for contact in intake.data.get("contacts", ()) if contact.get("phone"))


def _obstacle(world: World, intake: IntakeRequest) -> str | None:
    """Why nobody can be asked; None if somebody can."""
    patient = record_of(world, intake)
    if patient is not None and patient.opted_out:
        return messages.OPTED_OUT
    phone = phone_to_ask(world, intake)
    if phone is None:
        return messages.NO_PHONE
    owner = world.patients.find("phone", phone)
    return messages.OPTED_OUT if owner is not None and owner.opted_out else None
