"""The request rate: so many in any sixty seconds, counted per key (specification, section 8)."""

from collections import deque
from datetime import timedelta

from followup_mockserver.state.clock import RealTime

WINDOW = 60.0


class RateLimiter:
    """A sliding minute of real time; time that the mock's clock was moved by hand counts as passed.

    Args:
        limit: requests per minute; 0 for no limit, and nothing is to be counted.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: dict[str, deque[float]] = {}

    def take(self, key: str, moved: timedelta) -> float | None:
        """Count a request; the seconds to wait if it is one too many, else None."""
        now = RealTime.monotonic() + moved.total_seconds()
        taken = self._taken.setdefault(key, deque())
        while taken and taken[0] <= now - WINDOW:
            taken.popleft()
        if len(taken) >= self.limit:
            return taken[0] + WINDOW - now
        taken.append(now)
        return None
