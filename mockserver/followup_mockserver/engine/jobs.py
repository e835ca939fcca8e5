"""Runs one job that is due: in process, and in the background of a server."""

import logging
from typing import NamedTuple

from followup_mockserver.rules import local_jobs
from followup_mockserver.state.history import JOB_PREFIX
from followup_mockserver.state.jobs import JobKind, Timer
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.runs import Run
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import attempting
from followup_mockserver.webhooks.attempting import DueAttempt, Trigger
from followup_mockserver.webhooks.dispatch import NOTHING_TO_SEND, Attempted, Dispatcher, Sending

logger = logging.getLogger("followup_mockserver")

_TRIGGERS: dict[JobKind, Trigger] = {"delivery": "schedule", "repeated_delivery": "disturbance"}
"""What triggers the attempts that jobs make, by the kind of the job. The other jobs send nothing."""


class ScheduledAttempt(NamedTuple):
    """A delivery attempt to send, and the timer that scheduled it."""

    timer: Timer
    attempt: DueAttempt


def begin(tenant: Tenant, run: Run, timer: Timer) -> ScheduledAttempt | None:
    """Run a local job, or return the attempt that the caller has to make after releasing the tenant's lock."""
    job = timer.job
    trigger = _TRIGGERS.get(job.kind)
    with tenant.caused_by(f"{JOB_PREFIX}{timer.number}"):
        attempt = None if trigger is None else attempting.due_attempt(tenant, job.about, trigger)
        if attempt is not None:
            return ScheduledAttempt(timer, attempt)
        outcome = local_jobs.run(tenant, job) if trigger is None else NOTHING_TO_SEND
    tenant.end_job(timer, outcome, run.control)
    run.record(timer, outcome)
    return None


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
