"""The jobs that send no webhook: what each does when it is due."""

import logging
from collections.abc import Callable, Mapping

from followup_mockserver.rules import messages, stages, treatments
from followup_mockserver.state.jobs import Job, JobKind
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.tenant import Tenant

_RULES: Mapping[JobKind, Callable[[Tenant, Job], Outcome]] = {
    "reminder": messages.send_reminder,
    "post_visit": messages.send_post_visit,
    "intake": messages.ask,
    "stage": stages.recompute,
    "treatment_end": treatments.end,
}

logger = logging.getLogger("followup_mockserver")


def run(tenant: Tenant, job: Job) -> Outcome:
    """Run a job that sends no webhook, and return its outcome."""
    try:
        outcome = _RULES[job.kind](tenant, job)
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
    if kind == "reminder" and (appointment := tenant.appointments.get(about)) is not None:
        return messages.obstacle_to_reminder(tenant, appointment)
    if kind == "post_visit" and (visit := tenant.visits.get(about)) is not None:
        return messages.obstacle_to_patient(tenant, visit)
    if kind == "intake" and (intake := tenant.intake_requests.get(about)) is not None:
        return messages.obstacle_to_question(tenant, intake)
    return None
