"""The tenants of one mock: which one an API key belongs to, how each is created and reset, and copies of their state.

A new attribute of ``Tenant`` belongs into ``SAVED`` and ``SavedTenant``, or into the list of those that are not saved,
which a test compares with the attributes of a tenant.
"""

import threading
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from followup_mockserver.world.schema.errors import SnapshotError
from followup_mockserver.world.settings import ALL_SCOPES, KeyRecord, Options, Organization
from followup_mockserver.world.state.clock import Job, Timer
from followup_mockserver.world.state.collection import IdFactory
from followup_mockserver.world.state.history import JOB_PREFIX
from followup_mockserver.world.state.records import AttemptInProgress, copied
from followup_mockserver.world.state.tenant import Subscriber, Tenant

COLLECTIONS = (
    "patients",
    "doctors",
    "appointments",
    "visits",
    "intake_requests",
    "treatments",
    "events",
    "webhook_endpoints",
    "webhook_deliveries",
)
"""The attributes of ``Tenant`` that are collections."""

AS_THEY_ARE = ("organization", "ids", "secrets", "last_event_at", "messages", "faults", "webhook_faults")
CONTAINERS = (*COLLECTIONS, "attempts")
SAVED = (*AS_THEY_ARE, *CONTAINERS, "keys", "clock", "scheduler", "idempotency", "history")
"""The attributes of ``Tenant`` that a snapshot contains."""

_COPIED_DEEPLY = ("organization", "keys", "last_event_at", "faults", "webhook_faults")


@attrs.frozen(eq=False, repr=False)
class MockState:
    """The state of a mock, detached from it.

    Attributes:
        tenants: copies of its tenants; the first one is the default organization.
        ids: the factory of the ids of organizations and keys; None for the state of one organization alone.
    """

    tenants: Sequence[Tenant]
    ids: IdFactory | None


def copy_state(old: Tenant, new: Tenant) -> None:
    """Set the state of a new tenant to an independent copy of that of another, whose lock the caller holds.

    An attempt in progress is due again in the copy: its outcome is not known yet.
    """
    for name in SAVED:
        value = getattr(old, name)
        setattr(new, name, copied(value) if name in _COPIED_DEEPLY else value.copy())
    new.idempotency.kept_for = timedelta(hours=new.options.idempotency_hours)  # the options are not part of the state
    for attempt in old.attempts_in_progress:
        _requeue(new, attempt)


def _requeue(tenant: Tenant, attempt: AttemptInProgress) -> None:
    """Make an attempt that was in progress due again, as if it had not begun."""
    delivery = tenant.webhook_deliveries.get(attempt.delivery.id)
    if delivery is None:
        return
    if attempt.counted:
        tenant.webhook_deliveries.update(delivery, attempts=delivery.attempts - 1)
    # A manual retry is left to whoever asks for it. A job keeps its number, and so its place among those of one time.
    if attempt.cause is not None and attempt.trigger != "manual":
        job = Job("delivery" if attempt.trigger == "schedule" else "repeated_delivery", delivery.id)
        tenant.scheduler.restore(Timer(tenant.now(), int(attempt.cause.removeprefix(JOB_PREFIX)), job))


DEFAULT_KEY = "fu_test_mock"
TEST_KEY_PREFIX = "fu_test_"
LIVE_KEY_PREFIX = "fu_live_"


