"""The time limit of the current attempt, for the network code far below the driver."""

import contextvars
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ends: contextvars.ContextVar[float | None] = contextvars.ContextVar("followup_attempt_ends", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Set the time limit of the attempt in a with block; None for no limit. Blocking code reads ``seconds_left``."""
    token = _ends.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends.reset(token)


def seconds_left() -> float | None:
    """Return the seconds that are left of the attempt, 0 or less once the limit is reached; None without a limit."""
    ends = _ends.get()
    return None if ends is None else ends - time.monotonic()
