"""The jobs of the mock: what each does when it is due, and the background of a server, which runs those that are due.

In the background, a thread waits for the next job, and workers make the delivery attempts, so that a slow receiver does
not delay others.
"""

import logging
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from followup_mockserver import deliveries
from followup_mockserver.deliveries import AttemptResult
from followup_mockserver.deliveries.dispatch import NOTHING_TO_SEND, Dispatcher, Sending
from followup_mockserver.rules import messages, patients, treatments
from followup_mockserver.world.schema.formats import parse_webhook_url
from followup_mockserver.world.state.clock import Job, JobKind, Timer
from followup_mockserver.world.state.history import JOB_PREFIX
from followup_mockserver.world.state.journal import EndedRun, report
from followup_mockserver.world.state.outcomes import Kind, Outcome
from followup_mockserver.world.state.records import AttemptInProgress, Trigger
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.runs import Run
from followup_mockserver.world.state.tenant import Tenant

logger: logging.Logger = logging.getLogger("followup_mockserver")

_RULES: Mapping[JobKind, Callable[[Tenant, Job], Outcome]] = {
    "reminder": messages.send_reminder,
    "post_visit": messages.send_post_visit,
    "intake": messages.ask,
    "stage": patients.recompute_stage,
    "treatment_end": treatments.end,
}
"""What the jobs do that send no webhook, by their kind."""


def _run_local(tenant: Tenant, job: Job) -> Outcome:
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
        attempt = None if trigger is None else deliveries.due_attempt(tenant, job.about, trigger)
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
    with tenant.lock, tenant.caused_by(None):
        tenant.end_job(scheduled.timer, attempted.outcome, run.control)
    return attempted


MAX_PER_RECEIVER = 4
"""Threads that one receiver can keep busy when it hangs, however many URLs it has."""

Task = Callable[[], object]


class Workers:
    """Runs tasks, at most ``MAX_PER_RECEIVER`` for one receiver at a time, on threads that end when nothing waits.

    The threads are daemons, unlike those of ``concurrent.futures``: a process does not wait for a receiver that hangs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: defaultdict[str, deque[Task]] = defaultdict(deque)
        self._running: Counter[str] = Counter()

    def submit(self, receiver: str, task: Task) -> None:
        """Run a task as soon as a thread is free.

        Args:
            receiver: key of the receiver; tasks with the same key share its limit.
            task: the function to run; what it raises is logged.
        """
        with self._lock:
            self._waiting[receiver].append(task)
            if self._running[receiver] < MAX_PER_RECEIVER:
                self._running[receiver] += 1
                threading.Thread(
                    target=self._work, args=(receiver,), name="followup-mock-delivery", daemon=True
                ).start()

    def close(self) -> None:
        """Start no further task that waits for a thread. Those that run are not waited for."""
        with self._lock:
            self._waiting.clear()

    def _work(self, receiver: str) -> None:
        while True:
            with self._lock:
                if not self._waiting[receiver]:
                    self._running[receiver] -= 1
                    return
                task = self._waiting[receiver].popleft()
            try:
                task()
            except BaseException:  # even SystemExit must not end a thread that others wait for
                logger.exception("a delivery attempt failed inside the mock")


_MAX_SLEEP = 3600.0
"""Seconds after which the scheduler thread checks what is due, even if nothing has woken it."""


class Background:
    """Runs the jobs of every tenant of a server when they are due. Thread-safe.

    Args:
        registry: the tenants.
        dispatcher: makes the attempts.
        run_of: returns the progress of a tenant's jobs.
    """

    def __init__(self, registry: Registry, dispatcher: Dispatcher, run_of: Callable[[Tenant], Run]) -> None:
        self._registry = registry
        self._dispatcher = dispatcher
        self._run_of = run_of
        self._workers = Workers()
        self._wake = threading.Condition()
        self._woken = False
        self._scheduler: threading.Thread | None = None

    def start(self) -> None:
        """Start the scheduler thread."""
        self._registry.on_change = self.wake
        self._scheduler = threading.Thread(target=self._schedule, name="followup-mock-engine", daemon=True)
        self._scheduler.start()

    def wake(self) -> None:
        """Make the scheduler thread check what is due, or whether the mock has stopped."""
        with self._wake:
            self._woken = True
            self._wake.notify()

    def join(self) -> None:
        """Wait until the scheduler thread of a stopped mock has ended, and stop the workers."""
        self.wake()
        if self._scheduler is not None:
            self._scheduler.join()
        self._workers.close()

    def submit(self, tenant: Tenant, run: Run, scheduled: ScheduledAttempt) -> None:
        """Let a worker make an attempt."""
        run.attempt_started()

        def attempt() -> None:
            with run.entered():
                attempted = self._dispatcher.drive(make_attempt(self._dispatcher, tenant, run, scheduled))
            if attempted.raised is not None:  # not by a receiver, whose exceptions are logged and not raised here
                logger.error("a delivery attempt failed inside the mock", exc_info=attempted.raised)
            run.attempt_ended(scheduled.timer, attempted.outcome)

        url = deliveries.url_of(tenant, scheduled.attempt.endpoint)
        self._workers.submit(parse_webhook_url(url).origin, attempt)

    def _schedule(self) -> None:
        while not self._registry.stopped:
            sleep = min((self._run_due(tenant) for tenant in self._registry.all()), default=_MAX_SLEEP)
            with self._wake:
                if not self._woken and not self._registry.stopped:
                    self._wake.wait(min(sleep, _MAX_SLEEP))
                self._woken = False

    def _run_due(self, tenant: Tenant) -> float:
        """Start the jobs that are due now, and return the seconds until the next one is due."""
        run = self._run_of(tenant)
        if not run.turns.take():
            return _MAX_SLEEP  # ``advance`` or ``step`` is running the jobs, and wakes this thread when it ends
        try:
            scheduled: list[ScheduledAttempt] = []
            with tenant.lock:
                while (timer := tenant.scheduler.pop_due(tenant.clock.now())) is not None:
                    if (due := begin(tenant, run, timer)) is not None:
                        scheduled.append(due)
                following = tenant.scheduler.next()
                sleep = _MAX_SLEEP if following is None else tenant.clock.seconds_until(following.at)
            for each in scheduled:
                self.submit(tenant, run, each)
            return sleep
        finally:
            run.turns.release()
