"""The lists of the dashboard: the columns and the filters of each."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, get_args

import attrs

from followup._for_mockserver import AppointmentStatus, EventStatus, EventType, IntakeStatus, WebhookDeliveryStatus
from followup_mockserver.dashboard.endpoint_states import state_of
from followup_mockserver.dashboard.inbound_events import requests_of_events
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
