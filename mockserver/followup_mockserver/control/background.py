"""The engine of a server: a thread waits for the next job, and workers make the delivery attempts.

So a slow receiver does not delay others.
"""

import asyncio
import logging
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import ClassVar

from followup_mockserver import deliveries
from followup_mockserver.control.engine import Engine, ScheduledAttempt, Target, begin, make_attempt
from followup_mockserver.deliveries.dispatch import Dispatcher, Sending
from followup_mockserver.world.schema.formats import parse_webhook_url
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.runs import Advanced, Run
from followup_mockserver.world.state.tenant import Tenant

logger: logging.Logger = logging.getLogger("followup_mockserver")

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


class BackgroundEngine(Engine):
    """Runs the jobs of every tenant of a server when they are due. Thread-safe."""

    _runs_instants: ClassVar[bool] = True

    def __init__(self, registry: Registry, dispatcher: Dispatcher) -> None:
        super().__init__(registry, dispatcher)
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

    def stop(self) -> None:
        """Stop running jobs. No job starts after this."""
        # The scheduler ends before the workers do: it would submit to them.
        self._registry.stop()
        self.wake()
        if self._scheduler is not None:
            self._scheduler.join()
        self._workers.close()
        super().stop()

    async def advance_async(self, tenant: Tenant, target: Target | None) -> Advanced:
        """Do the same as ``advance`` in a thread, because it waits for workers."""
        return await asyncio.to_thread(self.advance, tenant, target)

    def _send_all(self, tenant: Tenant, run: Run, scheduled: list[ScheduledAttempt]) -> Sending[None]:
        """Let workers make these attempts, and return when they have ended."""
        yield from ()  # nothing for the driver of this thread
        for each in scheduled:
            self._submit(tenant, run, each)
        run.wait_until_idle()

    def _submit(self, tenant: Tenant, run: Run, scheduled: ScheduledAttempt) -> None:
        # Before it waits for a thread: ``advance`` returns only when queued attempts have ended, too.
        run.attempt_started()

        def attempt() -> None:
            with run.entered():
                attempted = self._dispatcher.drive(make_attempt(self._dispatcher, tenant, run, scheduled))
            run.attempt_ended(scheduled.timer, attempted.outcome)

        # By origin, so that a receiver that hangs has one share of the threads, however many endpoints it has.
        url = deliveries.url_of(tenant, scheduled.attempt.endpoint)
        self._workers.submit(parse_webhook_url(url).origin, attempt)

    def _schedule(self) -> None:
        while not self._registry.stopped:
            sleep = min((self._run_due(tenant) for tenant in self._registry.all()), default=_MAX_SLEEP)
            with self._wake:
                # A flag, because the wake may have come after the look at that tenant and before this wait.
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
                self._submit(tenant, run, each)
            return sleep
        finally:
            run.turns.release()
