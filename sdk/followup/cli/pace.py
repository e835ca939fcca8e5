"""Calls at an even pace: who shares the key with a long run still finds room beside it."""

import time
from collections.abc import Callable


class Pace:
    """Lets so many calls through in a minute, evenly.

    Args:
        per_minute: how many.
        now: a clock that never goes back, in seconds.
        sleep: waits so many seconds.
    """

    def __init__(
        self, per_minute: int, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._between = 60 / per_minute
        self._now = now
        self._sleep = sleep
        self._next = now()

    def wait(self) -> None:
        """Return when the next call may be made. Time that was not used is not made up for."""
        if (early := self._next - self._now()) > 0:
            self._sleep(early)
        self._next = max(self._next, self._now()) + self._between
