"""The parts of a snapshot: what it has of a tenant as JSON, and back from JSON of any origin, with a path in errors.

The JSON of an object is derived from its class: a result class of the SDK, or an attrs class of the mock, whose own
checks are applied as well. Times are exact to the microsecond, because the order of jobs depends on them.

A new attribute of ``Tenant`` belongs into ``SavedTenant`` too: see ``state/registry.py``.
"""

import base64
import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any

import attrs

import followup
from followup import _for_mockserver as sdk
from followup_mockserver.world.outcomes import Kind
from followup_mockserver.world.schema.errors import LATEST_TIME, ServiceError, SnapshotError
from followup_mockserver.world.schema.formats import is_webhook_target
from followup_mockserver.world.schema.shapes import LARGEST_INTEGER, Shapes
from followup_mockserver.world.schema.validation import BASE64, TIMESTAMP, YEARS, Path, Reading, Shape, dotted
from followup_mockserver.world.settings import KeyRecord, Options, Organization
from followup_mockserver.world.state.clock import SUBJECT_OF_JOB, Clock, Job, JobKind, Timer
from followup_mockserver.world.state.collection import IdFactory
from followup_mockserver.world.state.faults import Faults, WebhookFaults
from followup_mockserver.world.state.history import History, Record
from followup_mockserver.world.state.idempotency import IdempotencyRecord
from followup_mockserver.world.state.records import Attempt, Message
from followup_mockserver.world.state.registry import AS_THEY_ARE, COLLECTIONS, CONTAINERS, MockState
from followup_mockserver.world.state.tenant import Tenant

Count = Annotated[int, sdk.Limits(0, LARGEST_INTEGER)]

