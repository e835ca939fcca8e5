"""The parts of a snapshot: what it has of a tenant. An attrs class is saved and loaded as it is.

The history consists of tables of columns, because a history may have five times as many records as there are objects,
and columns of texts are quick to save, to check and to load. They contain outcomes as positions in a list, from 1, or 0
for none: many records have the same outcome.

A new attribute of ``Tenant`` belongs into ``SavedTenant`` too: see ``state/registry.py``.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

import attrs

import followup
from followup._for_mockserver import Limits, MinItems, MinLength, camel
from followup_mockserver.world.schema.errors import LATEST_TIME, InvalidArgument
from followup_mockserver.world.schema.shapes import LARGEST_INTEGER
from followup_mockserver.world.settings import KeyRecord, Options, Organization
from followup_mockserver.world.state.clock import Clock, Job, JobKind, Timer
from followup_mockserver.world.state.faults import Faults, WebhookFaults
from followup_mockserver.world.state.history import History, Receipt, Record
from followup_mockserver.world.state.ids import IdFactory
from followup_mockserver.world.state.outcomes import Outcome
from followup_mockserver.world.state.records import Attempt, Message
from followup_mockserver.world.state.registry import AS_THEY_ARE, CONTAINERS, MockState
from followup_mockserver.world.state.requests import MAX_RECORDS, IdempotencyRecord
from followup_mockserver.world.state.snapshots.codecs import Count, plain, wrong
from followup_mockserver.world.state.tenant import Tenant


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Table:
    def __attrs_post_init__(self) -> None:
        columns = attrs.asdict(self, recurse=False)
        first = next(iter(columns))
        for name, column in columns.items():
            if len(column) != len(columns[first]):
                raise wrong(name, f"This must have as many items as {first}.")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Records(_Table):
    at: list[datetime]
    kind: list[str]
    id: list[str]
    cause: list[str | None]
    outcome: list[Count]
    about: list[str | None]
    patient: list[str | None]
    due: list[datetime | None]
    hours: list[float | None]
    receipts: list[Count]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Receipts(_Table):
    endpoint: list[str | None]
    delivery: list[str | None]
    reason: list[Count]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedHistory:
    """The history of a tenant, with the numbers of the last control call and of the last job."""

    controls: Count
    jobs: Count
    outcomes: list[Outcome]
    records: _Records
    receipts: _Receipts

    def __attrs_post_init__(self) -> None:
        for position, outcome in enumerate(self.outcomes):
            for name in outcome.kind.fields:
                if getattr(outcome, name) in (None, "", ()):
                    raise wrong(f"outcomes[{position}].{camel(name)}", "This field is required.")
        for path, numbers in (("records.outcome", self.records.outcome), ("receipts.reason", self.receipts.reason)):
            if max(numbers, default=0) > len(self.outcomes):
                raise wrong(path, "These must be positions in the list of outcomes, or 0.")
        if sum(self.records.receipts) != len(self.receipts.reason):
            raise wrong("records.receipts", "Together, these must be as many as there are receipts.")

    def history(self) -> History:
        """Return the history."""
        outcomes = [None, *self.outcomes]
        records, receipts = (attrs.asdict(each, recurse=False) for each in (self.records, self.receipts))
        records["outcome"] = map(outcomes.__getitem__, self.records.outcome)
        receipts["reason"] = map(outcomes.__getitem__, self.receipts.reason)
        rows = map(Receipt, *receipts.values())
        records["receipts"] = ([*itertools.islice(rows, count)] if count else () for count in self.records.receipts)
        return History(map(Record, *records.values()), self.controls)


def saved_history(tenant: Tenant) -> Mapping[str, Any]:
    """Return the history of a tenant as JSON of ``SavedHistory``."""
    records = _columns(Record, tenant.history.records)
    receipts = _columns(Receipt, itertools.chain.from_iterable(records["receipts"]))
    numbers: dict[Outcome | None, int] = {None: 0}
    for columns, name in ((records, "outcome"), (receipts, "reason")):
        columns[name] = [numbers.setdefault(each, len(numbers)) for each in columns[name]]
    records["receipts"] = [*map(len, records["receipts"])]
    return {
        "controls": tenant.history.controls,
        "jobs": tenant.scheduler.scheduled,
        "outcomes": [_without_empty(plain(each)) for each in numbers if each is not None],
        "records": records,
        "receipts": receipts,
    }


def _columns(row: type[NamedTuple], rows: Iterable[NamedTuple]) -> dict[str, Sequence[Any]]:
    table = [*zip(*rows, strict=True)] or [()] * len(row._fields)
    return dict(zip(row._fields, map(list, table), strict=True))


def _without_empty(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in outcome.items() if name == "kind" or value not in (None, "", [])}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedClock:
    """A clock: the time that it shows and, if it runs, how far it is ahead of real time."""

    now: datetime
    frozen: bool
    seconds_ahead: timedelta | None
    seconds_advanced: timedelta

    def __attrs_post_init__(self) -> None:
        if self.time() > LATEST_TIME:
            raise wrong("", f"This must be a time before the year {LATEST_TIME.year}.")

    @classmethod
    def of(cls, clock: Clock) -> "SavedClock":
        """Return a clock as it is now."""
        now = clock.now()
        ahead = None if clock.frozen else now - datetime.now(UTC)
        return cls(now=now, frozen=clock.frozen, seconds_ahead=ahead, seconds_advanced=clock.advanced)

    def time(self) -> datetime:
        """Return the time that it shows now. One that runs is as far ahead as before, but never goes back."""
        if self.frozen:
            return self.now
        try:
            return max(self.now, datetime.now(UTC) + (self.seconds_ahead or timedelta(0)))
        except OverflowError:
            return LATEST_TIME + timedelta(1)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedJob:
    """A pending job."""

    at: datetime
    kind: JobKind
    about: str
    number: Annotated[int, Limits(1, LARGEST_INTEGER)]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedTenant:
    """A tenant. Jobs are in the order in which they run, records in the order in which they arrived."""

    organization: Organization
    api_keys: Annotated[list[KeyRecord], MinItems(1)]
    clock: SavedClock
    ids: IdFactory
    patients: list[followup.Patient]
    doctors: list[followup.Doctor]
    appointments: list[followup.Appointment]
    visits: list[followup.Visit]
    intake_requests: list[followup.IntakeRequest]
    treatments: list[followup.Treatment]
    events: list[followup.Event]
    webhook_endpoints: list[followup.WebhookEndpoint]
    secrets: dict[str, Annotated[str, MinLength(1)]]
    webhook_deliveries: list[followup.WebhookDelivery]
    attempts: list[Attempt]
    last_event_at: datetime | None
    messages: list[Message]
    jobs: list[SavedJob]
    faults: Faults
    webhook_faults: WebhookFaults
    idempotency: Annotated[list[IdempotencyRecord], Limits(0, MAX_RECORDS)]
    history: SavedHistory

    def tenant(self) -> Tenant:
        """Return the tenant, which belongs to no mock yet."""
        tenant = Tenant(self.organization, self.api_keys, Options())
        for name in AS_THEY_ARE:
            setattr(tenant, name, getattr(self, name))
        for name in CONTAINERS:
            container = getattr(tenant, name)
            for each in getattr(self, name):
                container.add(each)
        tenant.clock = Clock.resumed(self.clock.time(), frozen=self.clock.frozen, advanced=self.clock.seconds_advanced)
        for job in self.jobs:
            tenant.scheduler.restore(Timer(job.at, job.number, Job(job.kind, job.about)))
        tenant.idempotency.restore(each for each in self.idempotency if each.response is not None)
        tenant.history = self.history.history()
        tenant.scheduler.scheduled = max(tenant.scheduler.scheduled, self.history.jobs)
        return tenant


def saved(tenant: Tenant) -> dict[str, Any]:
    """Return a tenant as JSON of ``SavedTenant``."""
    parts = {
        **{name: getattr(tenant, name) for name in AS_THEY_ARE},
        **{name: [*getattr(tenant, name)] for name in CONTAINERS},
        "api_keys": [*tenant.keys.values()],
        "clock": SavedClock.of(tenant.clock),
        "jobs": [
            {"at": timer.at, "kind": timer.job.kind, "about": timer.job.about, "number": timer.number}
            for timer in tenant.scheduler.pending()
        ],
        "idempotency": tenant.idempotency.finished(),
        "history": saved_history(tenant),
    }
    return {camel(each.name): plain(parts[each.name]) for each in attrs.fields(SavedTenant)}


SAVED_OPTIONS = tuple(each.name for each in attrs.fields(Options) if each.name != "forward_to")
"""The options that a snapshot contains. Where webhooks are sent depends on the machine; a file must not decide it."""


def _options(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as keyword arguments of a mock."""
    names = {camel(name): name for name in SAVED_OPTIONS}
    if not saved.keys() <= names.keys():
        raise wrong("options", f"This has an unknown field; its fields are {', '.join(names)}.")
    options = {names[wire]: value for wire, value in saved.items()}
    try:
        Options(**options)
    except InvalidArgument as error:
        raise error.under("options") from None
    return options


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Document:
    """A snapshot."""

    format: str
    version: int
    followup: str
    options: dict[str, Any] = attrs.field(converter=_options)
    ids: IdFactory | None
    organizations: Annotated[list[SavedTenant], MinItems(1)]

    def __attrs_post_init__(self) -> None:
        organizations: set[str] = set()
        keys: set[str] = set()
        for position, each in enumerate(self.organizations):
            if each.organization.id in organizations:
                raise wrong(f"organizations[{position}].organization.id", "This must be unique.")
            values = {key.value for key in each.api_keys}
            if not keys.isdisjoint(values):
                raise wrong(f"organizations[{position}].apiKeys", "The value of a key must be unique.")
            organizations.add(each.organization.id)
            keys |= values

    def state(self) -> MockState:
        """Return the state in the snapshot."""
        return MockState([each.tenant() for each in self.organizations], self.ids)
