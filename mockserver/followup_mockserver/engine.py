"""Runs the jobs that are due, in order, with the clock at each job's own due time.

In process nothing runs in the background: ``advance`` runs every job in the calling thread, one after the other. In a
server, a scheduler thread sleeps until the next job is due, and workers make the delivery attempts. No attempt is sent
while a tenant's lock is held.
"""

import logging
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple, assert_never

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.rules import messages, questions, reminders, stages, treatments
from followup_mockserver.schema.webhook_urls import parse_webhook_url
from followup_mockserver.state.jobs import (
    AskForMissingData,
    AttemptDelivery,
    EndTreatment,
    Job,
    LocalJob,
    RecomputeStage,
    RepeatDelivery,
    SendPostVisitMessage,
    SendReminder,
)
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.runs import Advanced, Run
from followup_mockserver.state.scheduler import Timer
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import deliveries
from followup_mockserver.webhooks.deliveries import DueAttempt
from followup_mockserver.webhooks.dispatch import NOTHING_TO_SEND, Dispatcher
from followup_mockserver.webhooks.mounts import Mounts
from followup_mockserver.webhooks.workers import Workers

logger = logging.getLogger("followup_mockserver")

_MAX_SLEEP = 3600.0
"""Seconds after which the scheduler thread checks what is due, even if nothing has woken it."""


class _ScheduledAttempt(NamedTuple):
    """A delivery attempt to send, and the timer that scheduled it."""

    timer: Timer[Job]
    attempt: DueAttempt


