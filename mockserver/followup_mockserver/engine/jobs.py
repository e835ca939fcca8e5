"""Runs one job: what happens inside the mock at once, and a delivery attempt when the caller sends it."""

import logging
from typing import NamedTuple

from followup_mockserver.rules import local_jobs
from followup_mockserver.state.history import JOB_PREFIX
from followup_mockserver.state.jobs import AttemptDelivery, Job, RepeatDelivery, Timer
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.runs import Run
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import attempting
from followup_mockserver.webhooks.attempting import DueAttempt
from followup_mockserver.webhooks.dispatch import NOTHING_TO_SEND, Attempted, Dispatcher, Sending

logger = logging.getLogger("followup_mockserver")


class ScheduledAttempt(NamedTuple):
    """A delivery attempt to send, and the timer that scheduled it."""

    timer: Timer[Job]
    attempt: DueAttempt


def begin(tenant: Tenant, run: Run, timer: Timer[Job]) -> ScheduledAttempt | None:
    """Run a local job, or return the attempt that the caller has to make after releasing the tenant's lock."""
    with tenant.caused_by(f"{JOB_PREFIX}{timer.number}"):
        match timer.job:
            case AttemptDelivery(about=delivery):
                attempt = attempting.due_attempt(tenant, delivery, "schedule")
            case RepeatDelivery(about=delivery):
                attempt = attempting.due_attempt(tenant, delivery, "disturbance")
            case local:
                outcome = local_jobs.run(tenant, local)
                tenant.end_job(timer, outcome, run.control)
                run.record(timer, outcome)
                return None
    if attempt is None:
        tenant.end_job(timer, NOTHING_TO_SEND, run.control)
        run.record(timer, NOTHING_TO_SEND)
        return None
    return ScheduledAttempt(timer, attempt)


def make_attempt(dispatcher: Dispatcher, tenant: Tenant, run: Run, scheduled: ScheduledAttempt) -> Sending[Attempted]:
    """Make a scheduled attempt, and end its job. An error inside the mock is logged and is the outcome of the job."""
    try:
        attempted = yield from dispatcher.attempt(tenant, scheduled.attempt)
    except Exception as error:
        logger.exception("a delivery attempt failed inside the mock")
        attempted = Attempted(Outcome(Kind.FAILED_INSIDE, type(error).__name__))
    with tenant.lock:
        tenant.end_job(scheduled.timer, attempted.outcome, run.control)
    return attempted
