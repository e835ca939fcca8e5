"""The organizations of one mock: which tenant a key opens, and what a tenant is at the start."""

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
class Beginning:
    """What a tenant is at the start, and becomes again by a reset."""

    organization: Organization
    keys: tuple[KeyRecord, ...]


class Registry:
    """Every tenant of a mock. Safe to use from several threads.

    Args:
        subscribers: what reacts to the facts of every tenant.
        furnish: adds what the service itself puts into a new organization.
    """

    def __init__(
        self, options: Options, subscribers: Sequence[Subscriber], furnish: Callable[[Tenant], object]
    ) -> None:
        self._options = options
        self._subscribers = subscribers
        self._furnish = furnish
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.on_change: Callable[[], None] = lambda: None
        """Called when there is something new to look after: a tenant, or a timer in one."""
        self._start()

    @property
    def options(self) -> Options:
        return self._options

    @property
    def stopped(self) -> bool:
        """Whether the mock has stopped, and nothing is worth waiting for."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Have everybody who waits go on, for nothing happens any more."""
        self._stopped.set()
        for tenant in self.all():
            with tenant.lock:
                tenant.changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait for so many seconds, or until the mock stops."""
        self._stopped.wait(seconds)

    @property
    def default(self) -> Tenant:
        """The tenant of the default organization."""
        return self._default

    def by_key(self, value: str) -> Tenant | None:
        """The tenant that this key opens, whether or not the key still works."""
        return self._by_key.get(value)

    def all(self) -> list[Tenant]:
        with self._lock:
            return list(self._registry.values())

    def create(self, settings: Mapping[str, Any], keys: Sequence[tuple[str, Sequence[str]]]) -> Tenant:
        """A new organization, isolated from the others, with keys given by name and scopes."""
        with self._lock:
            organization = self._options.organization(self._ids.new("org_"), **settings)
            records = [self._new_key(organization, name, scopes) for name, scopes in keys]
            beginning = Beginning(organization, tuple(records))
            tenant = self._made(beginning)
            self._registry[organization.id] = tenant
            self._beginnings[organization.id] = beginning
            self._by_key |= dict.fromkeys(tenant.keys, tenant)
        self.on_change()
        return tenant

    def add_key(self, tenant: Tenant, name: str, scopes: Sequence[str]) -> KeyRecord:
        """A further key of an organization."""
        with self._lock:
            record = self._new_key(tenant.organization, name, scopes)
            tenant.keys[record.value] = record
            self._by_key[record.value] = tenant
        return record

    def reset(self, tenant: Tenant | None = None) -> None:
        """A tenant, or without one the whole mock, as it was at the start."""
        with self._lock:
            ended = list(self._registry.values()) if tenant is None else [tenant]
            if tenant is None:
                self._start()
            elif self._registry.get(tenant.organization.id) is tenant:  # else somebody else has just reset it
                self._start_again(tenant)
        for each in ended:
            with each.lock:
                each.ended = True
                each.notify()  # who waits for something to happen in a tenant that is gone would wait in vain
        self.on_change()

    def _start(self) -> None:
        ids = IdFactory(self._options.seed, "")
        key = KeyRecord(name="default", value=DEFAULT_KEY, scopes=list(ALL_SCOPES))
        beginning = Beginning(self._options.organization(ids.new("org_")), (key,))
        tenant = self._made(beginning)
        # Made whole, and only then put in place: a mock answers requests while it is reset.
        self._ids = ids
        self._default = tenant
        self._registry = {tenant.organization.id: tenant}
        self._beginnings = {tenant.organization.id: beginning}
        self._by_key = dict.fromkeys(tenant.keys, tenant)

    def _start_again(self, old: Tenant) -> None:
        new = self._made(self._beginnings[old.organization.id])
        others = {value: tenant for value, tenant in self._by_key.items() if tenant is not old}
        self._by_key = others | dict.fromkeys(new.keys, new)
        self._registry[new.organization.id] = new
        if old is self._default:
            self._default = new

    def _made(self, beginning: Beginning) -> Tenant:
        organization, keys = copy.deepcopy((beginning.organization, beginning.keys))
        tenant = Tenant(organization, keys, self._options, self._subscribers, lambda: self.on_change())
        self._furnish(tenant)
        return tenant

    def _new_key(self, organization: Organization, name: str, scopes: Sequence[str]) -> KeyRecord:
        prefix = LIVE_KEY_PREFIX if organization.livemode else TEST_KEY_PREFIX
        return KeyRecord(name=name, value=self._ids.new(prefix), scopes=list(scopes))
