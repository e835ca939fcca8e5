"""Runs the jobs of a server in its background.

A thread waits for the next job, and workers make the delivery attempts, so that a slow receiver does not delay others.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable

from followup_mockserver.engine.jobs import ScheduledAttempt, begin, make_attempt
from followup_mockserver.schema.formats import parse_webhook_url
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.runs import Run
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import attempting
from followup_mockserver.webhooks.dispatch import Dispatcher

logger = logging.getLogger("followup_mockserver")

MAX_THREADS = 32
MAX_PER_RECEIVER = 4
"""Threads that one receiver can keep busy when it hangs, however many URLs it has."""

Task = Callable[[], None]


class Workers:
    """Runs tasks on threads that are started as needed, at most ``MAX_PER_RECEIVER`` for one receiver at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: queue.SimpleQueue[tuple[str, Task] | None] = queue.SimpleQueue()
        self._waiting: dict[str, deque[Task]] = {}
        self._running: dict[str, int] = {}
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, receiver: str, task: Task) -> None:
        """Run a task as soon as a thread is free.

        Args:
            receiver: key of the receiver; tasks with the same key share its limit.
            task: the function to run; it must not raise.
        """
        with self._lock:
            if self._running.get(receiver, 0) >= MAX_PER_RECEIVER:
                self._waiting.setdefault(receiver, deque()).append(task)
                return
            self._start(receiver, task)

    def close(self) -> None:
        """Start no further task. Threads that run one end after it."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            for _ in self._threads:
                self._ready.put(None)

    def _start(self, receiver: str, task: Task) -> None:
        self._running[receiver] = self._running.get(receiver, 0) + 1
        self._ready.put((receiver, task))
        if self._idle:
            self._idle -= 1
        elif len(self._threads) < MAX_THREADS and not self._closed:
            thread = threading.Thread(target=self._work, name="followup-mock-delivery", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (item := self._ready.get()) is not None:
            receiver, task = item
            try:
                task()
            finally:
                self._done(receiver)

    def _done(self, receiver: str) -> None:
        with self._lock:
            self._running[receiver] -= 1
            if not self._running[receiver]:
                del self._running[receiver]
            # This thread is free and takes the next task itself, so a waiting task needs no new thread.
            self._idle += 1
            waiting = self._waiting.get(receiver)
            if waiting:
                task = waiting.popleft()
                if not waiting:
                    del self._waiting[receiver]
                self._start(receiver, task)


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

        url = attempting.url_of(tenant, scheduled.attempt.endpoint)
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
