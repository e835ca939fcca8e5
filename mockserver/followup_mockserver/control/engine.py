"""What each job does when it is due, and the engine that runs them in order, each at its own due time.

In process nothing runs in the background: ``advance`` runs every job in the calling thread, ``advance_async`` in the
calling task, one after the other. What both do is a generator that yields the delivery attempts. No attempt is sent
while a tenant's lock is held.
"""

import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import ClassVar, NamedTuple

from followup_mockserver.deliveries import AttemptResult, dispatch
from followup_mockserver.deliveries.dispatch import NOTHING_TO_SEND, Dispatcher, Sending
from followup_mockserver.rules import intake_requests, patients, reminders, treatments
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.state.clock import Job, JobKind, Timer
from followup_mockserver.world.state.history import JOB_PREFIX
from followup_mockserver.world.state.journal import EndedRun, report
from followup_mockserver.world.state.records import AttemptInProgress, Trigger
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.runs import Advanced, Run
from followup_mockserver.world.state.tenant import Tenant

logger: logging.Logger = logging.getLogger("followup_mockserver")


_RULES: Mapping[JobKind, Callable[[Tenant, Job], Outcome]] = {
    "reminder": reminders.send_reminder,
    "post_visit": reminders.send_post_visit,
    "intake": intake_requests.ask,
    "stage": patients.recompute_stage,
    "treatment_end": treatments.end,
}
"""What the jobs do that send no webhook, by their kind."""


def _run_local(tenant: Tenant, job: Job) -> Outcome:
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
        return reminders.obstacle_to_patient(tenant, appointment)
    if kind == "post_visit" and (visit := tenant.visits.get(about)) is not None:
        return reminders.obstacle_to_patient(tenant, visit)
    if kind == "intake" and (intake := tenant.intake_requests.get(about)) is not None:
        return intake_requests.obstacle_to_question(tenant, intake)
    return None


_TRIGGERS: dict[JobKind, Trigger] = {"delivery": "schedule", "repeated_delivery": "disturbance"}
"""What triggers the attempts that jobs make, by the kind of the job. The other jobs send nothing."""


class ScheduledAttempt(NamedTuple):
    """A delivery attempt to send, and the timer that scheduled it."""

    timer: Timer
    attempt: AttemptInProgress


def begin(tenant: Tenant, run: Run, timer: Timer) -> ScheduledAttempt | None:
    """Run a local job, or return the attempt that the caller has to make after releasing the tenant's lock."""
    job = timer.job
    trigger = _TRIGGERS.get(job.kind)
    with tenant.caused_by(f"{JOB_PREFIX}{timer.number}"):
        attempt = None if trigger is None else dispatch.due_attempt(tenant, job.about, trigger)
        if attempt is not None:
            return ScheduledAttempt(timer, attempt)
        outcome = _run_local(tenant, job) if trigger is None else NOTHING_TO_SEND.outcome
        tenant.end_job(timer, outcome, run.control)
        if run.control is None:
            report(EndedRun(None, tenant.at, [(job, outcome)]))
    run.record(timer, outcome)
    return None


def make_attempt(
    dispatcher: Dispatcher, tenant: Tenant, run: Run, scheduled: ScheduledAttempt
) -> Sending[AttemptResult]:
    """Make a scheduled attempt, and end its job. An error inside the mock is logged and is the outcome of the job."""
    try:
        attempted = yield from dispatcher.attempt(tenant, scheduled.attempt)
    except Exception as error:
        logger.exception("a delivery attempt failed inside the mock")
        attempted = AttemptResult(Outcome(Kind.FAILED_INSIDE, type(error).__name__), 0.0)
    # An instant of its own, since the attempt may have taken long.
    with tenant.lock, tenant.caused_by(None):
        tenant.end_job(scheduled.timer, attempted.outcome, run.control)
    return attempted


Target = Callable[[datetime], datetime]
"""Returns the instant to advance a clock to, from its time when the run begins: another run may have advanced it."""


