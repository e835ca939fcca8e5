"""Asking for what an intake request is missing, once somebody can be asked (specification, sections 1 and 3)."""

from collections.abc import Iterator

from followup import IntakeRequest, Patient
from followup_mockserver.rules import messages
from followup_mockserver.state.jobs import AskForMissingData
from followup_mockserver.state.tenant import Tenant


def ask_soon(tenant: Tenant, intake: IntakeRequest) -> None:
    """Have the service write for what is missing, unless the organization wants no such messages."""
    if tenant.organization.intake_messages and intake.status == "new" and intake.missing:
        tenant.scheduler.schedule(tenant.now(), AskForMissingData(about=intake.id))


def ask_if_possible(tenant: Tenant, intake: IntakeRequest) -> None:
    """The same for a request that nobody could be asked about so far."""
    waiting = next(tenant.scheduler.pending(about=intake.id), None)
    if waiting is None and _obstacle(tenant, intake) is None:
        ask_soon(tenant, intake)


def ask(tenant: Tenant, job: AskForMissingData) -> str:
    """Write to the patient or a contact; the request is ``validating`` from then on. Returns the outcome."""
    intake = tenant.intake_requests.get(job.about)
    assert intake is not None  # intake requests are never removed
    if intake.status != "new" or not intake.missing:
        return "not sent: nothing is missing"
    phone = phone_to_ask(tenant, intake)
    obstacle = _obstacle(tenant, intake)
    if obstacle is not None or phone is None:
        return obstacle or messages.NO_PHONE
    tenant.intake_requests.update(intake, status="validating", updated_at=tenant.now())
    return messages.send_question(tenant, intake, record_of(tenant, intake), phone)


def phone_to_ask(tenant: Tenant, intake: IntakeRequest) -> str | None:
    """Where to write for what is missing: the patient's phone, or the first one of a contact."""
    return next(_phones(tenant, intake), None)


def record_of(tenant: Tenant, intake: IntakeRequest) -> Patient | None:
    """The patient of a request, once identified."""
    return tenant.patients.get(intake.patient) if intake.patient else None


def _phones(tenant: Tenant, intake: IntakeRequest) -> Iterator[str]:
    patient = record_of(tenant, intake)
    if patient is not None and patient.phone:
        yield patient.phone
    if phone := intake.data.get("patient", {}).get("phone"):
        yield phone
    yield from (contact["phone"] for contact in intake.data.get("contacts", ()) if contact.get("phone"))


def _obstacle(tenant: Tenant, intake: IntakeRequest) -> str | None:
    """Why nobody can be asked; None if somebody can."""
    patient = record_of(tenant, intake)
    if patient is not None and patient.opted_out:
        return messages.OPTED_OUT
    phone = phone_to_ask(tenant, intake)
    if phone is None:
        return messages.NO_PHONE
    owner = tenant.patients.find("phone", phone)
    return messages.OPTED_OUT if owner is not None and owner.opted_out else None
