"""Access to the state of one organization: under its lock, or in virtual time by its clients.

In process, a client that waits advances the mock's clock instead of sleeping. A wait runs no job. Those that become due
run at the next ``advance``, at the time that the clock shows by then.
"""

import math
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from followup_mockserver.world.schema.errors import ServiceError, SnapshotError, missing
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.records import copied
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.snapshots import SnapshotSource, document_of, read
from followup_mockserver.world.state.tenant import Tenant

T = TypeVar("T")


class TenantAccess:
    """The state of one organization. Thread-safe.

    Args:
        registry: the tenants of the mock.
        key: an API key of the organization; None selects the default organization.
    """

    def __init__(self, registry: Registry, key: str | None = None) -> None:
        self.registry = registry
        self._key = key

    @property
    def tenant(self) -> Tenant:
        """The current state. A reset replaces it with another object.

        Raises:
            ServiceError: 401: no organization has this key.
        """
        tenant = self.registry.default if self._key is None else self.registry.by_key(self._key)
        if tenant is None:
            raise ServiceError(401, "authentication_error", "api_key_invalid", "There is no such API key.")
        return tenant

    @property
    def tenants(self) -> list[Tenant]:
        """The current state of the organization; without a key, of every organization of the mock."""
        return self.registry.all() if self._key is None else [self.tenant]

    def read(self, look: Callable[[Tenant], T]) -> T:
        """Return a value that is read under the lock."""
        tenant = self.tenant
        with tenant.lock:
            return look(tenant)

    def change(
        self, control: str, change: Callable[[Tenant], T], about: str | None = None, /, **arguments: object
    ) -> T:
        """Change the state under its lock, and return a copy of the result.

        Args:
            control: name of the test control that makes the change, which is the cause of what follows from it.
            change: makes the change.
            about: id of the object that it changes, if there is one already.
            arguments: the arguments of the control, for the journal.
        """
        tenant = self.tenant
        with tenant.lock:
            result = tenant.control(control, change, about, arguments)
            tenant.notify()
            return copied(result)

    def change_object(self, control: str, kind: str, id: str, rule: Callable[..., T], **arguments: Any) -> T:
        """Let a rule change an object, see ``change``.

        Args:
            control: name of the test control.
            kind: the kind of object, such as ``intake request``.
            id: id of the object.
            rule: takes the tenant, the object and ``arguments``.
            arguments: further arguments of the rule.

        Raises:
            ServiceError: 404: there is no such object.
        """

        def change(tenant: Tenant) -> T:
            collection = getattr(tenant, f"{kind.replace(' ', '_')}s")
            return rule(tenant, existing(collection.get(id), kind), **arguments)

        return self.change(control, change, id, **arguments)

    def wait_for_change(self, since: int, seconds: float) -> int:
        """Return the version of the state as soon as it is not ``since``, or the timeout is reached.

        Args:
            since: a version of the state.
            seconds: timeout in real time. Stopping the mock ends the wait as well.
        """
        ends = RealTime.monotonic() + seconds
        while True:
            tenant = self.tenant  # read again each time, because a reset replaces it
            with tenant.lock:
                left = ends - RealTime.monotonic()
                if tenant.version != since or left <= 0 or self.registry.stopped:
                    return tenant.version
                # One that was replaced meanwhile has had its last notification.
                if tenant is self.tenant:
                    tenant.changed.wait(left)

    def save(self) -> dict[str, Any]:
        """Return the state of the organization, or without a key that of the whole mock, as JSON-compatible data."""
        registry = self.registry
        return document_of(registry.copy(None if self._key is None else self.tenant), registry.options)

    def restore(self, source: SnapshotSource) -> None:
        """Replace the state of the organization, or without a key that of the whole mock, by a snapshot.

        Raises:
            SnapshotError: the snapshot is invalid; then nothing has changed.
        """
        document = read(source)
        if self._key is not None and len(document.organizations) > 1:
            raise SnapshotError("organizations", "This must be one organization, because a key selects one.")
        self.registry.restore(document.state(), None if self._key is None else self.tenant)

    def reset(self) -> None:
        """Return the organization, or without a key the whole mock, to the state at start."""
        self.registry.reset(None if self._key is None else self.tenant)


def existing(found: T | None, what: str) -> T:
    """Return the object that a lookup found.

    Args:
        found: the result of the lookup.
        what: the kind of object, for the error message, such as ``patient``.

    Raises:
        ServiceError: 404: the lookup found nothing.
    """
    if found is None:
        raise missing(what, param="id")
    return found


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
