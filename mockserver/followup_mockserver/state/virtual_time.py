"""Virtual time: in process, a client that waits advances the mock's clock instead of sleeping.

A wait runs no job. Those that become due run at the next ``advance``, at the time that the clock shows by then.
"""

import math
import threading
from datetime import datetime, timedelta

from followup_mockserver.state.registry import Registry
from followup_mockserver.state.tenant import Tenant

_MICROSECOND = 1e-6
"""The resolution of the clock. A shorter wait, which is a rounding error of the waiting code, is not recorded."""


class VirtualTime:
    """The time of the clients that have one API key: that of the mock's clock of their organization. Thread-safe.

    Args:
        registry: the tenants of the mock.
        api_key: the key. An unknown one belongs to the default organization, as its requests do.
    """

    def __init__(self, registry: Registry, api_key: str) -> None:
        self._registry = registry
        self._api_key = api_key
        self._lock = threading.Lock()
        self._tenant = tenant = self._current()
        self._origin = tenant.clock.now()
        self._latest = 0.0

    def monotonic(self) -> float:
        """Return the seconds that the clock has advanced since this object was created. A reset subtracts nothing."""
        tenant = self._current()
        with tenant.lock:
            now = tenant.clock.now()
        with self._lock:
            if tenant is not self._tenant:
                self._tenant, self._origin = tenant, now - timedelta(seconds=self._latest)
            self._latest = max(self._latest, (now - self._origin).total_seconds())
            return self._latest

    def now(self) -> datetime:
        """Return what the clock shows."""
        tenant = self._current()
        with tenant.lock:
            return tenant.clock.now()

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        wait(self._current(), seconds)

    async def sleep_async(self, seconds: float) -> None:
        """Advance the clock, after the other tasks have run up to their next wait, so that waits can overlap."""
        import asyncio  # imported late, because only asynchronous clients need it

        tenant = self._current()
        with tenant.lock:
            end = _begin(tenant, seconds)
        await asyncio.sleep(0)
        _end(tenant, end)

    def _current(self) -> Tenant:
        return self._registry.by_key(self._api_key) or self._registry.default


def wait(tenant: Tenant, seconds: float) -> None:
    """Advance the clock by a wait of a client, and record the wait. No job runs."""
    with tenant.lock:
        _end(tenant, _begin(tenant, seconds))


def _begin(tenant: Tenant, seconds: float) -> datetime:
    """Record a wait, and return when it ends. The caller holds the lock."""
    if seconds >= _MICROSECOND:
        tenant.waits.append(float(seconds))
    # Rounded up, since code that waits for an instant would otherwise find it a little ahead, again and again. The
    # inner rounding removes the error of the multiplication.
    return tenant.clock.now() + timedelta(microseconds=max(1, math.ceil(round(seconds / _MICROSECOND, 3))))


def _end(tenant: Tenant, instant: datetime) -> None:
    with tenant.lock:
        tenant.clock.advance_to(instant)
        tenant.notify()
