"""Everything that happens later is a timer that holds a job, and a job is data."""

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar, Generic, Protocol, TypeVar


class Schedulable(Protocol):
    """What the scheduler needs to know of a job: its kind, and the id of the object that it concerns."""

    kind: ClassVar[str]

    @property
    def about(self) -> str: ...


J = TypeVar("J", bound=Schedulable)


class Timer(Generic[J]):
    """A job and when it is due. Timers that are due at the same instant run in the order of scheduling."""

    __slots__ = ("_number", "at", "job", "pending")

    def __init__(self, at: datetime, number: int, job: J) -> None:
        self.at = at
        self.job = job
        self.pending = True
        self._number = number

    def __lt__(self, other: "Timer[J]") -> bool:
        return self.at < other.at if self.at != other.at else self._number < other._number

    def __repr__(self) -> str:
        return f"<Timer {self.job.kind} about {self.job.about} at {self.at.isoformat()}>"


class Scheduler(Generic[J]):
    """The timers of one world, earliest first.

    A cancelled timer stays in the heap until it comes up, or until such timers are more than half of it.
    """

    def __init__(self) -> None:
        # Entries carry their instant as a plain number: the heap then compares numbers, not datetimes.
        self._heap: list[tuple[float, int, Timer[J]]] = []
        self._about: dict[str, Timer[J] | list[Timer[J]]] = {}
        self.scheduled = 0
        """How many timers there have ever been; it tells whether there is a new one."""
        self._pending = 0

    def __len__(self) -> int:
        return self._pending

    def schedule(self, at: datetime, job: J) -> Timer[J]:
        """Have the job run at this instant."""
        self.scheduled += 1
        timer = Timer(at, self.scheduled, job)
        heapq.heappush(self._heap, (at.timestamp(), self.scheduled, timer))
        others = self._about.get(job.about)
        if others is None:
            self._about[job.about] = timer
        elif isinstance(others, list):
            others.append(timer)
        else:
            self._about[job.about] = [others, timer]
        self._pending += 1
        return timer

    def cancel(self, timer: Timer[J]) -> None:
        """Drop a timer; one that has run or was dropped already stays so."""
        if timer.pending:
            self._forget(timer)
            if len(self._heap) > 2 * self._pending + 64:
                self._heap = [entry for entry in self._heap if entry[2].pending]
                heapq.heapify(self._heap)

    def cancel_about(self, about: str, kind: str | None = None) -> int:
        """Drop the timers of one object; returns how many."""
        timers = list(self.about(about, kind))
        for timer in timers:
            self.cancel(timer)
        return len(timers)

    def about(self, about: str, kind: str | None = None) -> Iterator[Timer[J]]:
        """The timers of one object, in order of scheduling."""
        timers = self._about.get(about, [])
        for timer in list(timers) if isinstance(timers, list) else [timers]:
            if kind is None or timer.job.kind == kind:
                yield timer

    def next(self) -> Timer[J] | None:
        """The timer that is due first; None if there is none."""
        while self._heap and not self._heap[0][2].pending:
            heapq.heappop(self._heap)
        return self._heap[0][2] if self._heap else None

    def pop_due(self, instant: datetime) -> Timer[J] | None:
        """Take the first timer that is due at or before the instant; None if there is none."""
        timer = self.next()
        if timer is None or timer.at > instant:
            return None
        heapq.heappop(self._heap)
        self._forget(timer)
        return timer

    def pending(self, about: str | None = None, kind: str | None = None) -> Iterator[Timer[J]]:
        """The timers that wait, in the order in which they are due."""
        if about is not None:
            yield from sorted(self.about(about, kind))
            return
        for _, _, timer in sorted(self._heap):
            if timer.pending and (kind is None or timer.job.kind == kind):
                yield timer

    def _forget(self, timer: Timer[J]) -> None:
        timer.pending = False
        self._pending -= 1
        timers = self._about[timer.job.about]
        if isinstance(timers, list) and len(timers) > 1:
            timers.remove(timer)
        else:
            del self._about[timer.job.about]
