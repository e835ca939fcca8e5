"""The time of a client: its clock and its sleep, real or virtual.

A call reads the clock for its deadline and the request rate, and sleeps between attempts. An outbox and an inbox
take the date and time of their rows from it, when they are in virtual time. In production the time is that of the
process. A test can replace it by a virtual one, in which sleeping takes no real time.
"""

import time
from datetime import UTC, datetime
from typing import Final, Protocol


class Time(Protocol):
    """A clock, and a sleep that lets its time pass. Durations are in seconds."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary instant. They never decrease."""
        ...

    def now(self) -> datetime:
        """Return the current date and time, in UTC."""
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

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it

        await asyncio.sleep(seconds)


REAL_TIME: Final[Time] = _RealTime()
