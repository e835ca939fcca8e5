"""Webhook faults: what the specification warns receivers of, and what an attacker or a slow network does."""

from typing import Literal, get_args

import attrs

from followup._annotations import EventType, ServiceEventType
from followup_mockserver.schema.checks import choice, field, number, optional, whole

LONGEST_DISTURBANCE = 30 * 24 * 3600
"""Seconds."""

DisturbanceKind = Literal["duplicate", "reorder", "late", "wrong_signature", "old_signature"]


_TYPES = (*get_args(EventType), *get_args(ServiceEventType))


# Checked when it is made, and not as it counts down to its end.
@attrs.define(kw_only=True, on_setattr=attrs.setters.NO_OP)
class Disturbance:
    """A webhook fault: how the next deliveries go wrong.

    Attributes:
        kind: ``duplicate``: the first attempt arrives twice, and the answer to the repetition counts for nothing;
            ``reorder``: held back until the next delivery to the same endpoint is out; ``late``: first sent after
            ``seconds``; ``wrong_signature``, ``old_signature``: so signed in the first attempt, and right in the
            later ones.
        type: only deliveries of this event type; None for any.
        times: how many deliveries.
        seconds: how late; for ``reorder``, how long at most; for ``old_signature``, how old.

    Raises:
        ValueError: an invalid argument; the message names it.
    """

    kind: DisturbanceKind = field(choice(get_args(DisturbanceKind)))
    type: str | None = field(optional(choice(_TYPES)), None)
    times: int = field(whole(1), 1)
    seconds: float = field(number(0, LONGEST_DISTURBANCE, unit="seconds"), 600.0)


class Disturbances:
    """The webhook faults that wait for their deliveries, and those of the deliveries that have one."""

    def __init__(self) -> None:
        self._waiting: list[Disturbance] = []
        self._of: dict[str, Disturbance] = {}

    def add(self, disturbance: Disturbance) -> None:
        self._waiting.append(disturbance)

    def clear(self) -> None:
        """Remove those that still wait."""
        self._waiting.clear()

    def all(self) -> list[Disturbance]:
        """Those that still wait, oldest first."""
        return list(self._waiting)

    def strike(self, delivery: str, event_type: str) -> Disturbance | None:
        """The disturbance that this new delivery meets, if any; counts it."""
        for disturbance in self._waiting:
            if disturbance.type in (None, event_type):
                disturbance.times -= 1
                if disturbance.times <= 0:
                    self._waiting.remove(disturbance)
                self._of[delivery] = disturbance
                return disturbance
        return None

    def of(self, delivery: str) -> Disturbance | None:
        """The disturbance that this delivery met."""
        return self._of.get(delivery)