class Engine:
    """Runs the jobs of every tenant of a mock.

    Args:
        registry: the tenants.
        dispatcher: makes the attempts.
    """

    _runs_instants: ClassVar[bool] = False
    """Whether the jobs of one instant run at once. In process, each sees the effects of the attempts before it."""

    def __init__(self, registry: Registry, dispatcher: Dispatcher) -> None:
        self._registry = registry
        self._dispatcher = dispatcher
        # Weak, since a reset replaces tenants.
        self._runs: weakref.WeakKeyDictionary[Tenant, Run] = weakref.WeakKeyDictionary()
        self._runs_lock = threading.Lock()

    def start(self) -> None:
        """Start to run jobs in the background, if there is one."""

    def wake(self) -> None:
        """Make the background check what is due, if there is one."""

    def stop(self) -> None:
        """Stop running jobs. No job starts after this."""
        self._registry.stop()
        with self._runs_lock:
            # Also those of tenants that a reset has replaced: a thread may wait for their attempts.
            runs = list(self._runs.values())
        for run in runs:
            run.wake()
        self._dispatcher.close()

    async def stop_async(self) -> None:
        """Shut down the applications in the running event loop, and stop."""
        try:
            await self._dispatcher.close_async()
        finally:
            self.stop()

    def advance(self, tenant: Tenant, target: Target | None) -> Advanced:
        """Advance the clock to an instant, and run every job that is due by then, including those that jobs schedule.

        Args:
            tenant: the tenant.
            target: returns the instant; None: run the next job alone, at the time at which it is due.

        Raises:
            RuntimeError: called from a webhook handler that another call is waiting for, or in the event loop of an
                application or a task that this call would block.
            BaseException: the exception of a mounted receiver; the attempt has been recorded.
        """
        self._dispatcher.check_thread()
        run = self._run_of(tenant)
        try:
            # Entered first: a handler that would wait for its own run gets the error, and does not wait for the turn.
            with run.entered(), run.turns.held(), self._clock_held(tenant, run, target):
                advanced, raised = self._dispatcher.drive(self._advancing(tenant, run, target))
        finally:
            self.wake()
        # Raised only here, where no other exception is being handled: so its context and cause stay as they are.
        if raised is not None:
            raise raised
        return advanced

    async def advance_async(self, tenant: Tenant, target: Target | None) -> Advanced:
        """Do the same as ``advance`` in a task: asynchronous receivers run in the running event loop."""
        run = self._run_of(tenant)
        with run.entered():
            async with run.turns.held_by_task():
                with self._clock_held(tenant, run, target):
                    advanced, raised = await self._dispatcher.drive_async(self._advancing(tenant, run, target))
        if raised is not None:
            raise raised
        return advanced

    def resend(self, tenant: Tenant, delivery_id: str) -> None:
        """Make a manual retry of a delivery now.

        Raises:
            ServiceError: 400: the endpoint is disabled.
            BaseException: as ``advance``.
        """
        self._dispatcher.check_thread()
        raised = self._dispatcher.drive(self._resending(tenant, delivery_id)).raised
        if raised is not None:
            raise raised

    @contextmanager
    def _clock_held(self, tenant: Tenant, run: Run, target: Target | None) -> Iterator[None]:
        """Hold the tenant's clock while a control call runs its jobs."""
        run.clear()
        with tenant.lock:
            tenant.clock.hold()
            control = tenant.history.begin_control(tenant.now(), "step" if target is None else "advance")
            if target is None:
                tenant.journal.record_control("step", control.at, None, {})
            run.control = control.id
        try:
            yield
        finally:
            run.control = None
            with tenant.lock:
                # A call that ran nothing has caused nothing, and would only push records out of the history.
                if not run.ran:
                    tenant.history.drop(control)
                tenant.clock.release()
                tenant.notify()
                report(EndedRun(control.at, tenant.now(), [(timer.job, outcome) for timer, outcome in run.ended]))

    def _run_of(self, tenant: Tenant) -> Run:
        with self._runs_lock:
            return self._runs.setdefault(tenant, Run(lambda: self._registry.stopped))

    def _advancing(
        self, tenant: Tenant, run: Run, target: Target | None
    ) -> Sending[tuple[Advanced, BaseException | None]]:
        """Run the jobs, and return what ran, and the exception of a receiver, which ends the run."""
        with tenant.lock:
            to = None if target is None else target(tenant.clock.now())
        raised: BaseException | None = None
        while raised is None and (scheduled := self._begin_next(tenant, run, to)) is not None:
            raised = yield from self._send_all(tenant, run, scheduled)
            if to is None:
                break
        with tenant.lock:
            # After an exception the clock shows the time of the attempt, and what is due stays due.
            if to is not None and raised is None:
                tenant.clock.advance_to(to)
            return run.result(tenant.now()), raised

    def _resending(self, tenant: Tenant, delivery_id: str) -> Sending[AttemptResult]:
        with tenant.lock:
            due = partial(dispatch.due_attempt, delivery_id=delivery_id, trigger="manual")
            attempt = tenant.control("resend", due, delivery_id, {})
        if attempt is None:
            return NOTHING_TO_SEND
        return (yield from self._dispatcher.attempt(tenant, attempt))

    def _begin_next(self, tenant: Tenant, run: Run, to: datetime | None) -> list[ScheduledAttempt] | None:
        """Run the jobs that are due next, and return the attempts to make; None if none is due by ``to``.

        If ``to`` is None, run the next job alone, whenever it is due.

        A receiver whose client waits advances the clock beyond ``to``; jobs that are due by that time run as well.
        """
        # Attempts of the background may still schedule a job that is due before the next one.
        run.wait_until_idle()
        scheduled: list[ScheduledAttempt] = []
        with tenant.lock:
            first = tenant.scheduler.next()
            if first is None or tenant.ended or self._registry.stopped:
                return None
            if to is not None and first.at > max(to, tenant.clock.now()):
                return None
            # A job that is overdue does not set the clock back: it runs at the current time.
            tenant.clock.advance_to(first.at)
            now = tenant.clock.now()
            while (timer := tenant.scheduler.pop_due(now)) is not None:
                if (due := begin(tenant, run, timer)) is not None:
                    scheduled.append(due)
                if to is None or not self._runs_instants:
                    break
        return scheduled

    def _send_all(self, tenant: Tenant, run: Run, scheduled: list[ScheduledAttempt]) -> Sending[BaseException | None]:
        """Make these attempts, and return when they have ended, or with the exception of a receiver."""
        for each in scheduled:
            attempted = yield from make_attempt(self._dispatcher, tenant, run, each)
            run.record(each.timer, attempted.outcome)
            if attempted.raised is not None:
                return attempted.raised
        return None
