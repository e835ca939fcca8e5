"""Calls at an even pace, so that a long run leaves room for other users of the same API key."""

import time
from collections.abc import Callable


class Pace:
    """Spreads calls evenly over time.

    Args:
        per_minute: calls per minute.
        now: a monotonic clock, in seconds.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self, per_minute: int, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._between = 60 / per_minute
        self._now = now
        self._sleep = sleep
        self._next = now()

    def wait(self) -> None:
        """Wait until the next call may start. Time that was not used is not made up for."""
        if (early := self._next - self._now()) > 0:
            self._sleep(early)
        self._next = max(self._next, self._now()) + self._between
