"""The lists of the dashboard: the columns and the filters of each, and what it shows while it is empty."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, get_args

import attrs

from followup import Event, WebhookEndpoint
from followup._for_mockserver import AppointmentStatus, EventStatus, EventType, IntakeStatus, WebhookDeliveryStatus
from followup_mockserver.state.history import EVENT, Record
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant

Kind = Literal["name", "call", "text", "code", "time", "status", "flag", "progress", "error", "id"]
"""How a cell shows its value; ``name`` is the name of the object with this id, ``call`` a link to a call by its id."""

Place = Literal["main", "state", "detail", "when", "note", "none"]
"""Where a cell stands on a phone: main text and state in the first line, detail and time in the second, and a note
below them if the cell is not empty."""

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
        place: where it stands on a phone.
        priority: 1: in every table; 2: not in a narrow one; 3: only in a wide one.
        is_wide: whether long texts are cut to the space that the other columns leave.
        lookup: returns the values of objects that do not have them, by id; then ``value`` is not used.
        hidden_by: filter that gives every row the same value, so that the column is not shown.
    """

    heading: str
    value: Value = attrs.field(converter=_value_of)
    kind: Kind = "text"
    place: Place = attrs.field(default="none", kw_only=True)
    priority: Literal[1, 2, 3] = attrs.field(default=1, kw_only=True)
    is_wide: bool = attrs.field(default=False, kw_only=True)
    lookup: Lookup | None = attrs.field(default=None, kw_only=True)
    hidden_by: str | None = attrs.field(default=None, kw_only=True)

    @property
    def classes(self) -> str:
        """The classes of its cells in the style sheet."""
        return f"p{self.priority} at-{self.place}{' wide' if self.is_wide else ''}"


@attrs.frozen(kw_only=True)
class Table:
    """A list of the objects of one collection.

    Attributes:
        title: heading of the list.
        singular: noun for one object.
        columns: its columns; the first that is shown is the link to the object.
        tabs: index that the tabs above the list filter by; None for a list without tabs.
        choices: index to the values that the user can filter by.
        link_filters: further indexes that links from other objects filter by, such as ``patient``.
    """

    title: str
    singular: str
    columns: tuple[Column, ...]
    tabs: str | None = None
    choices: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    link_filters: tuple[str, ...] = ()


def _own_name(heading: str, hidden_by: str | None = None) -> Column:
    return Column(heading, "id", "name", place="main", is_wide=True, hidden_by=hidden_by)


_ID = Column("id", "id", "id", priority=3)
_CREATED = Column("created", "created_at", "time", priority=3)
_CREATED_ON_PHONE = Column("created", "created_at", "time", place="when")
_STATUS = Column("status", "status", "status", place="state")
_PATIENT = Column("patient", "patient", "name", place="detail", is_wide=True, hidden_by="patient")
_DOCTOR = Column("doctor", "doctor", "name", place="detail", priority=2, is_wide=True)
_EXTERNAL_ID = Column("external id", "external_id", "code", priority=2)


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


def records_of_events(tenant: Tenant, ids: set[str]) -> Iterator[Record]:
    """Return what the history has about inbound events, oldest first."""
    return (record for record in tenant.history.records if record.kind == EVENT and record.id in ids)


