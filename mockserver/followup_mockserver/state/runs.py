"""One run of a tenant's jobs: who may run them now, which have run, and which attempts are in progress."""

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import attrs

from followup_mockserver.state.jobs import Job
from followup_mockserver.state.scheduler import Timer

MAX_JOBS_REPORTED = 1_000
"""``advance`` returns at most this many jobs, the most recent."""


@attrs.frozen(kw_only=True)
class JobRun:
    """A job that ran.

    Attributes:
        at: when it was due, on the mock's clock.
        kind: ``reminder``, ``post_visit``, ``intake``, ``stage``, ``treatment_end``, ``delivery`` or
            ``repeated_delivery``.
        about: id of the object that it concerned.
        outcome: what it did, in a few words.
    """

    at: datetime
    kind: str
    about: str
    outcome: str


@attrs.frozen(kw_only=True)
class Advanced:
    """The result of advancing the clock.

    Attributes:
        now: the time of the clock afterwards.
        ran: how many jobs ran.
        jobs: the last thousand of them, in order.
    """

    now: datetime
    ran: int
    jobs: list[JobRun]


class Run:
    """The running of one tenant's jobs. Safe to use from several threads.

    Attributes:
        lock: held by the thread that runs the tenant's jobs; attempts on workers go on without it.
        ran: how many jobs have run since the last ``clear``.
        records: the most recent of them, in order.

    Args:
        stopped: whether the mock has stopped, so that nothing is worth waiting for.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self.lock = threading.Lock()
        self.ran = 0
        self.records: deque[JobRun] = deque(maxlen=MAX_JOBS_REPORTED)
        self._stopped = stopped
        self._in_progress = 0
        self._changed = threading.Condition()

    def clear(self) -> None:
        """Forget the jobs that have run; called when a new advance begins."""
        self.ran = 0
        self.records.clear()

    def record(self, timer: Timer[Job], outcome: str) -> None:
        """Record a job that has run."""
        self.ran += 1
        self.records.append(JobRun(at=timer.at, kind=timer.job.kind, about=timer.job.about, outcome=outcome))

    def attempt_started(self) -> None:
        """Count an attempt that a worker is to make."""
        with self._changed:
            self._in_progress += 1

    def attempt_ended(self, timer: Timer[Job], outcome: str) -> None:
        """Record an attempt that a worker has made."""
        with self._changed:
            self.record(timer, outcome)
            self._in_progress -= 1
            self._changed.notify_all()

    def wait_until_idle(self) -> None:
        """Return when no attempt is in progress, or the mock has stopped."""
        with self._changed:
            while self._in_progress and not self._stopped():
                self._changed.wait()

    def wake(self) -> None:
        """Make the threads in ``wait_until_idle`` check whether the mock has stopped."""
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Mark this thread, and the coroutines that it starts, as waiting for this run.

        Raises:
            RuntimeError: it is waiting for this run already, and would wait for itself.
        """
        outer = _entered.get()
        if self in outer:
            raise RuntimeError("the clock was moved from inside a webhook handler that a move of the clock waits for")
        token = _entered.set((*outer, self))
        try:
            yield
        finally:
            _entered.reset(token)


_entered: contextvars.ContextVar[tuple[Run, ...]] = contextvars.ContextVar("followup_mock_runs", default=())
"""The runs that the current code was called from: waiting for one of them is an error instead of a deadlock."""
