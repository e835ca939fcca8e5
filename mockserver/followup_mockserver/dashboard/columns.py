"""The lists of the dashboard: the columns and the filters of each, and what it shows while it is empty."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, get_args

import attrs

from followup import Event, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import (
    MAX_WEBHOOK_ATTEMPTS,
    AppointmentStatus,
    EventStatus,
    EventType,
    IntakeStatus,
    WebhookDeliveryStatus,
)
from followup_mockserver.dashboard.duplicates import twins_of
from followup_mockserver.dashboard.texts import events_in, json_body
from followup_mockserver.state.history import EVENT, Record
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant

Kind = Literal["name", "call", "text", "code", "time", "status", "flag", "progress", "error", "id", "twin"]
"""How a cell shows its value; ``name`` is the name of the object with this id, ``call`` a link to a call by its id, and
``twin`` what the object seems to repeat."""

Value = Callable[[Any], Any]
Lookup = Callable[[Tenant, Sequence[Any]], Mapping[str, Any]]


def _value_of(value: str | Value) -> Value:
    return attrgetter(value) if isinstance(value, str) else value


@attrs.frozen
class Column:
    """A column of a list.

    Attributes:
        heading: its heading.
        value: returns the value of an object; an argument that is a text names an attribute.
        kind: how the value is shown.
        classes: classes of its cells in the style sheet. ``p2`` is not in a narrow table, ``p3`` only in a wide one.
            ``wide`` cuts long texts to the space that the other columns leave. On a phone, ``at-main`` and ``at-state``
            stand in the first line, ``at-detail`` and ``at-when`` in the second, and ``at-note`` below them if it is
            not empty; other cells are not shown.
        lookup: returns the values of objects that do not have them, by id; then ``value`` is not used.
        hidden_by: filter that gives every row the same value, so that the column is not shown.
        is_optional: whether the column is only shown if a row has a value.
    """

    heading: str
    value: Value = attrs.field(converter=_value_of)
    kind: Kind = "text"
    classes: str = ""
    lookup: Lookup | None = attrs.field(default=None, kw_only=True)
    hidden_by: str | None = attrs.field(default=None, kw_only=True)
    is_optional: bool = attrs.field(default=False, kw_only=True)

    def values(self, tenant: Tenant, objects: Sequence[Any]) -> list[Any]:
        """Return the values of objects."""
        if self.lookup is None:
            return [*map(self.value, objects)]
        found = self.lookup(tenant, objects)
        return [found.get(each.id) for each in objects]


@attrs.frozen
class Table:
    """A list of the objects of one collection.

    Attributes:
        columns: its columns; the first that is shown is the link to the object.
        choices: index to the values that the user can filter by; those of ``status`` are tabs.
    """

    columns: tuple[Column, ...]
    choices: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)

    @property
    def link_filters(self) -> list[str]:
        """Further indexes that links from other objects filter by, such as ``patient``."""
        return [column.hidden_by for column in self.columns if column.hidden_by is not None]


def title_of_view(name: str) -> str:
    """Return the title of a list of objects."""
    return "Inbound events" if name == "events" else name.replace("_", " ").capitalize()


def noun_of(name: str) -> str:
    """Return the noun for one object of a list."""
    plural = title_of_view(name).lower()
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural[:-1]


def _own_name(heading: str, hidden_by: str | None = None) -> Column:
    return Column(heading, "id", "name", classes="at-main wide", hidden_by=hidden_by)


_ID = Column("id", "id", "id", classes="p3")
_CREATED = Column("created", "created_at", "time", classes="p3")
_CREATED_ON_PHONE = Column("created", "created_at", "time", classes="at-when")
_STATUS = Column("status", "status", "status", classes="at-state")
_PATIENT = Column("patient", "patient", "name", classes="at-detail wide", hidden_by="patient")
_DOCTOR = Column("doctor", "doctor", "name", classes="p2 at-detail wide")
_EXTERNAL_ID = Column("external id", "external_id", "code", classes="p2")
_TWIN = Column(
    "possible duplicate", "id", "twin", "at-note wide", lookup=lambda tenant, _: twins_of(tenant), is_optional=True
)


def _produced(event: Any) -> str | None:
    return None if event.result is None else str(event.result.id)


def _requested_service(intake: Any) -> str:
    return str(intake.data.get("requestedService") or intake.summary or "not known yet")


def state_of(endpoint: WebhookEndpoint) -> Literal["enabled", "disabled", "failing"]:
    """Return the state of an endpoint: ``failing`` after a failed attempt, until an attempt succeeds."""
    if endpoint.status == "disabled":
        return "disabled"
    if endpoint.last_error is None:
        return "enabled"
    delivered = endpoint.last_delivered_at
    return "failing" if delivered is None or delivered < endpoint.last_error.at else "enabled"


STOPPED = "stopped"


def delivery_state(delivery: WebhookDelivery) -> str:
    """Return the status of a delivery, or ``stopped`` if it failed only because its endpoint was disabled."""
    is_stopped = delivery.status == "failed" and delivery.attempts < MAX_WEBHOOK_ATTEMPTS
    return STOPPED if is_stopped else delivery.status


def has_problem(endpoint: WebhookEndpoint) -> bool:
    """Return whether an endpoint receives nothing, or its last attempt failed."""
    return state_of(endpoint) != "enabled"


def requests_of_events(tenant: Tenant, events: Sequence[Event]) -> dict[str, str]:
    """Return the id of the last request that brought each event, by the id of the event."""
    return {
        record.id: record.cause
        for record in records_of_events(tenant, {event.id for event in events})
        if record.cause is not None and record.cause.startswith(REQUEST_ID_PREFIX)
    }


def systems_of_events(tenant: Tenant, events: Sequence[Event]) -> dict[str, str]:
    """Return the name and version of the system that each event says it comes from, such as an import, by its id.

    The service does not store them: they are in the request, as long as the journal has it.
    """
    requests = requests_of_events(tenant, events)
    wanted, systems = {*requests.values()}, {}
    for entry in (each for each in tenant.journal.newest_first() if each.request_id in wanted):
        details = tenant.journal.details(entry)
        for sent in events_in(json_body(details.request_body, details.request_is_whole)) if details else ():
            source = sent.get("source") if isinstance(sent, dict) else None
            if isinstance(source, dict):  # of a rejected event of the same request, anything may be in it
                names = [each for each in (source.get("system"), source.get("version")) if isinstance(each, str)]
                systems[entry.request_id, str(sent.get("id"))] = " ".join(names)
    return {
        event.id: system for event in events if (system := systems.get((requests.get(event.id, ""), event.source_ref)))
    }


def records_of_events(tenant: Tenant, ids: set[str]) -> Iterator[Record]:
    """Return what the history has about inbound events, oldest first."""
    return (record for record in tenant.history.records if record.kind == EVENT and record.id in ids)


TABLES: Mapping[str, Table] = {
    "webhook_deliveries": Table(
        (
            Column("event", "event_type", classes="at-main"),
            Column("about", lambda delivery: delivery.payload.get("ref"), "name", classes="at-detail wide"),
            Column("endpoint", "webhook_endpoint", "name", classes="p2 wide", hidden_by="webhook_endpoint"),
            _STATUS,
            Column("attempts", "attempts", classes="p3"),
            Column("last error, next attempt", lambda delivery: delivery, "progress", classes="at-note wide"),
            _CREATED_ON_PHONE,
            _ID,
        ),
        {"status": get_args(WebhookDeliveryStatus)},
    ),
    "webhook_endpoints": Table(
        (
            _own_name("URL"),
            Column("status", state_of, "status", classes="at-state"),
            Column("events", "enabled_events", classes="at-detail wide"),
            Column("last delivered", "last_delivered_at", "time", classes="at-when"),
            Column(
                "last error",
                lambda endpoint: endpoint.last_error and endpoint.last_error.message,
                classes="wide",
                is_optional=True,
            ),
            _CREATED,
            _ID,
        ),
    ),
    "patients": Table(
        (
            _own_name("name"),
            Column("phone", "phone", classes="at-detail"),
            Column("stage", "stage", "status", classes="at-state"),
            Column("messages", lambda patient: "opted out" if patient.opted_out else None, "flag", classes="p2"),
            _EXTERNAL_ID,
            _CREATED_ON_PHONE,
            _ID,
        ),
    ),
    "appointments": Table(
        (
            _own_name("patient", hidden_by="patient"),
            Column("start", "start_at", "time", classes="at-when"),
            _STATUS,
            _DOCTOR,
            _TWIN,
            Column("type", "type", classes="p3 wide"),
            _EXTERNAL_ID,
            _CREATED,
            _ID,
        ),
        {"status": get_args(AppointmentStatus)},
    ),
    "visits": Table(
        (
            _own_name("patient", hidden_by="patient"),
            Column("visited", "visited_at", "time", classes="at-when"),
            _DOCTOR,
            Column("appointment", "appointment", "name", classes="p2 wide"),
            _EXTERNAL_ID,
            _CREATED,
            _ID,
        ),
    ),
    "treatments": Table(
        (
            _own_name("treatment"),
            Column("kind", "kind", classes="p2"),
            _PATIENT,
            Column("active", lambda treatment: None if treatment.active else "ended", "flag", classes="at-state"),
            _CREATED_ON_PHONE,
            _ID,
        ),
    ),
    "intake_requests": Table(
        (
            _own_name("patient", hidden_by="patient"),
            Column("service", _requested_service, classes="p2 wide"),
            _STATUS,
            Column("missing", "missing", classes="at-detail wide"),
            _CREATED_ON_PHONE,
            _ID,
        ),
        {"status": get_args(IntakeStatus)},
    ),
    "events": Table(
        (
            Column("type", "type", classes="at-main"),
            Column("about", _produced, "name", classes="at-detail wide"),
            _STATUS,
            Column("error", "error", "error", classes="at-note wide", is_optional=True),
            _TWIN,
            Column("caller's id", "source_ref", "code", classes="p2 wide"),
            Column("system", "id", classes="p2 wide", lookup=systems_of_events, is_optional=True),
            Column("request", "id", "call", classes="p2", lookup=requests_of_events),
            Column("received", "received_at", "time", classes="at-when"),
            _ID,
        ),
        {"status": get_args(EventStatus), "type": get_args(EventType)},
    ),
    "doctors": Table(
        (
            _own_name("name"),
            Column("specialty", "specialty", classes="at-detail wide"),
            Column("attends", lambda doctor: None if doctor.active else "inactive", "flag", classes="at-state"),
            _EXTERNAL_ID,
            _CREATED,
            _ID,
        ),
    ),
}
