"""The tenants of one mock: which one an API key belongs to, and how each is created and reset."""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from followup_mockserver.options import Options
from followup_mockserver.settings import ALL_SCOPES, KeyRecord, Organization
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.tenant import Subscriber, Tenant

DEFAULT_KEY = "fu_test_mock"
TEST_KEY_PREFIX = "fu_test_"
LIVE_KEY_PREFIX = "fu_live_"


@attrs.frozen
class InitialState:
    """The organization and the keys that a tenant starts with, and that a reset restores."""

    organization: Organization
    keys: tuple[KeyRecord, ...]


class Registry:
    """The tenants of a mock. Thread-safe.

    Attributes:
        on_change: called after a tenant was created or reset, and after a job was scheduled in one.
        has_virtual_time: whether a delay advances the mock's clock; otherwise it takes real time.

    Args:
        options: the options of the mock.
        subscribers: functions that react to the domain events of every tenant.
        populate: adds the records that every new organization has.
        virtual_time: the value of ``has_virtual_time``.
    """

    def __init__(
        self,
        options: Options,
        subscribers: Sequence[Subscriber],
        populate: Callable[[Tenant], object],
        *,
        virtual_time: bool = False,
    ) -> None:
        self.has_virtual_time = virtual_time
        self._options = options
        self._subscribers = subscribers
        self._populate = populate
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.on_change: Callable[[], None] = lambda: None
        self._start()

    @property
    def options(self) -> Options:
        """The options of the mock."""
        return self._options

    @property
    def stopped(self) -> bool:
        """Whether the mock has stopped."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Mark the mock as stopped, and wake all threads that wait for a change."""
        self._stopped.set()
        for tenant in self.all():
            with tenant.lock:
                tenant.changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait for a number of seconds, or until the mock stops."""
        self._stopped.wait(seconds)

    @property
    def default(self) -> Tenant:
        """The tenant of the default organization."""
        return self._default

    def by_key(self, value: str) -> Tenant | None:
        """Return the tenant that an API key belongs to, even if the key is revoked or expired; None if unknown."""
        return self._by_key.get(value)

    def all(self) -> list[Tenant]:
        """Return all tenants, oldest first."""
        with self._lock:
            return list(self._tenants.values())

    def create(self, settings: Mapping[str, Any], keys: Sequence[tuple[str, Sequence[str]]]) -> Tenant:
        """Create an organization, isolated from the others.

        Args:
            settings: its settings; omitted ones have the defaults of the mock's options.
            keys: name and scopes of each API key.
        """
        with self._lock:
            organization = self._options.organization(self._ids.new("org_"), **settings)
            records = [self._new_key(organization, name, scopes) for name, scopes in keys]
            initial = InitialState(organization, tuple(records))
            tenant = self._new_tenant(initial)
            self._tenants[organization.id] = tenant
            self._initial_states[organization.id] = initial
            self._by_key |= dict.fromkeys(tenant.keys, tenant)
        self.on_change()
        return tenant

    def add_key(self, tenant: Tenant, name: str, scopes: Sequence[str]) -> KeyRecord:
        """Add an API key to an organization, and return it."""
        with self._lock:
            record = self._new_key(tenant.organization, name, scopes)
            tenant.keys[record.value] = record
            self._by_key[record.value] = tenant
        return record

    def reset(self, tenant: Tenant | None = None) -> None:
        """Reset a tenant, or the whole mock, to its initial state."""
        with self._lock:
            ended = list(self._tenants.values()) if tenant is None else [tenant]
            if tenant is None:
                self._start()
            elif self._tenants.get(tenant.organization.id) is tenant:  # else another thread has just reset it
                self._restart(tenant)
        for each in ended:
            with each.lock:
                each.ended = True
                each.notify()  # no change will follow that could wake the threads that wait for one
        self.on_change()

    def _start(self) -> None:
        ids = IdFactory(self._options.seed, "")
        key = KeyRecord(name="default", value=DEFAULT_KEY, scopes=list(ALL_SCOPES))
        initial = InitialState(self._options.organization(ids.new("org_")), (key,))
        tenant = self._new_tenant(initial)
        # Assigned only when all of it is complete: the mock handles requests during a reset.
        self._ids = ids
        self._default = tenant
        self._tenants = {tenant.organization.id: tenant}
        self._initial_states = {tenant.organization.id: initial}
        self._by_key = dict.fromkeys(tenant.keys, tenant)

    def _restart(self, old: Tenant) -> None:
        new = self._new_tenant(self._initial_states[old.organization.id])
        others = {value: tenant for value, tenant in self._by_key.items() if tenant is not old}
        self._by_key = others | dict.fromkeys(new.keys, new)
        self._tenants[new.organization.id] = new
        if old is self._default:
            self._default = new

    def _new_tenant(self, initial: InitialState) -> Tenant:
        organization, keys = copy.deepcopy((initial.organization, initial.keys))
        tenant = Tenant(organization, keys, self._options, self._subscribers, lambda: self.on_change())
        self._populate(tenant)
        return tenant

    def _new_key(self, organization: Organization, name: str, scopes: Sequence[str]) -> KeyRecord:
        prefix = LIVE_KEY_PREFIX if organization.livemode else TEST_KEY_PREFIX
        return KeyRecord(name=name, value=self._ids.new(prefix), scopes=list(scopes))
