"""The lists of the dashboard: the columns and the filters of each, and what it shows while it is empty."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, get_args

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import AppointmentStatus, EventStatus, IntakeStatus, WebhookDeliveryStatus, zone_of
from followup_mockserver.control.duplicates import twins_of
from followup_mockserver.control.occurrences import STOPPED, state_of
from followup_mockserver.world.state.tenant import Tenant

Kind = Literal["name", "text", "code", "time", "status", "flag", "state", "progress", "failure", "error", "id", "twin"]
"""How a cell shows its value; ``name`` is the name of the object with this id, ``state`` the state of the object, and
``twin`` what it seems to repeat."""

Value = Callable[[Any], Any]
Facet = Callable[[Any], str]
Lookup = Callable[[Tenant], Mapping[str, Any]]


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
        found = self.lookup(tenant)
        return [found.get(each.id) for each in objects]


@attrs.frozen
class Table:
    """A list of the objects of one collection.

    Attributes:
        columns: its columns; the first that is shown is the link to the object.
        tabs: the states that are tabs above the list.
        facets: attributes that are filters; the user chooses among the values that there are.
        day: the time whose day is a filter, in the time zone of the organization; empty if none is.
    """

    columns: tuple[Column, ...]
    tabs: tuple[str, ...]
    facets: tuple[str, ...]
    day: str

    @property
    def shown_facets(self) -> tuple[str, ...]:
        """The filters that the user can choose on the page of the list."""
        return (*(["status"] if self.tabs else []), *self.facets, *(["day"] if self.day else []))

    def facets_of(self, tenant: Tenant) -> Mapping[str, Facet]:
        """Return these filters, and those that links from other objects choose, such as ``patient``."""
        links = [column.hidden_by for column in self.columns if column.hidden_by is not None]
        special: dict[str, Facet] = {"status": state_of, "day": lambda obj: day_in(tenant, getattr(obj, self.day))}
        return {name: special.get(name) or _attribute(name) for name in (*links, *self.shown_facets)}


def _attribute(name: str) -> Facet:
    return lambda obj: getattr(obj, name) or ""


def day_in(tenant: Tenant, at: datetime) -> str:
    """Return the day of a time in the time zone of the organization."""
    # In UTC, an evening of Buenos Aires would be on the next day.
    return at.astimezone(zone_of(tenant.organization.time_zone)).date().isoformat()


def title_of_view(name: str) -> str:
    """Return the title of a view."""
    return {"calls": "API calls", "events": "Inbound events"}.get(name) or name.replace("_", " ").capitalize()


def noun_of(name: str) -> str:
    """Return the noun for one object of a list."""
    plural = title_of_view(name).lower()
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural[:-1]


def _own_name(heading: str, hidden_by: str | None = None) -> Column:
    return Column(heading, "id", "name", classes="at-main wide", hidden_by=hidden_by)


_ID = Column("id", "id", "id", classes="p3")
_CREATED = Column("created", "created_at", "time", classes="p3")
_CREATED_ON_PHONE = Column("created", "created_at", "time", classes="at-when")
_STATUS = Column("status", lambda obj: obj, "state", classes="at-state")
_PATIENT = Column("patient", "patient", "name", classes="at-detail wide", hidden_by="patient")
_DOCTOR = Column("doctor", "doctor", "name", classes="p2 at-detail wide", is_optional=True)
_EXTERNAL_ID = Column("external id", "external_id", "code", classes="p2")
_TWIN = Column("possible duplicate", "id", "twin", "at-note", lookup=twins_of, is_optional=True)


def _in_progress(delivery: WebhookDelivery) -> WebhookDelivery | None:
    """Return a delivery that has an error or a next attempt to show."""
    is_shown = delivery.next_attempt_at or (delivery.last_error and delivery.status != "succeeded")
    return delivery if is_shown else None


def _requested_service(intake: Any) -> str:
    return str(intake.data.get("requestedService") or intake.summary or "not known yet")


def next_starts(tenant: Tenant) -> dict[str, datetime]:
    """Return the start of the next appointment of each patient who has one, by the patient's id."""
    now, starts = tenant.now(), {}
    # The latest first, so that the earliest one of a patient is what remains.
    for each in sorted(tenant.appointments, key=attrgetter("start_at"), reverse=True):
        if each.start_at >= now and each.status not in ("cancelled", "completed"):
            starts[each.patient] = each.start_at
    return starts


