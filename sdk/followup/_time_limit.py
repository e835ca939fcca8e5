"""When the attempt of this thread has to end."""

import contextvars
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ends: contextvars.ContextVar[float | None] = contextvars.ContextVar("followup_attempt_ends", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Bound what happens in a with block; None sets no bound. Who does something that lasts asks ``seconds_left``."""
    token = _ends.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends.reset(token)


def seconds_left() -> float | None:
    """What is left of the attempt, zero or less when its time is up; None without a bound."""
    ends = _ends.get()
    return None if ends is None else ends - time.monotonic()