TABLES: Mapping[str, Table] = {
    "webhook_deliveries": Table(
        title="Webhook deliveries",
        singular="webhook delivery",
        columns=(
            Column("event", "event_type", place="main"),
            Column("about", lambda delivery: delivery.payload.get("ref"), "name", place="detail", is_wide=True),
            Column("endpoint", "webhook_endpoint", "name", priority=2, is_wide=True, hidden_by="webhook_endpoint"),
            _STATUS,
            Column("attempts", "attempts", priority=3),
            Column("last error, next attempt", lambda delivery: delivery, "progress", place="note", is_wide=True),
            _CREATED_ON_PHONE,
            _ID,
        ),
        tabs="status",
        choices={"status": get_args(WebhookDeliveryStatus)},
        link_filters=("webhook_endpoint",),
    ),
    "webhook_endpoints": Table(
        title="Webhook endpoints",
        singular="webhook endpoint",
        columns=(
            _own_name("URL"),
            Column("status", state_of, "status", place="state"),
            Column("events", "enabled_events", place="detail", is_wide=True),
            Column("last delivered", "last_delivered_at", "time", place="when"),
            Column("last error", lambda endpoint: endpoint.last_error and endpoint.last_error.message, is_wide=True),
            _CREATED,
            _ID,
        ),
    ),
    "patients": Table(
        title="Patients",
        singular="patient",
        columns=(
            _own_name("name"),
            Column("phone", "phone", place="detail"),
            Column("stage", "stage", "status", place="state"),
            Column("messages", lambda patient: "opted out" if patient.opted_out else None, "flag", priority=2),
            _EXTERNAL_ID,
            _CREATED_ON_PHONE,
            _ID,
        ),
    ),
    "appointments": Table(
        title="Appointments",
        singular="appointment",
        columns=(
            _own_name("patient", hidden_by="patient"),
            Column("start", "start_at", "time", place="when"),
            _STATUS,
            _DOCTOR,
            Column("type", "type", priority=3, is_wide=True),
            _EXTERNAL_ID,
            _CREATED,
            _ID,
        ),
        tabs="status",
        choices={"status": get_args(AppointmentStatus)},
        link_filters=("patient",),
    ),
    "visits": Table(
        title="Visits",
        singular="visit",
        columns=(
            _own_name("patient", hidden_by="patient"),
            Column("visited", "visited_at", "time", place="when"),
            _DOCTOR,
            Column("appointment", "appointment", "name", priority=2, is_wide=True),
            _EXTERNAL_ID,
            _CREATED,
            _ID,
        ),
        link_filters=("patient",),
    ),
    "treatments": Table(
        title="Treatments",
        singular="treatment",
        columns=(
            _own_name("treatment"),
            Column("kind", "kind", priority=2),
            _PATIENT,
            Column("active", lambda treatment: None if treatment.active else "ended", "flag", place="state"),
            _CREATED_ON_PHONE,
            _ID,
        ),
        link_filters=("patient",),
    ),
    "intake_requests": Table(
        title="Intake requests",
        singular="intake request",
        columns=(
            _own_name("patient", hidden_by="patient"),
            Column("service", _requested_service, priority=2, is_wide=True),
            _STATUS,
            Column("missing", "missing", place="detail", is_wide=True),
            _CREATED_ON_PHONE,
            _ID,
        ),
        tabs="status",
        choices={"status": get_args(IntakeStatus)},
        link_filters=("patient",),
    ),
    "events": Table(
        title="Inbound events",
        singular="inbound event",
        columns=(
            Column("type", "type", place="main"),
            Column("about", _produced, "name", place="detail", is_wide=True),
            _STATUS,
            Column("error", "error", "error", place="note", is_wide=True),
            Column("caller's id", "source_ref", "code", priority=2, is_wide=True),
            Column("request", "id", "call", priority=2, lookup=requests_of_events),
            Column("received", "received_at", "time", place="when"),
            _ID,
        ),
        tabs="status",
        choices={"status": get_args(EventStatus), "type": get_args(EventType)},
    ),
    "doctors": Table(
        title="Doctors",
        singular="doctor",
        columns=(
            _own_name("name"),
            Column("specialty", "specialty", place="detail", is_wide=True),
            Column("attends", lambda doctor: None if doctor.active else "inactive", "flag", place="state"),
            _EXTERNAL_ID,
            _CREATED,
            _ID,
        ),
    ),
}


@attrs.frozen
class EmptyList:
    """The text of an empty list.

    Attributes:
        text: what makes a row appear.
        command: a shell command that does it; None if there is none.
    """

    text: str
    command: str | None = None


_NEW_PATIENT = '--patient \'{"phone": "+54 9 11 5555-0001"}\''
_LISTEN = "followup-mock listen --forward-to http://127.0.0.1:8000/webhooks"

EMPTY_LISTS: Mapping[str, EmptyList] = {
    "calls": EmptyList("No calls yet. Calls to this mock appear here.", "followup account retrieve"),
    "webhook_deliveries": EmptyList(
        "No deliveries yet. There is one whenever something happens that an enabled endpoint is subscribed to. This "
        "creates an endpoint that forwards to your receiver:",
        _LISTEN,
    ),
    "webhook_endpoints": EmptyList(
        "No endpoints yet. This creates one that forwards to your receiver:",
        _LISTEN,
    ),
    "patients": EmptyList(
        "No patients yet. They are created directly, or with an appointment, a visit or an inbound event:",
        "followup patients create --phone '+54 9 11 5555-0001' --full-name 'Eva Sosa'",
    ),
    "appointments": EmptyList(
        "No appointments yet. Each schedules its reminders:",
        f"followup appointments create {_NEW_PATIENT} --start-at 2030-01-15T10:00:00-03:00",
    ),
    "visits": EmptyList(
        "No visits yet. Each starts the follow-up after the visit:",
        f"followup visits create {_NEW_PATIENT} --visited-at 2030-01-15T10:30:00-03:00",
    ),
    "treatments": EmptyList(
        "No treatments yet.",
        f"followup treatments create {_NEW_PATIENT} --name ibuprofen",
    ),
    "intake_requests": EmptyList(
        "No intake requests yet. The service asks the patient for the data that one is missing:",
        f"followup intake-requests create {_NEW_PATIENT}",
    ),
    "events": EmptyList(
        "No inbound events yet. They arrive with events.create; an invalid event is not stored, but is on the page of "
        "its call:",
        'followup events create \'{"id": "order-1", "type": "order.issued", "data": {}}\'',
    ),
    "doctors": EmptyList("No doctors. Add one below."),
}
"""The name of a view to the text of its list without rows."""