_LONGEST_ADVANCE = (LATEST_TIME - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds()

_JSON_SCALARS = frozenset({str, int, float, bool, NoneType})


def plain(value: Any) -> Any:
    """Return a value as JSON."""
    kind: Any = type(value)
    if kind in _JSON_SCALARS:
        return value
    if isinstance(value, sdk.Model):
        return sdk.encode(value)
    if isinstance(value, datetime):
        return _text_of(value)
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [*value] if _JSON_SCALARS.issuperset(map(type, value)) else [plain(each) for each in value]
    fields = ((each, getattr(value, each.name)) for each in fields_of(kind).values())
    # Fields with their default are omitted: most fields of the many records of a history have it.
    return {sdk.camel(field.name): plain(each) for field, each in fields if each != field.default}


@functools.cache
def fields_of(cls: Any) -> dict[str, Any]:
    """Return the fields of a class that its JSON has: those that its constructor takes."""
    # Where webhooks are sent to depends on the machine; a file must not decide it.
    left_out = {*sdk.NOT_IN_JSON, "forward_to"}
    return {each.name: each for each in attrs.fields(cls) if each.init and each.name not in left_out}


@functools.lru_cache(maxsize=1_024)  # while a clock is frozen, many records have the same time
def _text_of(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


@functools.lru_cache(maxsize=1_024)
def _instant_of(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError("a time without an offset")
    return instant.astimezone(UTC)


class _SavedShapes(Shapes):
    """Derives the shapes of what a snapshot contains: texts of any length, exact times, and no unknown fields."""

    scalars = {  # noqa: RUF012 - as in the base class
        **Shapes.scalars,
        str: ({"type": "string"}, None),
        int: ({"type": "integer"}, int),  # a response with 2.0 instead of 2 would break clients
        datetime: ({"type": "string", "format": TIMESTAMP, "pattern": YEARS}, _instant_of),
        timedelta: (
            {"type": "number", "minimum": 0, "maximum": _LONGEST_ADVANCE},
            lambda seconds: timedelta(seconds=seconds),
        ),
        bytes: ({"type": "string", "format": BASE64}, functools.partial(base64.b64decode, validate=True)),
        Kind: ({"type": "string", "enum": [each.name.lower() for each in Kind]}, lambda name: Kind[name.upper()]),
    }

    def of_class(self, cls: Any) -> Shape:
        """Return the shape of a class: fields without a default are required."""
        fields, kinds = fields_of(cls), sdk.kinds_in(cls)
        shape = self.of_object(
            {name: kinds[name] for name in fields},
            [name for name, each in fields.items() if each.default is attrs.NOTHING],
        )

        def convert(data: Any, how: Reading, path: Path) -> Any:
            found = shape.read(data, how, path)
            try:
                return cls(**found)
            except ServiceError as error:
                raise error.under(dotted(path)) from None

        return Shape(shape.schema, convert)


def loaded(cls: Any, data: Any) -> Any:
    """Return an object of a class from JSON.

    Raises:
        SnapshotError: the JSON is invalid.
    """
    try:
        return _shape_of(cls).argument_of(data)
    except ServiceError as error:
        raise SnapshotError(error.param or "", error.message) from None


# Made when a snapshot is loaded, because every start of a mock imports this module.
_shape_of = functools.cache(_SavedShapes().of)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedClock:
    """A clock: the time that it shows, and how far it has been advanced in all."""

    now: datetime
    frozen: bool
    seconds_advanced: timedelta

    def __attrs_post_init__(self) -> None:
        if self.now > LATEST_TIME:
            raise SnapshotError("now", f"This must be a time before the year {LATEST_TIME.year}.")

    def clock(self) -> Clock:
        """Return the clock. One that runs is as far ahead of real time as before, but never goes back."""
        now = self.now if self.frozen else max(self.now, datetime.now(UTC) + self.seconds_advanced)
        return Clock.resumed(now, frozen=self.frozen, advanced=self.seconds_advanced)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedJob:
    """A pending job."""

    at: datetime
    kind: JobKind
    about: str
    number: Annotated[int, sdk.Limits(1, LARGEST_INTEGER)]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SavedTenant:
    """A tenant. Jobs are in the order in which they run, records in the order in which they arrived."""

    organization: Organization
    api_keys: Annotated[list[KeyRecord], sdk.MinItems(1)]
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
    secrets: dict[str, Annotated[str, sdk.MinLength(1)]]
    webhook_deliveries: list[followup.WebhookDelivery]
    attempts: list[Attempt]
    last_event_at: datetime | None
    messages: list[Message]
    jobs: list[SavedJob]
    faults: Faults
    webhook_faults: WebhookFaults
    idempotency: list[IdempotencyRecord]
    records: list[Record]
    controls: Count
    scheduled: Count

    def __attrs_post_init__(self) -> None:
        check_references(self)

    def tenant(self) -> Tenant:
        """Return the tenant, which belongs to no mock yet."""
        # Its options do not matter: a mock uses a copy, which has the options of that mock.
        tenant = Tenant(self.organization, self.api_keys, Options())
        for name in AS_THEY_ARE:
            setattr(tenant, name, getattr(self, name))
        for name in CONTAINERS:
            container = getattr(tenant, name)
            for each in getattr(self, name):
                container.add(each)
        tenant.clock = self.clock.clock()
        for job in self.jobs:
            tenant.scheduler.restore(Timer(job.at, job.number, Job(job.kind, job.about)))
        tenant.scheduler.scheduled = max(tenant.scheduler.scheduled, self.scheduled)
        # The request that one without a response belonged to is gone, so its key is free.
        tenant.idempotency.restore(each for each in self.idempotency if each.response is not None)
        tenant.history = History(self.records, self.controls)
        return tenant


def saved(tenant: Tenant) -> dict[str, Any]:
    """Return a tenant as JSON of ``SavedTenant``."""
    clock, history = tenant.clock, tenant.history
    parts = {
        **{name: getattr(tenant, name) for name in AS_THEY_ARE},
        **{name: [*getattr(tenant, name)] for name in CONTAINERS},
        "api_keys": [*tenant.keys.values()],
        "clock": SavedClock(now=clock.now(), frozen=clock.frozen, seconds_advanced=clock.advanced),
        "jobs": [
            {"at": timer.at, "kind": timer.job.kind, "about": timer.job.about, "number": timer.number}
            for timer in tenant.scheduler.pending()
        ],
        "idempotency": tenant.idempotency.finished(),
        "records": [*history.records],
        "controls": history.controls,
        "scheduled": tenant.scheduler.scheduled,
    }
    return {sdk.camel(each.name): plain(parts[each.name]) for each in attrs.fields(SavedTenant)}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Document:
    """A snapshot."""

    format: str
    version: int
    followup: str
    options: Options
    ids: IdFactory | None
    organizations: Annotated[list[SavedTenant], sdk.MinItems(1)]

    def __attrs_post_init__(self) -> None:
        check_unique(self.organizations, "organizations", lambda each: each.organization.id)
        keys = [key.value for each in self.organizations for key in each.api_keys]
        check_unique(keys, "organizations", str)

    def state(self) -> MockState:
        """Return the state in the snapshot."""
        return MockState([each.tenant() for each in self.organizations], self.ids)


_REFERENCES = (
    ("appointments", "patient", "patients"),
    ("appointments", "doctor", "doctors"),
    ("visits", "patient", "patients"),
    ("visits", "doctor", "doctors"),
    ("visits", "appointment", "appointments"),
    ("intake_requests", "patient", "patients"),
    ("treatments", "patient", "patients"),
    ("webhook_deliveries", "webhook_endpoint", "webhook_endpoints"),
    ("attempts", "delivery", "webhook_deliveries"),
    ("messages", "patient", "patients"),
)
"""The fields that have the id of another object, or None: the list, the field, and the collection of the object."""


_UNIQUE = (*((name, "id") for name in COLLECTIONS), ("api_keys", "value"), ("jobs", "number"))
"""The fields that have another value in each item of a list."""


def check_unique(items: Sequence[Any], path: str, value_of: Callable[[Any], Any]) -> None:
    """Check that no two items of a list have the same value.

    Raises:
        SnapshotError: with the path of the list.
    """
    if len({*map(value_of, items)}) < len(items):
        raise SnapshotError(path, "Each of these must have another id, key or number.")


def check_references(saved: SavedTenant) -> None:
    """Check what the rules rely on: unique objects that exist, and endpoints that webhooks may be sent to.

    Raises:
        SnapshotError: with the path in the tenant.
    """
    for part, field in _UNIQUE:
        check_unique(getattr(saved, part), sdk.camel(part), attrgetter(field))
    known = {part: {each.id for each in getattr(saved, part)} for part in COLLECTIONS}
    references = [
        (f"{sdk.camel(part)}[{position}].{sdk.camel(field)}", getattr(item, field), collection)
        for part, field, collection in _REFERENCES
        for position, item in enumerate(getattr(saved, part))
    ]
    references += [(f"jobs[{n}].about", each.about, SUBJECT_OF_JOB[each.kind]) for n, each in enumerate(saved.jobs)]
    for path, found, collection in references:
        if found is not None and found not in known[collection]:
            what = collection.replace("_", " ")
            raise SnapshotError(path, f"This must be the id of one of the {what} of the organization.")
    # A file must not let the mock send to a host that the API would reject.
    for position, endpoint in enumerate(saved.webhook_endpoints):
        if not is_webhook_target(endpoint.url):
            message = "This must be an https URL, or an http URL of a loopback address."
            raise SnapshotError(f"webhookEndpoints[{position}].url", message)
    if saved.secrets.keys() != known["webhook_endpoints"]:
        raise SnapshotError("secrets", "This must have a secret for each webhook endpoint.")
    for position, delivery in enumerate(saved.webhook_deliveries):
        if delivery.status == "pending" and not 0 <= delivery.attempts < sdk.MAX_WEBHOOK_ATTEMPTS:
            message = f"This must be 0 to {sdk.MAX_WEBHOOK_ATTEMPTS - 1} while the delivery is pending."
            raise SnapshotError(f"webhookDeliveries[{position}].attempts", message)
