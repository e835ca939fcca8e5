"""Jobs, which run at a later time, and the scheduler, whose timers hold each a job and the time at which it is due.

A job is data: it names an object, and the engine knows how to run it.
"""

import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar, get_args

import attrs


@attrs.frozen
class _Job:
    """A job.

    Attributes:
        about: id of the object that the job concerns.
    """

    about: str


@attrs.frozen
class SendReminder(_Job):
    """Remind the patient of an appointment; ``about`` is the appointment."""

    kind: ClassVar[str] = "reminder"


@attrs.frozen
class SendPostVisitMessage(_Job):
    """Write to the patient after a visit; ``about`` is the visit."""

    kind: ClassVar[str] = "post_visit"


@attrs.frozen
class AskForMissingData(_Job):
    """Ask for the missing data of an intake request; ``about`` is the intake request."""

    kind: ClassVar[str] = "intake"


@attrs.frozen
class RecomputeStage(_Job):
    """Recompute the stage of a patient after the time of an appointment; ``about`` is the appointment."""

    kind: ClassVar[str] = "stage"


@attrs.frozen
class EndTreatment(_Job):
    """Set a treatment to inactive; ``about`` is the treatment."""

    kind: ClassVar[str] = "treatment_end"


@attrs.frozen
class AttemptDelivery(_Job):
    """Attempt to deliver a webhook; ``about`` is the webhook delivery."""

    kind: ClassVar[str] = "delivery"


@attrs.frozen
class RepeatDelivery(_Job):
    """Send a webhook again, even if it has succeeded; ``about`` is the webhook delivery."""

    kind: ClassVar[str] = "repeated_delivery"


LocalJob = SendReminder | SendPostVisitMessage | AskForMissingData | RecomputeStage | EndTreatment
"""Jobs that send nothing, so they run under the tenant's lock."""

DeliveryJob = AttemptDelivery | RepeatDelivery
"""Jobs that send a webhook, so they never run under the lock."""

Job = LocalJob | DeliveryJob

JOB_OF_KIND: dict[str, Callable[[str], Job]] = {
    each.kind: each for each in (*get_args(LocalJob), *get_args(DeliveryJob))
}


class Schedulable(Protocol):
    """The interface of a job: its kind, and the id of the object that it concerns."""

    kind: ClassVar[str]

    @property
    def about(self) -> str:
        """Id of the object that the job concerns."""
        ...


J = TypeVar("J", bound=Schedulable)


class Timer(NamedTuple, Generic[J]):
    """A job, and when it is due. Timers that are due at the same instant run in the order of scheduling.

    It is a tuple so that the heap compares timers in C.
    """

    at: datetime
    number: int
    job: J


class Scheduler(Generic[J]):
    """The timers of one tenant, earliest first.

    A cancelled timer stays in the heap until it reaches the top, or until more than half of the heap is cancelled.

    Attributes:
        scheduled: the number of the last timer. It grows with each new one.
    """

    def __init__(self) -> None:
        self._heap: list[Timer[J]] = []
        self._cancelled: set[int] = set()
        self._about: dict[str, Timer[J] | list[Timer[J]]] = {}
        self.scheduled = 0

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled)

    def copy(self) -> "Scheduler[J]":
        """Return an independent scheduler with the same timers."""
        twin: Scheduler[J] = Scheduler()
        twin._heap = self._heap.copy()
        twin._cancelled = self._cancelled.copy()
        twin._about = {
            about: timers.copy() if type(timers) is list else timers for about, timers in self._about.items()
        }
        twin.scheduled = self.scheduled
        return twin

    def schedule(self, at: datetime, job: J) -> Timer[J]:
        """Schedule a job, and return its timer."""
        return self._add(Timer(at, self.next_number(), job))

    def restore(self, timer: Timer[J]) -> None:
        """Add a timer of a saved scheduler, with its number."""
        self.scheduled = max(self.scheduled, timer.number)
        self._add(timer)

    def next_number(self) -> int:
        """Return a number that no timer has had, and that no other timer will have."""
        self.scheduled += 1
        return self.scheduled

    def _add(self, timer: Timer[J]) -> Timer[J]:
        heapq.heappush(self._heap, timer)
        job = timer.job
        about = job.about
        others = self._about.get(about)
        if others is None:
            self._about[about] = timer
        elif isinstance(others, list):
            others.append(timer)
        else:
            self._about[about] = [others, timer]
        return timer

    def cancel(self, timer: Timer[J]) -> None:
        """Cancel a timer. A timer that has run, or is cancelled already, is ignored."""
        if not self._unindex(timer):
            return
        self._cancelled.add(timer.number)
        if len(self._cancelled) > len(self) + 64:
            self._heap = list(self._pending())
            self._cancelled.clear()
            heapq.heapify(self._heap)

    def cancel_about(self, about: str, kind: str | None = None) -> list[Timer[J]]:
        """Cancel the timers of an object, of one kind or of all, and return them."""
        timers = list(self._timers_about(about, kind))
        for timer in timers:
            self.cancel(timer)
        return timers

    def next(self) -> Timer[J] | None:
        """Return the timer that is due first; None if there is none."""
        heap, cancelled = self._heap, self._cancelled
        while heap and heap[0].number in cancelled:
            cancelled.remove(heapq.heappop(heap).number)
        return heap[0] if heap else None

    def pop_due(self, instant: datetime) -> Timer[J] | None:
        """Remove and return the first timer that is due at or before an instant; None if there is none."""
        timer = self.next()
        if timer is None or timer.at > instant:
            return None
        heapq.heappop(self._heap)
        self._unindex(timer)
        return timer

    def earliest(self, count: int) -> list[Timer[J]]:
        """Return the timers that are due first, in order, without sorting all of them."""
        return heapq.nsmallest(count, self._pending())

    def pending(self, about: str | None = None, kind: str | None = None) -> Iterator[Timer[J]]:
        """Return the pending timers, of one object or kind or of all, in the order in which they are due."""
        if about is not None:
            return iter(sorted(self._timers_about(about, kind)))
        return iter(sorted(timer for timer in self._pending() if kind in (None, timer.job.kind)))

    def _pending(self) -> Iterator[Timer[J]]:
        return (timer for timer in self._heap if timer.number not in self._cancelled)

    def _timers_about(self, about: str, kind: str | None) -> Iterator[Timer[J]]:
        timers = self._about.get(about, [])
        return (timer for timer in (timers if isinstance(timers, list) else [timers]) if kind in (None, timer.job.kind))

    def _unindex(self, timer: Timer[J]) -> bool:
        """Remove a timer from the index; return False if it is not pending."""
        about = timer.job.about
        timers = self._about.get(about)
        if timers is timer:
            del self._about[about]
            return True
        if not isinstance(timers, list) or timer not in timers:
            return False
        timers.remove(timer)
        if not timers:
            del self._about[about]
        return True
