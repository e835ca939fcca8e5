"""The clock of one tenant, its jobs, which run at a later time, and the scheduler.

The clock runs with real time or is frozen; a test can advance it, and it never goes back. A job is data: it names an
object, and the engine knows how to run it. A timer holds a job and the time at which it is due.
"""

import heapq
import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

import attrs

from followup._for_mockserver import REAL_TIME


class RealTime:
    """Real time, which keeps running while a test has frozen time in this process."""

    monotonic: Final = staticmethod(REAL_TIME.monotonic)
    """Returns seconds since an arbitrary instant, as ``time.monotonic`` does."""


class Clock:
    """A clock that runs with real time, or is frozen. Times are aware datetimes in UTC.

    Attributes:
        frozen: whether only ``advance_to`` changes the time.
        advanced: how far the clock has been advanced in all, beyond real time.

    Args:
        start: the time at which the clock is frozen; None: it runs with real time from now.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.frozen: bool = start is not None
        self.advanced: timedelta = timedelta(0)
        self._held = False
        self._set_to = (start or datetime.now(UTC)).astimezone(UTC)
        self._set_when = RealTime.monotonic()

    @classmethod
    def resumed(cls, now: datetime, *, frozen: bool, advanced: timedelta) -> "Clock":
        """Return a clock that continues from a time.

        Args:
            now: the time that it shows.
            frozen: whether it is frozen at this time.
            advanced: how far it has been advanced in all.
        """
        clock = cls(now)
        clock.frozen, clock.advanced = frozen, advanced
        return clock

    def copy(self) -> "Clock":
        """Return an independent clock that shows the same time. It runs even if this one is held."""
        return Clock.resumed(self.now(), frozen=self.frozen, advanced=self.advanced)

    def now(self) -> datetime:
        """Return the current time."""
        if self.frozen or self._held:
            return self._set_to
        # Not the wall clock, which jumps (NTP, a suspended laptop): jobs would run early, or again.
        return self._set_to + timedelta(seconds=RealTime.monotonic() - self._set_when)

    def advance_to(self, instant: datetime) -> None:
        """Advance the clock to an instant. An instant in the past has no effect."""
        now = self.now()
        if instant > now:
            self.advanced += instant - now
            self._set(instant.astimezone(UTC))

    def hold(self) -> None:
        """Stop the clock until ``release``; it can still be advanced."""
        self._set(self.now())
        self._held = True

    def release(self) -> None:
        """Let a held clock run again from the time that it shows; a frozen one stays frozen."""
        self._set(self.now())
        self._held = False

    def seconds_until(self, instant: datetime) -> float:
        """Return the real seconds until the clock reaches an instant by itself.

        It is 0 for an instant in the past, and infinity for a clock that is frozen or held.
        """
        left = (instant - self.now()).total_seconds()
        if left <= 0:
            return 0.0
        return float("inf") if self.frozen or self._held else left

    def _set(self, instant: datetime) -> None:
        self._set_to = instant
        self._set_when = RealTime.monotonic()


JobKind = Literal["reminder", "post_visit", "intake", "stage", "treatment_end", "delivery", "repeated_delivery"]

SUBJECT_OF_JOB: Mapping[JobKind, str] = {
    "reminder": "appointments",
    "post_visit": "visits",
    "intake": "intake_requests",
    "stage": "appointments",
    "treatment_end": "treatments",
    "delivery": "webhook_deliveries",
    "repeated_delivery": "webhook_deliveries",
}
"""The collection that has the object of a job, by the kind of the job."""


@attrs.frozen(repr=False)
class Job:
    """A job.

    Attributes:
        kind: what to do: remind the patient of an appointment, write to the patient after a visit, ask for the missing
            data of an intake request, recompute the stage of a patient after the time of an appointment, set a
            treatment to inactive, attempt to deliver a webhook, or send it again, even if it has succeeded.
        about: id of the object that the job concerns.
    """

    kind: JobKind
    about: str


class Timer(NamedTuple):
    """A job, and when it is due. Timers that are due at the same instant run in the order of scheduling.

    It is a tuple so that the heap compares timers in C.
    """

    at: datetime
    number: int
    job: Job


class Scheduler:
    """The timers of one tenant, earliest first.

    A cancelled timer stays in the heap until it reaches the top; ``_about`` has the pending ones alone.

    Attributes:
        scheduled: the number of the last timer. It grows with each new one.
    """

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._about: dict[str, list[Timer]] = {}
        self.scheduled: int = 0

    def __len__(self) -> int:
        return sum(map(len, self._about.values()))

    def copy(self) -> "Scheduler":
        """Return an independent scheduler with the same timers."""
        twin = Scheduler()
        twin._heap = self._heap.copy()
        twin._about = {about: timers.copy() for about, timers in self._about.items()}
        twin.scheduled = self.scheduled
        return twin

    def schedule(self, at: datetime, job: Job) -> Timer:
        """Schedule a job, and return its timer."""
        timer = Timer(at, self.next_number(), job)
        self.restore(timer)
        return timer

    def restore(self, timer: Timer) -> None:
        """Add a timer that has a number."""
        self.scheduled = max(self.scheduled, timer.number)
        heapq.heappush(self._heap, timer)
        self._about.setdefault(timer.job.about, []).append(timer)

    def next_number(self) -> int:
        """Return a number that no timer has had, and that no other timer will have."""
        self.scheduled += 1
        return self.scheduled

    def cancel_about(self, about: str, kind: str | None = None) -> list[Timer]:
        """Cancel the timers of an object, of one kind or of all, and return them."""
        cancelled = self.pending(about, kind)
        for timer in cancelled:
            self._remove(timer)
        return cancelled

    def next(self) -> Timer | None:
        """Return the timer that is due first; None if there is none."""
        # To remove a timer from the middle of a heap would take a pass over all of them.
        while self._heap and self._heap[0] not in self._about.get(self._heap[0].job.about, ()):
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    def pop_due(self, instant: datetime) -> Timer | None:
        """Remove and return the first timer that is due at or before an instant; None if there is none."""
        timer = self.next()
        if timer is None or timer.at > instant:
            return None
        self._remove(heapq.heappop(self._heap))
        return timer

    def earliest(self, count: int) -> list[Timer]:
        """Return the timers that are due first, in order, without sorting all of them."""
        return heapq.nsmallest(count, itertools.chain.from_iterable(self._about.values()))

    def pending(self, about: str | None = None, kind: str | None = None) -> list[Timer]:
        """Return the pending timers, of one object or kind or of all, in the order in which they are due."""
        timers = itertools.chain.from_iterable(self._about.values()) if about is None else self._about.get(about, ())
        return sorted(timer for timer in timers if kind in (None, timer.job.kind))

    def _remove(self, timer: Timer) -> None:
        timers = self._about[timer.job.about]
        timers.remove(timer)
        if not timers:
            del self._about[timer.job.about]
