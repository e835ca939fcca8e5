"""An open point of the specification that a client can observe, with the function that asks about it."""

from collections.abc import Callable, Sequence
from typing import Literal

import attrs

from followup_mockserver.judge.calibration.run import Run

Written = Literal["patients", "appointments", "visits", "intake requests", "treatments", "events", "webhook endpoints"]
"""A kind of object that a question creates."""


@attrs.frozen(kw_only=True)
class Point:
    """An open point, and how to ask about it.

    Attributes:
        id: its name in ``docs/open-points.md`` and in the table ``asked`` of a settings file.
        mock: what the probe finds at a mock with the default options.
        scopes: the permissions that the API key needs.
        writes: the kinds of objects that the probe creates.
        ask: the probe. It returns what it found, and raises ``NotAsked`` if it found nothing.
    """

    id: str
    mock: str
    scopes: Sequence[str]
    writes: Sequence[Written]
    ask: Callable[[Run], str]

    @property
    def needs_line(self) -> bool:
        """Whether the organization needs the service line ``follow_up`` (specification, section 5)."""
        return any(each.endswith(":write") and not each.startswith("webhooks:") for each in self.scopes)


def point(*, mock: str, scopes: str = "", writes: Sequence[Written] = ()) -> Callable[[Callable[[Run], str]], Point]:
    """Declare a probe; its name is the id of the point.

    Args:
        mock: what it finds at a mock with the default options.
        scopes: the permissions that it needs, separated by spaces.
        writes: the kinds of objects that it creates.
    """

    def declare(ask: Callable[[Run], str]) -> Point:
        return Point(id=ask.__name__, mock=mock, scopes=tuple(scopes.split()), writes=tuple(writes), ask=ask)

    return declare
