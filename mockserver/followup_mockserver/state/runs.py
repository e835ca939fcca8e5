"""The progress of a tenant's jobs: who may run them, which have run, and which attempts are in progress."""

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import attrs

from followup._for_mockserver import format_timestamp
from followup_mockserver.state.interrupts import wait_on
from followup_mockserver.state.jobs import Job
from followup_mockserver.state.scheduler import Timer
from followup_mockserver.state.turns import Turns

MAX_JOBS_REPORTED = 1_000
"""``advance`` returns at most this many jobs, the most recent."""


@attrs.frozen(kw_only=True)
class JobRun:
    """A job that ran.

    Attributes:
        at: when it was due, by the mock's clock.
        kind: ``reminder``, ``post_visit``, ``intake``, ``stage``, ``treatment_end``, ``delivery`` or
            ``repeated_delivery``.
        about: id of the object that the job concerned.
        outcome: short description of the result, such as ``sent``.
    """

    at: datetime = attrs.field(repr=format_timestamp)
    kind: str
    about: str
    outcome: str


@attrs.frozen(kw_only=True)
class Advanced:
    """The result of advancing the clock.

    Attributes:
        now: the mock's time afterwards.
        ran: how many jobs ran.
        jobs: the last thousand of them, in the order in which they ran.
    """

    now: datetime = attrs.field(repr=format_timestamp)
    ran: int
    jobs: list[JobRun]


class Run:
    """The progress of one tenant's jobs. Thread-safe.

    Attributes:
        turns: held by the thread or the task that runs the tenant's jobs; the workers that make delivery attempts do
            not need it.
        ran: how many jobs have run since the last ``clear``.
        records: the most recent of them, in the order in which they ran.
        control: id of the control call that runs the jobs; None while they run by themselves.

    Args:
        stopped: returns whether the mock has stopped; ``wait_until_idle`` then returns at once.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self.turns = Turns()
        self.ran = 0
        self.records: deque[JobRun] = deque(maxlen=MAX_JOBS_REPORTED)
        self.control: str | None = None
        self._stopped = stopped
        self._in_progress = 0
        self._changed = threading.Condition()

    def clear(self) -> None:
        """Drop the records of earlier jobs, before the clock is advanced again."""
        self.ran = 0
        self.records.clear()

    def record(self, timer: Timer[Job], outcome: str) -> None:
        """Record a job that has run."""
        self.ran += 1
        self.records.append(JobRun(at=timer.at, kind=timer.job.kind, about=timer.job.about, outcome=outcome))

    def attempt_started(self) -> None:
        """Count an attempt that a worker is going to make."""
        with self._changed:
            self._in_progress += 1

    def attempt_ended(self, timer: Timer[Job], outcome: str) -> None:
        """Record an attempt that a worker has completed."""
        with self._changed:
            self.record(timer, outcome)
            self._in_progress -= 1
            self._changed.notify_all()

    def wait_until_idle(self) -> None:
        """Return when no attempt is in progress, or the mock has stopped."""
        with self._changed:
            while self._in_progress and not self._stopped():
                wait_on(self._changed)

    def wake(self) -> None:
        """Make the threads in ``wait_until_idle`` check again whether the mock has stopped."""
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Mark this thread or task, and the coroutines that it starts, as waiting for this run.

        Raises:
            RuntimeError: the thread or task is waiting for this run already, and would wait for itself.
        """
        outer = _entered.get()
        if any(each.run is self for each in outer):
            raise RuntimeError("a webhook handler that advance() is waiting for cannot advance the clock")
        entry = _Entry(self)
        token = _entered.set((*outer, entry))
        try:
            yield
        finally:
            entry.run = None
            _entered.reset(token)


@attrs.define(eq=False)
class _Entry:
    """A run that code has entered; None when that code has left it, because a background task may live longer."""

    run: Run | None


_entered: contextvars.ContextVar[tuple[_Entry, ...]] = contextvars.ContextVar("followup_mock_runs", default=())
"""The runs that the current code was called from. Waiting for one of them again would be a deadlock."""