class Registry:
    """The tenants of a mock. Thread-safe.

    Attributes:
        options: the options of the mock.
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
        self.options = options
        self._subscribers = subscribers
        self._populate = populate
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._tenants: dict[str, Tenant] = {}
        self._initial: dict[str, Tenant] = {}
        """By organization: the state that a reset of it returns to. It is only copied."""
        self.on_change: Callable[[], None] = lambda: None
        ids = IdFactory(options.seed, "")
        key = KeyRecord(name="default", value=DEFAULT_KEY, scopes=list(ALL_SCOPES))
        self._origin = MockState([self._new_tenant(options.organization(ids.new("org_")), [key])], ids)
        """The state that a reset of the whole mock returns to. It is only copied."""
        self._install(self._origin)

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
        return next(iter(self._tenants.copy().values()))  # a copy, because another thread may add one meanwhile

    def by_key(self, value: str) -> Tenant | None:
        """Return the tenant that an API key belongs to, even if the key is revoked or expired; None if unknown."""
        # Without the lock, which a reset holds for long; another thread may add a tenant meanwhile.
        return next((each for each in tuple(self._tenants.values()) if value in each.keys), None)

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
            organization = self.options.organization(self._unused("org_", self._tenants), **settings)
            records = [self._new_key(organization, name, scopes) for name, scopes in keys]
            self._initial[organization.id] = self._new_tenant(organization, records)
            tenant = self._tenants[organization.id] = self._copy_of(self._initial[organization.id])
        self.on_change()
        return tenant

    def add_key(self, tenant: Tenant, name: str, scopes: Sequence[str]) -> KeyRecord:
        """Add an API key to an organization, and return it."""
        with self._lock:
            record = self._new_key(tenant.organization, name, scopes)
            tenant.keys[record.value] = record
        return record

    def reset(self, tenant: Tenant | None = None) -> None:
        """Reset a tenant, or the whole mock, to its initial state."""
        with self._lock:
            ended = list(self._tenants.values()) if tenant is None else [tenant]
            if tenant is None:
                self._initial = {}
                self._install(self._origin)
            elif self._tenants.get(tenant.organization.id) is tenant:  # else another thread has just reset it
                self._tenants[tenant.organization.id] = self._copy_of(self._initial[tenant.organization.id])
        self._end(ended)

    def copy(self, tenant: Tenant | None = None) -> MockState:
        """Return an independent copy of the state of one tenant, or of the whole mock.

        Copying is quick, so a tenant is locked for a short time only, however long it takes to encode its state.
        """
        with self._lock:
            tenants = list(self._tenants.values()) if tenant is None else [tenant]
            copies = [self._copy_of(each) for each in tenants]
            return MockState(copies, self._ids.copy() if tenant is None else None)

    def start_from(self, state: MockState) -> None:
        """Replace the whole state, which is also the one that ``reset`` returns to. For a mock that has just been made.

        Args:
            state: the new state. It must not be used for anything else.
        """
        with self._lock:
            self._origin, self._initial = state, {}
            self._install(state)

    def fork_of(self, other: "Registry") -> None:
        """Take a copy of the state of another mock, and of what it is reset to. For a mock that has just been made."""
        # One lock after the other: two mocks that fork each other at once would wait for ever.
        with other._lock:
            tenants = [self._copy_of(each) for each in other._tenants.values()]
            ids, initial = other._ids.copy(), dict(other._initial)
        with self._lock:
            self._origin, self._initial = other._origin, initial
            self._use(tenants, ids)

    def restore(self, state: MockState, tenant: Tenant | None = None) -> None:
        """Replace the state of one tenant, or of the whole mock. ``reset`` returns to where it did before.

        A tenant keeps its organization id and its API keys, unless the state is one of the same organization.

        Args:
            state: the new state. It must not be used for anything else.
            tenant: the tenant; the state has one organization.

        Raises:
            SnapshotError: 400: the organization is a production one and the tenant is not, or the reverse; 409: an API
                key belongs to another organization.
        """
        with self._lock:
            if tenant is None:
                ended = list(self._tenants.values())
                self._install(state)
            else:
                # Another thread may have reset the tenant, or the whole mock, which removes it.
                ended = [each for each in (self._tenants.get(tenant.organization.id),) if each is not None]
                for current in ended:
                    self._tenants[current.organization.id] = self._adopted(state.tenants[0], current)
        self._end(ended)

    def _install(self, state: MockState) -> None:
        """Use copies of the tenants of a state, which stay as they are: a reset returns to them."""
        tenants = [self._copy_of(each) for each in state.tenants]
        for each in state.tenants:
            self._initial.setdefault(each.organization.id, each)
        self._use(tenants, IdFactory(self.options.seed, "") if state.ids is None else state.ids.copy())

    def _use(self, tenants: Sequence[Tenant], ids: IdFactory) -> None:
        # Replaced at once: the mock handles requests meanwhile.
        self._ids, self._tenants = ids, {each.organization.id: each for each in tenants}

    def _adopted(self, state: Tenant, tenant: Tenant) -> Tenant:
        """Return a copy of a state as that of the organization of a tenant."""
        if state.organization.livemode != tenant.organization.livemode:
            raise SnapshotError(
                "organizations[0].organization.livemode",
                "This must be as in the organization of the API key: production and test are never mixed.",
            )
        new = self._copy_of(state)
        if state.organization.id != tenant.organization.id:
            new.organization = attrs.evolve(new.organization, id=tenant.organization.id)
            new.keys = copied(tenant.keys)
        elif any(self.by_key(value) not in (None, tenant) for value in new.keys):
            message = "An API key of the snapshot belongs to another organization."
            raise SnapshotError("organizations[0].apiKeys", message, code="api_key_in_use", status=409)
        return new

    def _copy_of(self, tenant: Tenant) -> Tenant:
        # Looked up at each call, because the engine sets ``on_change`` after the first tenant was made.
        new = Tenant(tenant.organization, (), self.options, self._subscribers, lambda: self.on_change())
        with tenant.lock:
            copy_state(tenant, new)
        return new

    def _end(self, ended: Sequence[Tenant]) -> None:
        """Send nothing more for these tenants, which others have replaced, and wake all that wait for a change."""
        for each in ended:
            with each.lock:
                each.ended = True
                each.notify()  # no change will follow that could wake the threads that wait for one
        self.on_change()

    def _new_tenant(self, organization: Organization, keys: Sequence[KeyRecord]) -> Tenant:
        tenant = Tenant(organization, keys, self.options)
        with tenant.caused_by(None):
            self._populate(tenant)
        return tenant

    def _new_key(self, organization: Organization, name: str, scopes: Sequence[str]) -> KeyRecord:
        prefix = LIVE_KEY_PREFIX if organization.livemode else TEST_KEY_PREFIX
        used = {value for each in self._tenants.values() for value in each.keys}
        return KeyRecord(name=name, value=self._unused(prefix, used), scopes=list(scopes))

    def _unused(self, prefix: str, used: Container[str]) -> str:
        # A loaded organization may have an id or a key that this mock would generate.
        while (new := self._ids.new(prefix)) in used:
            pass
        return new
