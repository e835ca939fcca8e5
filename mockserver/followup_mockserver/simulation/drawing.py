"""Draws histories with Hypothesis.

Only booleans are drawn. Hypothesis sometimes draws the numbers that it finds in the modules of the process, so a seed
would give another history in another process; it does not do so for booleans.
"""

import functools
from collections.abc import Callable

from hypothesis import strategies as st

from followup_mockserver.simulation.history import (
    Again,
    Book,
    Cancel,
    CrashAtRequest,
    CrashNow,
    DelayDelivery,
    FailRequests,
    Forge,
    History,
    LoseWebhookResponse,
    PassTime,
    RepeatDelivery,
    Reschedule,
    Step,
    Work,
    alternatives_of,
    step_of,
)

_Draw = Callable[[st.SearchStrategy[bool]], bool]

_FAULTS: tuple[tuple[type[Step], int], ...] = (
    (FailRequests, 6),
    (CrashAtRequest, 4),
    (DelayDelivery, 2),
    (LoseWebhookResponse, 2),
)
_ACTIONS: tuple[tuple[type[Step], int], ...] = ((Book, 5), (Reschedule, 6), (Cancel, 3), (Work, 2), (PassTime, 2))
_SEQUELS: tuple[tuple[type[Step], int], ...] = (
    (Again, 5),
    (Work, 8),
    (PassTime, 5),
    (CrashNow, 3),
    (RepeatDelivery, 3),
    (Forge, 3),
)
"""Kinds of steps with their weights. An action comes with faults before it and sequels after it."""


def histories(*, with_webhooks: bool) -> st.SearchStrategy[History]:
    """Return a strategy for histories.

    Args:
        with_webhooks: whether the clinic has a receiver; without one, nothing happens to webhooks.
    """
    return st.lists(_scene(with_webhooks), min_size=5, max_size=14).map(
        lambda scenes: tuple(step for scene in scenes for step in scene)
    )


def _scene(with_webhooks: bool) -> st.SearchStrategy[list[Step]]:
    faults, sequels = _FAULTS, _SEQUELS
    if not with_webhooks:
        of_webhooks = (DelayDelivery, LoseWebhookResponse, RepeatDelivery, Forge)
        faults = tuple(each for each in faults if each[0] not in of_webhooks)
        sequels = tuple(each for each in sequels if each[0] not in of_webhooks)
    return st.tuples(st.lists(_step(faults), max_size=3), _step(_ACTIONS), st.lists(_step(sequels), max_size=4)).map(
        lambda scene: [*scene[0], scene[1], *scene[2]]
    )


def _step(kinds: tuple[tuple[type[Step], int], ...]) -> st.SearchStrategy[Step]:
    weighted = [kind for kind, weight in kinds for _ in range(weight)]
    return _steps(tuple(weighted))


@st.composite
def _steps(draw: _Draw, weighted: tuple[type[Step], ...]) -> Step:
    kind = weighted[_number(draw, len(weighted))]
    return step_of(kind, [_number(draw, alternatives) for alternatives in alternatives_of(kind)])


def _number(draw: _Draw, alternatives: int) -> int:
    """Draw a number below ``alternatives``, bit by bit."""
    bits = [draw(st.booleans()) for _ in range((alternatives - 1).bit_length())]
    return functools.reduce(lambda number, bit: number * 2 + bit, bits, 0) % alternatives
