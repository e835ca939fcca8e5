"""Two things side by side: interleaved, so that both meet the same machine; medians of several rounds."""

import statistics
import time
from collections.abc import Callable

import attrs

ROUNDS = 7


@attrs.frozen
class Figure:
    """What was measured of ours, and of what a user would pick instead.

    Attributes:
        ours: microseconds per call, or bytes per object.
        theirs: the same of the other.
        target: the ratio that we mean to stay below.
    """

    what: str
    against: str
    ours: float
    theirs: float
    target: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def side_by_side(
    what: str,
    ours: Callable[[], object],
    against: str,
    theirs: Callable[[], object],
    *,
    calls: int,
    target: float,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Figure:
    """Run both in turns and take the medians."""
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, call in (("theirs", theirs), ("ours", ours)):
            started = clock()
            for _ in range(calls):
                call()
            times[name].append((clock() - started) / calls * 1e6)
    return Figure(what, against, statistics.median(times["ours"]), statistics.median(times["theirs"]), target)
