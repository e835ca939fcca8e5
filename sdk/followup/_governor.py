"""The request rate of a client, over its threads, its tasks, and the clients derived from it.

Two rules hold at once. The limit is hard: a request is sent once the request that is ``requests_per_minute`` places
before it is a minute old, counted from the moment at which that one had its response, so that the service sees no more
in any minute, however long each was under way. And a long run is spread over the minute, after a short burst, so that
another program with the same key finds room beside it.
"""

from collections import deque

from followup._forks import unforked

WINDOW = 60.0
"""Seconds in which the limit counts."""

_BURST_SHARE = 10
"""One part in so many of a minute's requests may be sent at once."""


class Slot:
    """The right to send one request, a minute after the one ``requests_per_minute`` places before.

    Any more requests than ``requests_per_minute`` include two whose places differ by a multiple of it, so it is enough
    to keep these apart.

    Attributes:
        time: when the request is expected to be sent; after ``sent``, when it was, and after ``done``, when it ended.
        is_sent: whether the request was sent.
        is_dropped: whether it will never be.
    """

    __slots__ = ("_before", "_not_before", "is_dropped", "is_sent", "time")

    def __init__(self, before: "Slot | None", not_before: float) -> None:
        self._before = before
        self._not_before = not_before
        self.is_dropped = False
        self.is_sent = False
        self.time = not_before
        self._update()

    def _update(self) -> None:
        """Recompute when this and the unsent ones before it can be sent, since each may have been held up."""
        chain: list[Slot] = [self]
        while (before := chain[-1]._before) is not None and not before.is_sent:
            if before.is_dropped:
                chain[-1]._before = before._before
            else:
                chain.append(before)
        for slot in reversed(chain):
            if slot._before is not None:
                slot.time = max(slot._not_before, slot._before.time + WINDOW)

    def wait(self, now: float) -> float:
        """Return the seconds until the request may be sent; to be asked again after waiting."""
        self._update()
        return max(0.0, self.time - now)

    def sent(self, now: float) -> None:
        """Note that the request is being sent."""
        self.time = now
        self.is_sent = True
        self._before = None  # which may refer to another one, and so on

    def done(self, now: float) -> None:
        """Note that the attempt has ended: the service has seen its request by now, if ever."""
        self.time = now


class Governor:
    """Gives out slots, in the order in which they are asked for.

    Args:
        requests_per_minute: how many requests may be sent in any 60 seconds; at least 1.
    """

    def __init__(self, requests_per_minute: int) -> None:
        self.requests_per_minute = requests_per_minute
        self._between = WINDOW / requests_per_minute
        self._burst = max(1, requests_per_minute // _BURST_SHARE) - 1
        self._full_burst_at = float("-inf")
        self._latest: deque[Slot] = deque(maxlen=requests_per_minute)

    def slot(self, now: float, *, within: float | None) -> Slot | None:
        """Reserve the next slot.

        Args:
            now: seconds, of a clock that never goes back.
            within: seconds in which the request has to be sent; None for no bound.

        Returns:
            The slot; None, and nothing is reserved, if there is none in time.
        """
        with unforked():
            spread = max(self._full_burst_at, now)
            before = self._latest[0] if len(self._latest) == self.requests_per_minute else None
            slot = Slot(before, max(now, spread - self._burst * self._between))
            if within is not None and slot.wait(now) >= within:
                return None
            self._full_burst_at = spread + self._between
            self._latest.append(slot)
            return slot

    def take_back(self, slot: Slot) -> None:
        """Let a later request have the place of one that will not be sent."""
        slot.is_dropped = True
        with unforked():
            self._full_burst_at -= self._between