def _table(*columns: Column, tabs: tuple[str, ...] = (), facets: tuple[str, ...] = (), day: str = "") -> Table:
    return Table(columns, tabs, facets, day)


TABLES: Mapping[str, Table] = {
    "webhook_deliveries": _table(
        Column("event", "event_type", classes="at-main"),
        Column("about", lambda delivery: delivery.payload.get("ref"), "name", classes="at-detail wide"),
        Column("endpoint", "webhook_endpoint", "name", classes="p2 wide", hidden_by="webhook_endpoint"),
        _STATUS,
        Column("attempts", "attempts", classes="p2"),
        Column("last error, next attempt", _in_progress, "progress", classes="at-note wide", is_optional=True),
        _CREATED_ON_PHONE,
        _ID,
        tabs=(*get_args(WebhookDeliveryStatus), STOPPED),
        facets=("webhook_endpoint", "event_type"),
        day="created_at",
    ),
    "webhook_endpoints": _table(
        _own_name("URL"),
        _STATUS,
        Column("events", "enabled_events", classes="at-detail wide"),
        Column("last delivered", "last_delivered_at", "time", classes="at-when"),
        Column("last error", lambda each: each if each.last_error else None, "failure", "wide", is_optional=True),
        _CREATED,
        _ID,
    ),
    "patients": _table(
        _own_name("name"),
        Column("phone", "phone", classes="at-detail"),
        Column("stage", "stage", "status", classes="at-state"),
        Column("next appointment", "id", "time", classes="p2", lookup=next_starts),
        Column("opted out", lambda each: "opted out" if each.opted_out else None, "flag", "p2", is_optional=True),
        _EXTERNAL_ID,
        _CREATED_ON_PHONE,
        _ID,
        facets=("stage",),
    ),
    "appointments": _table(
        _own_name("patient", hidden_by="patient"),
        Column("start", "start_at", "time", classes="at-when"),
        _STATUS,
        _DOCTOR,
        _TWIN,
        Column("type", "type", classes="p3 wide"),
        _EXTERNAL_ID,
        _CREATED,
        _ID,
        tabs=get_args(AppointmentStatus),
        day="start_at",
    ),
    "visits": _table(
        _own_name("patient", hidden_by="patient"),
        Column("visited", "visited_at", "time", classes="at-when"),
        _DOCTOR,
        Column("appointment", "appointment", "name", classes="p2 wide", is_optional=True),
        _EXTERNAL_ID,
        _CREATED,
        _ID,
    ),
    "treatments": _table(
        _own_name("treatment"),
        Column("kind", "kind", classes="p2"),
        _PATIENT,
        Column("active", lambda each: None if each.active else "ended", "flag", "at-state", is_optional=True),
        _CREATED_ON_PHONE,
        _ID,
    ),
    "intake_requests": _table(
        _own_name("patient", hidden_by="patient"),
        Column("service", _requested_service, classes="p2 wide"),
        _STATUS,
        Column("missing", "missing", classes="at-detail wide"),
        _CREATED_ON_PHONE,
        _ID,
        tabs=get_args(IntakeStatus),
    ),
    "events": _table(
        Column("type", "type", classes="at-main"),
        Column("about", lambda event: event.result and event.result.id, "name", classes="at-detail wide"),
        _STATUS,
        Column("error", "error", "error", classes="at-note wide", is_optional=True),
        _TWIN,
        Column("caller's id", "source_ref", "code", classes="p2 wide"),
        Column("received", "received_at", "time", classes="at-when"),
        _ID,
        tabs=get_args(EventStatus),
        facets=("type",),
        day="received_at",
    ),
    "doctors": _table(
        _own_name("name"),
        Column("specialty", "specialty", classes="at-detail wide"),
        Column("attends", lambda each: None if each.active else "inactive", "flag", "at-state", is_optional=True),
        _EXTERNAL_ID,
        _CREATED,
        _ID,
    ),
}
