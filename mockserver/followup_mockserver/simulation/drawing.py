"""Draws histories with Hypothesis, which also shrinks them.

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
)

_Draw = Callable[[st.SearchStrategy[bool]], bool]

_TROUBLES: tuple[tuple[type[Step], int], ...] = (
    (FailRequests, 6),
    (CrashAtRequest, 4),
    (DelayDelivery, 2),
    (LoseWebhookResponse, 2),
)
_ACTIONS: tuple[tuple[type[Step], int], ...] = ((Book, 8), (Work, 2), (PassTime, 2), (Reschedule, 5), (Cancel, 3))
_SEQUELS: tuple[tuple[type[Step], int], ...] = (
    (Again, 6),
    (Work, 3),
    (PassTime, 4),
    (CrashNow, 3),
    (RepeatDelivery, 2),
    (Forge, 2),
)
"""Kinds of steps with their weights. An action comes with troubles before it and sequels after it."""


def histories(*, with_webhooks: bool) -> st.SearchStrategy[History]:
    """Return a strategy for histories.

    Args:
        with_webhooks: whether the clinic has a receiver; without one, nothing happens to webhooks.
    """
    return st.lists(_scene(with_webhooks), min_size=1, max_size=12).map(
        lambda scenes: tuple(step for scene in scenes for step in scene)
    )


def _scene(with_webhooks: bool) -> st.SearchStrategy[list[Step]]:
    troubles, sequels = _TROUBLES, _SEQUELS
    if not with_webhooks:
        of_webhooks = (DelayDelivery, LoseWebhookResponse, RepeatDelivery, Forge)
        troubles = tuple(each for each in troubles if each[0] not in of_webhooks)
        sequels = tuple(each for each in sequels if each[0] not in of_webhooks)
    return st.tuples(st.lists(_step(troubles), max_size=3), _step(_ACTIONS), st.lists(_step(sequels), max_size=3)).map(
        lambda scene: [*scene[0], scene[1], *scene[2]]
    )


def _step(kinds: tuple[tuple[type[Step], int], ...]) -> st.SearchStrategy[Step]:
    weighted = [kind for kind, weight in kinds for _ in range(weight)]
    return _steps(tuple(weighted))


@st.composite
def _steps(draw: _Draw, weighted: tuple[type[Step], ...]) -> Step:
    kind = weighted[_number(draw, len(weighted))]
    return kind(*(_number(draw, alternatives) for alternatives in alternatives_of(kind)))


def _number(draw: _Draw, alternatives: int) -> int:
    """Draw a number below ``alternatives``, bit by bit; it shrinks to 0."""
    bits = [draw(st.booleans()) for _ in range((alternatives - 1).bit_length())]
    return functools.reduce(lambda number, bit: number * 2 + bit, bits, 0) % alternatives
