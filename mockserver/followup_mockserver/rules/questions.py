"""Questions for the missing data of an intake request, once there is a phone (specification, sections 1 and 3)."""

from collections.abc import Iterator

from followup import IntakeRequest, Patient
from followup_mockserver.rules import messages
from followup_mockserver.state.jobs import AskForMissingData
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.tenant import Tenant


def schedule(tenant: Tenant, intake: IntakeRequest) -> None:
    """Schedule a message that asks for the missing data, unless the organization has turned these messages off."""
    if tenant.organization.intake_messages and intake.status == "new" and intake.missing:
        tenant.schedule(tenant.now(), AskForMissingData(about=intake.id))


def schedule_if_possible(tenant: Tenant, intake: IntakeRequest) -> None:
    """Schedule the message if none is pending and the recipient can be written to."""
    pending = next(tenant.scheduler.pending(about=intake.id), None)
    if pending is None and obstacle(tenant, intake) is None:
        schedule(tenant, intake)


def ask(tenant: Tenant, job: AskForMissingData) -> Outcome:
    """Send the message, and set the status of the request to ``validating``. Return the outcome of the job."""
    intake = tenant.intake_requests.get(job.about)
    assert intake is not None  # intake requests are never removed
    phone = phone_to_ask(tenant, intake)
    reason = obstacle(tenant, intake)
    if reason is not None or phone is None:
        return reason or messages.NO_PHONE
    tenant.intake_requests.update(intake, status="validating", updated_at=tenant.now())
    return messages.send_question(tenant, intake, patient_of(tenant, intake), phone)


def obstacle(tenant: Tenant, intake: IntakeRequest) -> Outcome | None:
    """Return the outcome of a message that cannot be sent as things stand; None if it can be sent."""
    if intake.status != "new" or not intake.missing:
        return Outcome(Kind.NOTHING_MISSING)
    patient = patient_of(tenant, intake)
    if patient is not None and patient.opted_out:
        return messages.OPTED_OUT
    phone = phone_to_ask(tenant, intake)
    if phone is None:
        return messages.NO_PHONE
    owner = tenant.patients.find("phone", phone)
    return messages.OPTED_OUT if owner is not None and owner.opted_out else None


def phone_to_ask(tenant: Tenant, intake: IntakeRequest) -> str | None:
    """Return the phone to send the message to: the patient's, or that of the first contact who has one."""
    return next(_phones(tenant, intake), None)


def patient_of(tenant: Tenant, intake: IntakeRequest) -> Patient | None:
    """Return the patient of a request; None until the patient is identified."""
    return tenant.patients.get(intake.patient) if intake.patient else None


def _phones(tenant: Tenant, intake: IntakeRequest) -> Iterator[str]:
    patient = patient_of(tenant, intake)
    if patient is not None and patient.phone:
        yield patient.phone
    if phone := intake.data.get("patient", {}).get("phone"):
        yield phone
    yield from (contact["phone"] for contact in intake.data.get("contacts", ()) if contact.get("phone"))
