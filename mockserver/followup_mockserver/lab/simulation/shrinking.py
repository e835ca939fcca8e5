"""Shrinks a history that breaks a promise, so that a person can follow it."""

from collections.abc import Callable, Iterator

import attrs

from followup_mockserver.lab.simulation.history import (
    CrashAtCommit,
    CrashAtRequest,
    CrashAtStart,
    CrashNow,
    History,
    Step,
    step_of,
)

_SHORT = 12
"""The number of steps up to which pairs of steps are removed, too."""


def shrunk(history: History, breaks: Callable[[History], bool]) -> History:
    """Return the shortest history found that breaks a promise.

    Args:
        history: one that does.
        breaks: plays a history, and returns whether it breaks a promise.
    """
    before: History = ()
    while history != before:
        before = history
        for candidates in (_without_runs, _without_pairs, _with_simpler_steps):
            while (shorter := next(filter(breaks, candidates(history)), None)) is not None:
                history = shorter
    return history


def _without_runs(history: History) -> Iterator[History]:
    """Yield the history without some consecutive steps: many first, and the last ones first."""
    size = len(history) // 2
    while size:
        for end in range(len(history), size - 1, -size):
            yield history[: end - size] + history[end:]
        size //= 2


def _without_pairs(history: History) -> Iterator[History]:
    """Yield a short history without two of its steps, such as a fault and its remedy."""
    if len(history) <= _SHORT:
        for second in range(len(history) - 1, 0, -1):
            for first in range(second):
                yield history[:first] + history[first + 1 : second] + history[second + 1 :]


def _with_simpler_steps(history: History) -> Iterator[History]:
    for position, step in enumerate(history):
        for simpler in _simpler(step):
            yield (*history[:position], simpler, *history[position + 1 :])


def _simpler(step: Step) -> Iterator[Step]:
    if isinstance(step, CrashAtRequest | CrashAtCommit | CrashAtStart):
        yield CrashNow()
    values = attrs.astuple(step)
    if any(values):
        yield step_of(type(step), [0] * len(values))
    for position, value in enumerate(values):
        for smaller in range(value):
            yield step_of(type(step), [*values[:position], smaller, *values[position + 1 :]])
