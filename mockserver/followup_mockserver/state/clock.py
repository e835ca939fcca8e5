"""The clock of one tenant: real time, or a time that stands still and is moved by hand. It never goes back."""

import importlib.util
import time
from datetime import UTC, datetime, timedelta
from types import ModuleType


def _unpatched_time() -> ModuleType:
    # freezegun replaces the functions of the one ``time`` that everybody imports, and may have done so before this
    # module is imported. A second copy of the built-in module is out of its reach.
    spec = importlib.util.find_spec(time.__name__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


_time = _unpatched_time()


class RealTime:
    """Elapsed real time, also while a test has frozen time in this process."""

    @staticmethod
    def monotonic() -> float:
        """Seconds from an arbitrary start, as ``time.monotonic`` gives them."""
        seconds: float = _time.monotonic()
        return seconds


class Clock:
    """One formula for both kinds: the instant it was last set to, and what has passed since, times its pace.

    Args:
        start: an aware datetime; the clock is frozen at it. None: it runs with real time from now.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.frozen = start is not None
        self.moved = timedelta(0)
        """How far it has been moved by hand in all."""
        self._held = False
        self._set_to = (start or datetime.now(UTC)).astimezone(UTC)
        self._set_when = RealTime.monotonic()

    def now(self) -> datetime:
        """The time it is, UTC."""
        if self.frozen or self._held:
            return self._set_to
        return self._set_to + timedelta(seconds=RealTime.monotonic() - self._set_when)

    def move_to(self, instant: datetime) -> None:
        """Move forward to an instant; one that has passed leaves the clock where it is."""
        now = self.now()
        if instant > now:
            self.moved += instant - now
            self._set(instant.astimezone(UTC))

    def hold(self) -> None:
        """Stand still, wherever the clock is moved to, until it is released."""
        self._set(self.now())
        self._held = True

    def release(self) -> None:
        """Run on from here, if this is a clock that runs."""
        self._held = False
        self._set(self._set_to)

    def seconds_until(self, instant: datetime) -> float:
        """Real seconds until the clock gets there by itself: 0 when it is there, infinity when it stands."""
        left = (instant - self.now()).total_seconds()
        if left <= 0:
            return 0.0
        return float("inf") if self.frozen or self._held else left

    def _set(self, instant: datetime) -> None:
        self._set_to = instant
        self._set_when = RealTime.monotonic()
