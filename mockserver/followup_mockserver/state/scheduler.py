"""Everything that happens later is a timer that holds a job, and a job is data."""

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar


class Schedulable(Protocol):
    """What the scheduler needs to know of a job: its kind, and the id of the object that it concerns."""

    kind: ClassVar[str]

    @property
    def about(self) -> str: ...


J = TypeVar("J", bound=Schedulable)


class Timer(NamedTuple, Generic[J]):
    """A job and when it is due. Timers that are due at the same instant run in the order of scheduling.

    A tuple, so that the heap compares timers without calling back into Python.
    """

    at: datetime
    number: int
    job: J


class Scheduler(Generic[J]):
    """The timers of one tenant, earliest first.

    A cancelled timer stays in the heap until it comes up, or until such timers are more than half of it.
    """

    def __init__(self) -> None:
        self._heap: list[Timer[J]] = []
        self._cancelled: set[int] = set()
        self._about: dict[str, Timer[J] | list[Timer[J]]] = {}
        self.scheduled = 0
        """How many timers there have ever been; it tells whether there is a new one."""

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled)

    def schedule(self, at: datetime, job: J) -> Timer[J]:
        """Have the job run at this instant."""
        self.scheduled += 1
        timer = Timer(at, self.scheduled, job)
        heapq.heappush(self._heap, timer)
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
        """Drop a timer; one that has run or was dropped already stays so."""
        if not self._forget(timer):
            return
        self._cancelled.add(timer.number)
        if len(self._cancelled) > len(self) + 64:
            self._heap = list(self._waiting())
            self._cancelled.clear()
            heapq.heapify(self._heap)

    def cancel_about(self, about: str, kind: str | None = None) -> int:
        """Drop the timers of one object; returns how many."""
        timers = list(self._timers_about(about, kind))
        for timer in timers:
            self.cancel(timer)
        return len(timers)

    def next(self) -> Timer[J] | None:
        """The timer that is due first; None if there is none."""
        heap, cancelled = self._heap, self._cancelled
        while heap and heap[0].number in cancelled:
            cancelled.remove(heapq.heappop(heap).number)
        return heap[0] if heap else None

    def pop_due(self, instant: datetime) -> Timer[J] | None:
        """Take the first timer that is due at or before the instant; None if there is none."""
        timer = self.next()
        if timer is None or timer.at > instant:
            return None
        heapq.heappop(self._heap)
        self._forget(timer)
        return timer

    def earliest(self, count: int) -> list[Timer[J]]:
        """The timers that are due first, in order; does not sort all of them."""
        return heapq.nsmallest(count, self._waiting())

    def pending(self, about: str | None = None, kind: str | None = None) -> Iterator[Timer[J]]:
        """The timers that wait, in the order in which they are due."""
        if about is not None:
            return iter(sorted(self._timers_about(about, kind)))
        return iter(sorted(timer for timer in self._waiting() if kind in (None, timer.job.kind)))

    def _waiting(self) -> Iterator[Timer[J]]:
        return (timer for timer in self._heap if timer.number not in self._cancelled)

    def _timers_about(self, about: str, kind: str | None) -> Iterator[Timer[J]]:
        timers = self._about.get(about, [])
        return (timer for timer in (timers if isinstance(timers, list) else [timers]) if kind in (None, timer.job.kind))

    def _forget(self, timer: Timer[J]) -> bool:
        """Take a timer out of the index; False if it is not in there, because it no longer waits."""
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