class Engine:
    """Runs the jobs of every tenant of a mock.

    Args:
        registry: the tenants.
        mounts: the applications that receive webhooks in this process.
        threaded: whether jobs run in the background, on threads, or only when ``advance`` is called.
        network: whether webhooks for URLs at which nothing is mounted are sent over the network.
        attempt_timeout: seconds that a receiver has to respond.
    """

    def __init__(
        self,
        registry: Registry,
        mounts: Mounts,
        *,
        threaded: bool,
        network: bool = True,
        attempt_timeout: float = WEBHOOK_ATTEMPT_TIMEOUT,
    ) -> None:
        self._registry = registry
        self._dispatcher = Dispatcher(mounts, in_callers_thread=not threaded, timeout=attempt_timeout, network=network)
        self._workers = Workers() if threaded else None
        self._runs: weakref.WeakKeyDictionary[Tenant, Run] = weakref.WeakKeyDictionary()
        self._runs_lock = threading.Lock()
        self._wake = threading.Condition()
        self._woken = False
        self._scheduler: threading.Thread | None = None

    def start(self) -> None:
        """Start the background scheduler."""
        self._registry.on_change = self.wake
        self._scheduler = threading.Thread(target=self._schedule, name="followup-mock-engine", daemon=True)
        self._scheduler.start()

    def wake(self) -> None:
        """Make the background scheduler check what is due."""
        with self._wake:
            self._woken = True
            self._wake.notify()

    def stop(self) -> None:
        """Stop the background scheduler and the workers. No job starts after this."""
        self._registry.stop()
        with self._wake:
            self._wake.notify()
        with self._runs_lock:
            runs = list(self._runs.values())
        for run in runs:
            run.wake()
        if self._scheduler is not None:
            self._scheduler.join()
        if self._workers is not None:
            self._workers.close()
        self._dispatcher.close()

    @property
    def stopped(self) -> bool:
        """Whether the engine has stopped, so that no further job starts."""
        return self._registry.stopped

    # --- the clock -----------------------------------------------------------------------------------------------

    def advance(self, tenant: Tenant, to: datetime) -> Advanced:
        """Advance the clock to an instant, and run every job that is due by then, including those that jobs schedule.

        Raises:
            RuntimeError: called from a webhook handler that another ``advance`` or ``step`` is waiting for.
        """
        with self._run(tenant) as run:
            while self._run_next_instant(tenant, run, to):
                pass
            with tenant.lock:
                tenant.clock.advance_to(to)
                return Advanced(now=tenant.now(), ran=run.ran, jobs=list(run.records))

    def step(self, tenant: Tenant) -> Advanced:
        """Advance the clock to the due time of the next job, and run that job only.

        Raises:
            RuntimeError: called from a webhook handler that another ``advance`` or ``step`` is waiting for.
        """
        with self._run(tenant) as run:
            run.wait_until_idle()
            scheduled = None
            with tenant.lock:
                timer = tenant.scheduler.next()
                if timer is not None and not self.stopped:
                    tenant.clock.advance_to(timer.at)
                    tenant.scheduler.pop_due(timer.at)
                    scheduled = self._begin(tenant, run, timer)
            self._send_all(tenant, run, [] if scheduled is None else [scheduled])
            with tenant.lock:
                return Advanced(now=tenant.now(), ran=run.ran, jobs=list(run.records))

    def resend(self, tenant: Tenant, delivery_id: str) -> str:
        """Make a manual retry of a delivery now, and return a summary of its outcome.

        Raises:
            ServiceError: 400: the endpoint is disabled.
        """
        with tenant.lock:
            attempt = deliveries.due_attempt(tenant, delivery_id, "manual")
        return NOTHING_TO_SEND if attempt is None else self._dispatcher.attempt(tenant, attempt)

    @contextmanager
    def _run(self, tenant: Tenant) -> Iterator[Run]:
        """Hold the tenant's clock while this thread runs its jobs."""
        run = self._run_of(tenant)
        with run.entered(), run.lock:
            run.clear()
            with tenant.lock:
                tenant.clock.hold()
            try:
                yield run
            finally:
                with tenant.lock:
                    tenant.clock.release()
                    tenant.notify()
        self.wake()

    def _run_of(self, tenant: Tenant) -> Run:
        with self._runs_lock:
            return self._runs.setdefault(tenant, Run(lambda: self.stopped))

    def _run_next_instant(self, tenant: Tenant, run: Run, to: datetime) -> bool:
        """Run every job that is due at the next instant; return False if none is due by ``to``."""
        run.wait_until_idle()
        scheduled: list[_ScheduledAttempt] = []
        with tenant.lock:
            first = tenant.scheduler.next()
            if first is None or first.at > to or tenant.ended or self.stopped:
                return False
            tenant.clock.advance_to(first.at)
            now = tenant.clock.now()
            while (timer := tenant.scheduler.pop_due(now)) is not None:
                if (due := self._begin(tenant, run, timer)) is not None:
                    scheduled.append(due)
                if self._workers is None:
                    break  # in process, a job sees the effects of the attempts before it
        self._send_all(tenant, run, scheduled)
        return True

    def _send_all(self, tenant: Tenant, run: Run, scheduled: list[_ScheduledAttempt]) -> None:
        """Make these attempts, and wait until they have ended."""
        for each in scheduled:
            if self._workers is None:
                run.record(each.timer, self._attempt(tenant, each))
            else:
                self._submit(self._workers, tenant, run, each)
        run.wait_until_idle()

    # --- in the background ---------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        while not self.stopped:
            sleep = min((self._run_due(tenant) for tenant in self._registry.all()), default=_MAX_SLEEP)
            with self._wake:
                if not self._woken and not self.stopped:
                    self._wake.wait(min(sleep, _MAX_SLEEP))
                self._woken = False

    def _run_due(self, tenant: Tenant) -> float:
        """Start the jobs that are due now, and return the seconds until the next one is due."""
        assert self._workers is not None
        run = self._run_of(tenant)
        if not run.lock.acquire(blocking=False):
            return _MAX_SLEEP  # ``advance`` or ``step`` is running the jobs, and wakes this thread when it ends
        try:
            scheduled: list[_ScheduledAttempt] = []
            with tenant.lock:
                while (timer := tenant.scheduler.pop_due(tenant.clock.now())) is not None:
                    if (due := self._begin(tenant, run, timer)) is not None:
                        scheduled.append(due)
                following = tenant.scheduler.next()
                sleep = _MAX_SLEEP if following is None else tenant.clock.seconds_until(following.at)
            for each in scheduled:
                self._submit(self._workers, tenant, run, each)
            return sleep
        finally:
            run.lock.release()

    def _submit(self, workers: Workers, tenant: Tenant, run: Run, scheduled: _ScheduledAttempt) -> None:
        run.attempt_started()

        def attempt() -> None:
            with run.entered():
                outcome = self._attempt(tenant, scheduled)
            run.attempt_ended(scheduled.timer, outcome)

        url = deliveries.url_of(tenant, scheduled.attempt.endpoint)
        workers.submit(parse_webhook_url(url).origin, attempt)

    # --- jobs ----------------------------------------------------------------------------------------------------

    def _begin(self, tenant: Tenant, run: Run, timer: Timer[Job]) -> _ScheduledAttempt | None:
        """Run a local job, or return the attempt that the caller has to send after releasing the tenant's lock."""
        match timer.job:
            case AttemptDelivery(about=delivery):
                attempt = deliveries.due_attempt(tenant, delivery, "schedule")
            case RepeatDelivery(about=delivery):
                attempt = deliveries.due_attempt(tenant, delivery, "disturbance")
            case local:
                run.record(timer, _run_local(tenant, local))
                return None
        if attempt is None:
            run.record(timer, NOTHING_TO_SEND)
            return None
        return _ScheduledAttempt(timer, attempt)

    def _attempt(self, tenant: Tenant, scheduled: _ScheduledAttempt) -> str:
        try:
            return self._dispatcher.attempt(tenant, scheduled.attempt)
        except Exception as error:
            logger.exception("a delivery attempt failed inside the mock")
            return f"failed inside the mock: {type(error).__name__}"


def _run_local(tenant: Tenant, job: LocalJob) -> str:
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
