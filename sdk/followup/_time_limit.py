"""The time limit of the current attempt, for the network code far below the driver."""

import contextvars
import time

_ends: contextvars.ContextVar[float | None] = contextvars.ContextVar("followup_attempt_ends", default=None)


def set_time_limit(seconds: float | None) -> None:
    """Set the time limit of the attempt that runs in this context; None for no limit. Network code reads it below."""
    _ends.set(None if seconds is None else time.monotonic() + seconds)


def seconds_left() -> float | None:
    """Return the seconds that are left of the attempt, 0 or less once the limit is reached; None without a limit."""
    ends = _ends.get()
    return None if ends is None else ends - time.monotonic()
