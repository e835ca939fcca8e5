"""Bad deliveries on purpose: what the specification warns receivers of, and what an attacker or a slow network does."""

from typing import Literal

import attrs

DisturbanceKind = Literal["duplicate", "reorder", "late", "wrong_signature", "old_signature"]


@attrs.define(kw_only=True)
class Disturbance:
    """How the next deliveries are disturbed.

    Attributes:
        kind: ``duplicate``: the first attempt arrives twice, and the answer to the repetition counts for nothing;
            ``reorder``: held back until the next delivery to the same endpoint is out; ``late``: first sent after
            ``seconds``; ``wrong_signature``, ``old_signature``: so signed in the first attempt, and right in the
            later ones.
        type: only deliveries of this event type; None for any.
        times: how many deliveries.
        seconds: how late; for ``reorder``, how long at most; for ``old_signature``, how old.
    """

    kind: DisturbanceKind
    type: str | None = None
    times: int = 1
    seconds: float = 600.0


class Disturbances:
    """The disturbances that wait for their deliveries, and the deliveries that met theirs."""

    def __init__(self) -> None:
        self._waiting: list[Disturbance] = []
        self._of: dict[str, Disturbance] = {}

    def add(self, disturbance: Disturbance) -> None:
        self._waiting.append(disturbance)

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
