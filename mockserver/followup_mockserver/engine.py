"""Runs what is due, in order, with the clock at each job's own due time.

In process nothing runs by itself: ``advance`` does it all, in the calling thread, one thing after the other. In a
server a thread wakes for the next timer, and attempts to deliver run on workers. Nothing is ever sent while a tenant's
lock is held.
"""

import contextvars
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import attrs

from followup._annotations import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.rules import messages, questions, reminders, stages, treatments
from followup_mockserver.schema.webhook_urls import parse_webhook_url
from followup_mockserver.state.jobs import (
    AskForMissingData,
    AttemptDelivery,
    EndTreatment,
    Job,
    RecomputeStage,
    RepeatDelivery,
    SendPostVisitMessage,
    SendReminder,
)
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.scheduler import Timer
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import deliveries
from followup_mockserver.webhooks.deliveries import Trigger
from followup_mockserver.webhooks.mounted_sender import MountedSender
from followup_mockserver.webhooks.mounts import Mounts
from followup_mockserver.webhooks.sender import Sender
from followup_mockserver.webhooks.workers import Workers

logger = logging.getLogger("followup_mockserver")

JOBS_TOLD = 1_000
"""How many of the jobs that ran ``advance`` tells about: the last ones."""

_LONGEST_SLEEP = 3600.0


@attrs.frozen(kw_only=True)
class JobRun:
    """A job that ran.

    Attributes:
        at: when it was due, on the mock's clock.
        kind: ``reminder``, ``post_visit``, ``intake``, ``stage``, ``treatment_end``, ``delivery`` or
            ``repeated_delivery``.
        about: id of the object that it concerned.
        outcome: what came of it, in a few words.
    """

    at: datetime
    kind: str
    about: str
    outcome: str


@attrs.frozen(kw_only=True)
class Advanced:
    """What a move of the clock did.

    Attributes:
        now: the time it is.
        ran: how many jobs ran.
        jobs: the last thousand of them, in order.
    """

    now: datetime
    ran: int
    jobs: list[JobRun]


