"""The rate limit: a number of requests in any sixty seconds, for each API key (specification, section 8)."""

from collections import deque
from datetime import timedelta

from followup_mockserver.state.clock import RealTime

WINDOW = 60.0


class RateLimiter:
    """Counts requests in a sliding window of one minute.

    The window is measured in real time, plus the time by which the mock's clock was advanced.

    Args:
        limit: requests per minute; 0 for no limit, and then ``take`` must not be called.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: dict[str, deque[float]] = {}

    def take(self, key: str, advanced: timedelta) -> float | None:
        """Count a request with a key.

        Args:
            key: the API key.
            advanced: how far the mock's clock has been advanced in all.

        Returns:
            None, or the seconds until the next request is allowed if this one exceeds the limit.
        """
        now = RealTime.monotonic() + advanced.total_seconds()
        taken = self._taken.setdefault(key, deque())
        while taken and taken[0] <= now - WINDOW:
            taken.popleft()
        if len(taken) >= self.limit:
            return taken[0] + WINDOW - now
        taken.append(now)
        return None
