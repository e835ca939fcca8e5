"""The jobs that send no webhook: what each does when it is due."""

import logging
from typing import assert_never

from followup_mockserver.rules import messages, questions, reminders, stages, treatments
from followup_mockserver.state.jobs import (
    AskForMissingData,
    EndTreatment,
    LocalJob,
    RecomputeStage,
    SendPostVisitMessage,
    SendReminder,
)
from followup_mockserver.state.tenant import Tenant

logger = logging.getLogger("followup_mockserver")


def run(tenant: Tenant, job: LocalJob) -> str:
    """Run a job that sends no webhook, and return a summary of its outcome."""
    try:
        outcome = _run_job(tenant, job)
    except Exception as error:
        logger.exception("a job of kind %s failed inside the mock", job.kind)
        outcome = f"failed inside the mock: {type(error).__name__}"
    tenant.notify()
    return outcome


def _run_job(tenant: Tenant, job: LocalJob) -> str:
    match job:
        case SendReminder():
            return reminders.send(tenant, job)
        case SendPostVisitMessage():
            return messages.send_post_visit(tenant, job)
        case AskForMissingData():
            return questions.ask(tenant, job)
        case RecomputeStage():
            return stages.recompute(tenant, job)
        case EndTreatment():
            return treatments.end(tenant, job)
        case _:
            assert_never(job)
