"""The clock of one tenant. It runs with real time or is frozen; a test can advance it, and it never goes back."""

from datetime import UTC, datetime, timedelta

from followup._for_mockserver import REAL_TIME


class RealTime:
    """Real time, which keeps running while a test has frozen time in this process."""

    @staticmethod
    def monotonic() -> float:
        """Return seconds since an arbitrary instant, as ``time.monotonic`` does."""
        return REAL_TIME.monotonic()


class Clock:
    """A clock that runs with real time, or is frozen. Times are aware datetimes in UTC.

    Attributes:
        frozen: whether only ``advance_to`` changes the time.
        advanced: how far the clock has been advanced in all, beyond real time.

    Args:
        start: the time at which the clock is frozen; None: it runs with real time from now.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.frozen: bool = start is not None
        self.advanced: timedelta = timedelta(0)
        self._held = False
        self._set_to = (start or datetime.now(UTC)).astimezone(UTC)
        self._set_when = RealTime.monotonic()

    @classmethod
    def resumed(cls, now: datetime, *, frozen: bool, advanced: timedelta) -> "Clock":
        """Return a clock that continues from a time.

        Args:
            now: the time that it shows.
            frozen: whether it is frozen at this time.
            advanced: how far it has been advanced in all.
        """
        clock = cls(now)
        clock.frozen, clock.advanced = frozen, advanced
        return clock

    def copy(self) -> "Clock":
        """Return an independent clock that shows the same time. It runs even if this one is held."""
        return Clock.resumed(self.now(), frozen=self.frozen, advanced=self.advanced)

    def now(self) -> datetime:
        """Return the current time."""
        if self.frozen or self._held:
            return self._set_to
        return self._set_to + timedelta(seconds=RealTime.monotonic() - self._set_when)

    def advance_to(self, instant: datetime) -> None:
        """Advance the clock to an instant. An instant in the past has no effect."""
        now = self.now()
        if instant > now:
            self.advanced += instant - now
            self._set(instant.astimezone(UTC))

    def hold(self) -> None:
        """Stop the clock until ``release``; it can still be advanced."""
        self._set(self.now())
        self._held = True

    def release(self) -> None:
        """Let a held clock run again from the time that it shows; a frozen one stays frozen."""
        self._held = False
        self._set(self._set_to)

    def seconds_until(self, instant: datetime) -> float:
        """Return the real seconds until the clock reaches an instant by itself.

        It is 0 for an instant in the past, and infinity for a clock that is frozen or held.
        """
        left = (instant - self.now()).total_seconds()
        if left <= 0:
            return 0.0
        return float("inf") if self.frozen or self._held else left

    def _set(self, instant: datetime) -> None:
        self._set_to = instant
        self._set_when = RealTime.monotonic()