class Engine:
    """Runs the jobs of every tenant.

    Args:
        threaded: whether things happen by themselves, on threads, or only when ``advance`` is called.
        attempt_timeout: seconds that a receiver has to respond.
    """

    def __init__(
        self,
        registry: Registry,
        mounts: Mounts,
        *,
        threaded: bool,
        attempt_timeout: float = WEBHOOK_ATTEMPT_TIMEOUT,
    ) -> None:
        self._registry = registry
        self._mounts = mounts
        self._sender = Sender(attempt_timeout)
        self._mounted_sender = MountedSender(in_callers_thread=not threaded, timeout=attempt_timeout)
        self._workers = Workers() if threaded else None
        self._walks: weakref.WeakKeyDictionary[Tenant, _Walk] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._wake = threading.Condition()
        self._woken = False
        self._runner: threading.Thread | None = None

    def start(self) -> None:
        """Let things happen by themselves from now on."""
        self._registry.on_change = self.wake
        self._runner = threading.Thread(target=self._run, name="followup-mock-engine", daemon=True)
        self._runner.start()

    def wake(self) -> None:
        """Look again at what is due."""
        with self._wake:
            self._woken = True
            self._wake.notify()

    def stop(self) -> None:
        """Start nothing any more."""
        self._registry.stop()
        with self._wake:
            self._wake.notify()
        with self._lock:
            walks = list(self._walks.values())
        for walk in walks:
            walk.look_again()
        if self._runner is not None:
            self._runner.join()
        if self._workers is not None:
            self._workers.close()
        self._sender.close()
        self._mounted_sender.close()

    @property
    def stopped(self) -> bool:
        """Whether nothing is started any more, and nothing is worth waiting for."""
        return self._registry.stopped

    # --- moving the clock ----------------------------------------------------------------------------------------

    def advance(self, tenant: Tenant, to: datetime) -> Advanced:
        """Move the clock to an instant and run everything that falls due on the way, and what that causes.

        Raises:
            RuntimeError: called from inside a webhook handler that this very call is waiting for.
        """
        with self._walk(tenant) as walk:
            while self._next_instant(tenant, walk, to):
                pass
            with tenant.lock:
                tenant.clock.move_to(to)
                return Advanced(now=tenant.now(), ran=walk.ran, jobs=list(walk.told))

    def step(self, tenant: Tenant) -> Advanced:
        """Run exactly the next job, moving the clock to when it is due."""
        with self._walk(tenant) as walk:
            walk.wait_until_idle()
            with tenant.lock:
                timer = tenant.scheduler.next()
                if timer is not None and not self.stopped:
                    tenant.clock.move_to(timer.at)
                    tenant.scheduler.pop_due(timer.at)
                    self._begin(tenant, walk, timer)
            self._carry_out(tenant, walk)
            with tenant.lock:
                return Advanced(now=tenant.now(), ran=walk.ran, jobs=list(walk.told))

    def resend(self, tenant: Tenant, delivery_id: str) -> str:
        """One more attempt of a delivery, now; says what came of it."""
        return self._attempt(tenant, delivery_id, "manual")

    @contextmanager
    def _walk(self, tenant: Tenant) -> Iterator["_Walk"]:
        walk = self._walk_of(tenant)
        inside = _inside.get()
        if walk in inside:
            raise RuntimeError("the clock was moved from inside a webhook handler that a move of the clock waits for")
        with walk.turn:
            walk.start_over()
            token = _inside.set((*inside, walk))
            with tenant.lock:
                tenant.clock.hold()
            try:
                yield walk
            finally:
                with tenant.lock:
                    tenant.clock.release()
                    tenant.notify()
                _inside.reset(token)
        self.wake()

    def _walk_of(self, tenant: Tenant) -> "_Walk":
        with self._lock:
            return self._walks.setdefault(tenant, _Walk(lambda: self.stopped))

    def _next_instant(self, tenant: Tenant, walk: "_Walk", to: datetime) -> bool:
        """Run all that is due at the next instant; False when nothing is due any more up to the end."""
        walk.wait_until_idle()
        with tenant.lock:
            first = tenant.scheduler.next()
            if first is None or first.at > to or tenant.ended or self.stopped:
                return False
            tenant.clock.move_to(first.at)
            now = tenant.clock.now()
            while (timer := tenant.scheduler.pop_due(now)) is not None:
                self._begin(tenant, walk, timer)
                if self._workers is None:
                    break
        self._carry_out(tenant, walk)
        return True

    def _begin(self, tenant: Tenant, walk: "_Walk", timer: Timer[Job]) -> None:
        """Run a job that stays in the house, or put down an attempt to deliver. The lock is held."""
        if type(timer.job) not in _TRIGGERS:
            walk.tell(timer, self._run_local(tenant, timer.job))
        elif (url := deliveries.url_of(tenant, timer.job.about)) is None:
            walk.tell(timer, _NOTHING_TO_SEND)
        else:
            walk.outgoing.append((timer, url))

    def _carry_out(self, tenant: Tenant, walk: "_Walk") -> None:
        """Make the attempts that were put down, and wait for them."""
        outgoing, walk.outgoing = walk.outgoing, []
        for timer, url in outgoing:
            if self._workers is None:
                walk.tell(timer, self._attempt_due(tenant, timer))
            else:
                self._submit(tenant, walk, timer, url)
        walk.wait_until_idle()

    # --- by itself -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self.stopped:
            sleep = min((self._run_due(tenant) for tenant in self._registry.all()), default=_LONGEST_SLEEP)
            with self._wake:
                if not self._woken and not self.stopped:
                    self._wake.wait(min(sleep, _LONGEST_SLEEP))
                self._woken = False

    def _run_due(self, tenant: Tenant) -> float:
        """Run what is due now; the seconds until something is due again."""
        walk = self._walk_of(tenant)
        if not walk.turn.acquire(blocking=False):
            return _LONGEST_SLEEP  # somebody moves the clock, and wakes this thread at the end
        try:
            with tenant.lock:
                while (timer := tenant.scheduler.pop_due(tenant.clock.now())) is not None:
                    self._begin(tenant, walk, timer)
                outgoing, walk.outgoing = walk.outgoing, []
                following = tenant.scheduler.next()
                sleep = _LONGEST_SLEEP if following is None else tenant.clock.seconds_until(following.at)
            for timer, url in outgoing:
                self._submit(tenant, walk, timer, url)
            return sleep
        finally:
            walk.turn.release()

    def _submit(self, tenant: Tenant, walk: "_Walk", timer: Timer[Job], url: str) -> None:
        workers = self._workers
        assert workers is not None
        walk.begin_attempt()

        def attempt() -> None:
            # This thread is the mock's own and serves one attempt after another: nothing has to be set back.
            _inside.set((walk,))
            walk.end_attempt(timer, self._attempt_due(tenant, timer))

        workers.submit(parse_webhook_url(url).origin, attempt)

    # --- jobs ----------------------------------------------------------------------------------------------------

    def _run_local(self, tenant: Tenant, job: Job) -> str:
        try:
            outcome = _LOCAL_JOBS[type(job)](tenant, job)
        except Exception as error:
            logger.exception("a job of kind %s failed inside the mock", job.kind)
            outcome = f"failed inside the mock: {type(error).__name__}"
        tenant.notify()
        return outcome

    def _attempt_due(self, tenant: Tenant, timer: Timer[Job]) -> str:
        try:
            return self._attempt(tenant, timer.job.about, _TRIGGERS[type(timer.job)])
        except Exception as error:
            logger.exception("an attempt to deliver failed inside the mock")
            return f"failed inside the mock: {type(error).__name__}"

    def _attempt(self, tenant: Tenant, delivery_id: str, trigger: Trigger) -> str:
        # Prepared only now: while it waited for its turn its endpoint may have been paused, and its time has passed.
        with tenant.lock:
            outgoing = None if tenant.ended else deliveries.begin(tenant, delivery_id, trigger)
        if outgoing is None:
            return _NOTHING_TO_SEND
        receiver = self._mounts.receiver_for(outgoing.url)
        outcome = self._sender.send(outgoing) if receiver is None else self._mounted_sender.send(receiver, outgoing)
        with tenant.lock:
            told = deliveries.finish(tenant, outgoing, outcome)
            tenant.notify()
        return told


