"""The jobs that send no webhook: what each does when it is due."""

import logging
from typing import assert_never

from followup_mockserver.rules import messages, stages, treatments
from followup_mockserver.state.jobs import (
    AskForMissingData,
    EndTreatment,
    LocalJob,
    RecomputeStage,
    SendPostVisitMessage,
    SendReminder,
)
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.tenant import Tenant

logger = logging.getLogger("followup_mockserver")


def run(tenant: Tenant, job: LocalJob) -> Outcome:
    """Run a job that sends no webhook, and return its outcome."""
    try:
        outcome = _run_job(tenant, job)
    except Exception as error:
        logger.exception("a job of kind %s failed inside the mock", job.kind)
        outcome = Outcome(Kind.FAILED_INSIDE, type(error).__name__)
    tenant.notify()
    return outcome


def forecast(tenant: Tenant, kind: str, about: str | None) -> Outcome | None:
    """Return the outcome that a pending job would have if it were due now, and sent no message.

    Args:
        tenant: the state of the organization.
        kind: kind of the job.
        about: id of the object that it concerns.

    Returns:
        The outcome; None if nothing is known to prevent the message, or the job sends none.
    """
    about = about or ""
    if kind == SendReminder.kind and (appointment := tenant.appointments.get(about)) is not None:
        return messages.obstacle_to_reminder(tenant, appointment)
    if kind == SendPostVisitMessage.kind and (visit := tenant.visits.get(about)) is not None:
        return messages.obstacle_to_patient(tenant, visit)
    if kind == AskForMissingData.kind and (intake := tenant.intake_requests.get(about)) is not None:
        return messages.obstacle_to_question(tenant, intake)
    return None


def _run_job(tenant: Tenant, job: LocalJob) -> Outcome:
    match job:
        case SendReminder():
            return messages.send_reminder(tenant, job)
        case SendPostVisitMessage():
            return messages.send_post_visit(tenant, job)
        case AskForMissingData():
            return messages.ask(tenant, job)
        case RecomputeStage():
            return stages.recompute(tenant, job)
        case EndTreatment():
            return treatments.end(tenant, job)
        case _:
            assert_never(job)
