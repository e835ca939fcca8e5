"""The progress of a tenant's jobs: who may run them, which have run, and which attempts are in progress."""

import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime

import attrs

from followup._for_mockserver import FrozenValue, format_timestamp
from followup_mockserver.world.outcomes import Outcome
from followup_mockserver.world.state.clock import Timer

_BETWEEN_LOOKS = 0.001
"""Seconds after which a task looks again whether it may go on. Two tasks rarely advance one clock at once."""


class Turns:
    """A mutex that a thread or an asyncio task holds. A task waits for it without blocking its event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: list[int] = []  # identities of the threads whose tasks hold the mutex, or wait for it

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the mutex in this thread.

        Raises:
            RuntimeError: a task in the event loop of this thread holds it or waits for it; the thread would wait for
                itself.
        """
        if threading.get_ident() in self._loops:
            raise RuntimeError(
                "a task of this event loop is advancing the clock, and this call would block it; "
                "use 'await service.advance_async()'"
            )
        with self._lock:
            yield

    @asynccontextmanager
    async def held_by_task(self) -> AsyncIterator[None]:
        """Hold the mutex in this task.

        Raises:
            RuntimeError: there is no running asyncio event loop.
        """
        import asyncio  # late, because a mock of its own process does not need it

        asyncio.get_running_loop()  # raises the error where there is none, as under trio
        thread = threading.get_ident()
        self._loops.append(thread)
        try:
            while not self.take():  # noqa: ASYNC110 - threads hold it too, and an event belongs to one loop
                await asyncio.sleep(_BETWEEN_LOOKS)
            try:
                yield
            finally:
                self.release()
        finally:
            self._loops.remove(thread)

    def take(self) -> bool:
        """Hold the mutex if it is free, and return whether it was; the caller releases it."""
        return self._lock.acquire(blocking=False)

    def release(self) -> None:
        """Let another thread or task hold the mutex."""
        self._lock.release()


MAX_JOBS_REPORTED = 1_000
"""``advance`` returns at most this many jobs, the most recent."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class JobRun(FrozenValue):
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


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Advanced(FrozenValue):
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
        ended: the last thousand of them, with their outcomes.
        control: id of the control call that runs the jobs; None while they run by themselves.

    Args:
        stopped: returns whether the mock has stopped; ``wait_until_idle`` then returns at once.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self.turns: Turns = Turns()
        self.ran: int = 0
        self.ended: deque[tuple[Timer, Outcome]] = deque(maxlen=MAX_JOBS_REPORTED)
        self.control: str | None = None
        self._stopped = stopped
        self._in_progress = 0
        self._changed = threading.Condition()

    def clear(self) -> None:
        """Drop the records of earlier jobs, before the clock is advanced again."""
        self.ran = 0
        self.ended.clear()

    def record(self, timer: Timer, outcome: Outcome) -> None:
        """Record a job that has run."""
        self.ran += 1
        self.ended.append((timer, outcome))

    def result(self, now: datetime) -> Advanced:
        """Return what has run since the last ``clear``."""
        jobs = [
            JobRun(at=timer.at, kind=timer.job.kind, about=timer.job.about, outcome=outcome.text)
            for timer, outcome in self.ended
        ]
        return Advanced(now=now, ran=self.ran, jobs=jobs)

    def attempt_started(self) -> None:
        """Count an attempt that a worker is going to make."""
        with self._changed:
            self._in_progress += 1

    def attempt_ended(self, timer: Timer, outcome: Outcome) -> None:
        """Record an attempt that a worker has completed."""
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


@attrs.define(eq=False, repr=False)
class _Entry:
    """A run that code has entered; None when that code has left it, because a background task may live longer."""

    run: Run | None


_entered: contextvars.ContextVar[tuple[_Entry, ...]] = contextvars.ContextVar("followup_mock_runs", default=())
"""The runs that the current code was called from. Waiting for one of them again would be a deadlock."""