_NOTHING_TO_SEND = "nothing to send"

_TRIGGERS: dict[type, Trigger] = {AttemptDelivery: "schedule", RepeatDelivery: "disturbance"}
"""Jobs that send something, and so never run under the lock."""

_LOCAL_JOBS: dict[type, Callable[[Tenant, Job], str]] = {
    SendReminder: reminders.send,  # type: ignore[dict-item]
    SendPostVisitMessage: messages.send_post_visit,  # type: ignore[dict-item]
    AskForMissingData: questions.ask,  # type: ignore[dict-item]
    RecomputeStage: stages.recompute,  # type: ignore[dict-item]
    EndTreatment: treatments.end,  # type: ignore[dict-item]
}


class _Walk:
    """The running of one tenant's jobs: whose turn it is, and what is under way."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self.turn = threading.Lock()
        self.ran = 0
        self.told: deque[JobRun] = deque(maxlen=JOBS_TOLD)
        self.outgoing: list[tuple[Timer[Job], str]] = []
        """Attempts that are due, and the URLs that they go to."""
        self._stopped = stopped
        self._under_way = 0
        self._idle = threading.Condition()

    def start_over(self) -> None:
        """Tell from now on about another move of the clock."""
        self.ran = 0
        self.told = deque(maxlen=JOBS_TOLD)

    def tell(self, timer: Timer[Job], outcome: str) -> None:
        self.ran += 1
        self.told.append(JobRun(at=timer.at, kind=timer.job.kind, about=timer.job.about, outcome=outcome))

    def begin_attempt(self) -> None:
        with self._idle:
            self._under_way += 1

    def end_attempt(self, timer: Timer[Job], outcome: str) -> None:
        with self._idle:
            self.tell(timer, outcome)
            self._under_way -= 1
            self._idle.notify_all()

    def wait_until_idle(self) -> None:
        """Return when nothing is under way, or nothing is worth waiting for any more."""
        with self._idle:
            while self._under_way and not self._stopped():
                self._idle.wait()

    def look_again(self) -> None:
        """Have those who wait see that everything stops."""
        with self._idle:
            self._idle.notify_all()


_inside: contextvars.ContextVar[tuple[_Walk, ...]] = contextvars.ContextVar("followup_mock_walks", default=())
"""The moves of a clock that this code was called from, so that waiting for oneself is an error and not a deadlock."""
