"""The time of a client: its monotonic clock and its sleep, real or virtual.

A call reads the clock for its deadline and the request rate, and sleeps between attempts. In production both are those
of the process. A test can replace them by virtual ones, in which sleeping takes no real time.
"""

import time
from typing import Final, Protocol


class Time(Protocol):
    """A monotonic clock, and a sleep that lets its time pass. Seconds in both."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary instant. They never decrease."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return once the clock has advanced by this much."""
        ...

    async def sleep_async(self, seconds: float) -> None:
        """Return once the clock has advanced by this much. Other tasks run in the meantime."""
        ...


class _RealTime:
    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it

        await asyncio.sleep(seconds)


REAL_TIME: Final[Time] = _RealTime()
