"""The measurement: rounds of both alternatives take turns, so that the load of the machine affects both alike."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Self

import attrs

ROUNDS = 7

ONCE = os.environ.get("FOLLOWUP_BENCHMARK_ONCE") == "1"
"""Whether each function is called only once, as the tests do to see that the benchmarks still run."""


class NotMeasured(Exception):
    """A benchmark cannot run here; the message says why."""


@attrs.frozen
class Figure:
    """A measurement of our code and of an alternative to it.

    Attributes:
        name: what is measured.
        alternative: what it is compared with.
        ours: microseconds per call, or bytes per object, of our code.
        theirs: the same for the alternative.
        target: the upper limit that we set for the ratio.
        quartiles: the first and third quartile of the ratios of the rounds; None without rounds.
    """

    name: str
    alternative: str
    ours: float
    theirs: float
    target: float
    quartiles: tuple[float, float] | None = None

    @classmethod
    def of(cls, name: str, alternative: str, ours: Sequence[float], theirs: Sequence[float], target: float) -> Self:
        """Return the medians of rounds in which both sides took turns, and the quartiles of their ratios."""
        quartiles = None
        if len(ours) > 1:
            first, _, third = statistics.quantiles([a / b for a, b in zip(ours, theirs, strict=True)], n=4)
            quartiles = first, third
        return cls(name, alternative, statistics.median(ours), statistics.median(theirs), target, quartiles)

    def per(self, count: int) -> Self:
        """Return the figures of one of ``count`` things that each call did."""
        return attrs.evolve(self, ours=self.ours / count, theirs=self.theirs / count)

    @property
    def ratio(self) -> float:
        """``ours`` divided by ``theirs``; below 1, our code is faster or smaller."""
        return self.ours / self.theirs


def compare(
    name: str,
    ours: Callable[[], object],
    alternative: str,
    theirs: Callable[[], object],
    *,
    calls: int,
    target: float,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Figure:
    """Measure two functions in turns, and return the medians in microseconds per call.

    Args:
        name: what is measured.
        ours: calls our code.
        alternative: what it is compared with.
        theirs: calls the alternative.
        calls: the number of calls in a round.
        target: the upper limit that we set for the ratio.
        rounds: the number of rounds of each function.
        clock: returns seconds.
    """
    if ONCE:
        rounds = calls = 1
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for side, call in (("theirs", theirs), ("ours", ours)):
            started = clock()
            for _ in range(calls):
                call()
            times[side].append((clock() - started) / calls * 1e6)
    return Figure.of(name, alternative, times["ours"], times["theirs"], target)
