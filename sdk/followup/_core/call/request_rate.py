"""The request rate of a client, across its threads, its tasks, and the clients derived from it.

Two rules apply together. The limit is hard: a request is sent once the request ``requests_per_minute`` places before it
is a minute old, counted from the end of that attempt, so that the service receives no more requests in any minute,
however long each took to arrive. And after a short burst, requests are spread evenly over the minute, so that another
program with the same key can send some as well.
"""

from collections import deque
from collections.abc import Callable

from followup._core.threads import unforked

WINDOW = 60.0
"""Seconds to which the limit applies."""

_BURST_SHARE = 10
"""``requests_per_minute`` divided by this is the number of requests that may be sent in a burst."""


class Slot:
    """The permission to send one request, a minute after the one ``requests_per_minute`` places before.

    This keeps the limit: among any ``requests_per_minute + 1`` requests, two are a multiple of ``requests_per_minute``
    places apart, and so at least a minute apart in time.

    Attributes:
        time: time at which the request is expected to be sent; after ``sent``, the time at which it was sent, and after
            ``done``, the time at which its attempt ended.
        is_sent: whether the request was sent.
        is_done: whether its attempt has ended.
        is_dropped: whether it will never be sent.
    """

    __slots__ = ("_before", "_not_before", "is_done", "is_dropped", "is_sent", "time")

    def __init__(self, before: "Slot | None", not_before: float) -> None:
        self._before = before
        self._not_before = not_before
        self.is_dropped: bool = False
        self.is_sent: bool = False
        self.is_done: bool = False
        self.time: float = not_before

    def _update(self) -> None:
        """Recompute the times of this slot and of the unsent ones before it, since each may have been delayed."""
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
        """Return the seconds until the request may be sent. Call it again after waiting, since it may have changed."""
        with unforked():  # it reads and updates the slots of other threads
            self._update()
            before = self._before
            # The service counts when it receives a request, which is at any time until its attempt ends.
            if self.time <= now and before is not None and before.is_sent and not before.is_done:
                return WINDOW  # an attempt of more than a minute: the service may receive it only now
            return max(0.0, self.time - now)

    def sent(self, now: float) -> None:
        """Record that the request is being sent."""
        with unforked():
            self.time = now
            self.is_sent = True
            self._before = None  # frees a chain of earlier slots

    def done(self, clock: Callable[[], float]) -> None:
        """Record that the attempt has ended: by now the service has received the request, if at all."""
        with unforked():
            self.is_done = True  # first, for a signal handler may raise: a slot that is never done would block others
            self.time = clock()


class Governor:
    """Assigns slots, first come, first served.

    Args:
        requests_per_minute: maximum number of requests in any 60 seconds, 1 or more.
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
            now: seconds of a monotonic clock.
            within: seconds within which the request has to be sent; None for no limit.

        Returns:
            The slot; None if there is none in time, in which case nothing is reserved.
        """
        with unforked():
            # As in a token bucket (GCRA): with each request, the time at which a full burst is allowed again moves on.
            spread = max(self._full_burst_at, now)
            before = self._latest[0] if len(self._latest) == self.requests_per_minute else None
            slot = Slot(before, max(now, spread - self._burst * self._between))
            if within is not None and slot.wait(now) >= within:
                return None
            self._full_burst_at = spread + self._between
            self._latest.append(slot)
            return slot

    def release(self, slot: Slot) -> None:
        """Release the slot of a request that will not be sent."""
        with unforked():
            slot.is_dropped = True  # it stays in the queue, where `_update` skips it: the slots after it refer to it
            self._full_burst_at -= self._between
