"""The lists of the dashboard: of which collections, what of an object a row shows, and by what they are filtered."""

from collections.abc import Mapping
from typing import Any, get_args

import attrs

from followup._for_mockserver import AppointmentStatus, EventStatus, EventType, IntakeStatus, WebhookDeliveryStatus
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.state.collection import Collection, UnknownCursor
from followup_mockserver.state.tenant import Tenant

ROWS = 50
"""So many objects stand on a page of a list."""

VIEW_OF_PREFIX = {
    declaration.id_prefix.prefix: operation.group
    for operation in OPERATIONS.values()
    if (declaration := operation.declaration).id_prefix is not None
}
"""Prefix of an id to the view, which is also the collection, that shows the object."""


@attrs.frozen(kw_only=True)
class Table:
    """A list of objects.

    Attributes:
        title: its heading.
        one: what one of the objects is called.
        columns: heading of a column to the attribute that stands in it; ``id`` leads to the object.
        choices: index to the values that it can be filtered by.
        belonging: further indexes that links filter by, such as ``patient``.
    """

    title: str
    one: str
    columns: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    belonging: tuple[str, ...] = ()


_CREATED = {"created": "created_at"}
_ID = {"id": "id"}

TABLES: Mapping[str, Table] = {
    "webhook_deliveries": Table(
        title="Webhook deliveries",
        one="webhook delivery",
        columns={
            **_ID,
            "event": "event_type",
            "status": "status",
            "attempts": "attempts",
            "last error": "last_error",
            "next attempt": "next_attempt_at",
            **_CREATED,
        },
        choices={"status": get_args(WebhookDeliveryStatus)},
        belonging=("webhook_endpoint",),
    ),
    "webhook_endpoints": Table(
        title="Webhook endpoints",
        one="webhook endpoint",
        columns={
            **_ID,
            "URL": "url",
            "status": "status",
            "events": "enabled_events",
            "last delivered": "last_delivered_at",
            **_CREATED,
        },
    ),
    "patients": Table(
        title="Patients",
        one="patient",
        columns={
            **_ID,
            "name": "full_name",
            "phone": "phone",
            "stage": "stage",
            "opted out": "opted_out",
            "external id": "external_id",
            **_CREATED,
        },
    ),
    "appointments": Table(
        title="Appointments",
        one="appointment",
        columns={
            **_ID,
            "start": "start_at",
            "status": "status",
            "patient": "patient",
            "doctor": "doctor",
            "external id": "external_id",
            **_CREATED,
        },
        choices={"status": get_args(AppointmentStatus)},
        belonging=("patient",),
    ),
    "visits": Table(
        title="Visits",
        one="visit",
        columns={
            **_ID,
            "visited": "visited_at",
            "patient": "patient",
            "doctor": "doctor",
            "appointment": "appointment",
            "external id": "external_id",
            **_CREATED,
        },
        belonging=("patient",),
    ),
    "treatments": Table(
        title="Treatments",
        one="treatment",
        columns={
            **_ID,
            "kind": "kind",
            "name": "name",
            "patient": "patient",
            "active": "active",
            **_CREATED,
        },
        belonging=("patient",),
    ),
    "intake_requests": Table(
        title="Intake requests",
        one="intake request",
        columns={
            **_ID,
            "status": "status",
            "missing": "missing",
            "patient": "patient",
            "summary": "summary",
            **_CREATED,
        },
        choices={"status": get_args(IntakeStatus)},
        belonging=("patient",),
    ),
    "events": Table(
        title="Events",
        one="event",
        columns={
            **_ID,
            "type": "type",
            "status": "status",
            "source": "source",
            "caller's id": "source_ref",
            "error": "error",
            "received": "received_at",
        },
        choices={"status": get_args(EventStatus), "type": get_args(EventType)},
    ),
    "doctors": Table(
        title="Doctors",
        one="doctor",
        columns={
            **_ID,
            "name": "full_name",
            "specialty": "specialty",
            "active": "active",
            "external id": "external_id",
            **_CREATED,
        },
    ),
}


@attrs.frozen(kw_only=True)
class TablePage:
    """Some rows of a list, newest first.

    Attributes:
        matching: how many objects there are with the filters.
        total: how many there are without.
        chosen: the filters, by index.
        counts: how many objects there are for each choice, with the other filters.
        newer: id of the first row, where there are newer ones; None where there are none.
        older: id of the last row, where there are older ones.
    """

    name: str
    table: Table
    rows: list[Any]
    matching: int
    total: int
    chosen: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    newer: str | None = None
    older: str | None = None


def collection_of(tenant: Tenant, name: str) -> Collection[Any]:
    """The objects that a view shows."""
    collection: Collection[Any] = getattr(tenant, name)
    return collection


def page_of(tenant: Tenant, name: str, query: Mapping[str, str], rows: int = ROWS) -> TablePage:
    """A page of a list.

    Args:
        query: filters by index, and the id that the page begins ``after`` (older) or ends ``before`` (newer). One that
            is not there any more, after a reset, gives the first page.
    """
    table, collection = TABLES[name], collection_of(tenant, name)
    chosen = {index: query[index] for index in (*table.choices, *table.belonging) if query.get(index)}
    after, before = query.get("after"), query.get("before")
    try:
        found, more = collection.page(limit=rows, after=after, before=before, where=chosen)
    except UnknownCursor:
        after = before = None
        found, more = collection.page(limit=rows, where=chosen)
    return TablePage(
        name=name,
        table=table,
        rows=found,
        matching=_count(collection, chosen),
        total=len(collection),
        chosen=chosen,
        counts={
            index: {choice: _count(collection, {**chosen, index: choice}) for choice in choices}
            for index, choices in table.choices.items()
        },
        newer=found[0].id if found and (after is not None or (before is not None and more)) else None,
        older=found[-1].id if found and (more if before is None else True) else None,
    )


def _count(collection: Collection[Any], chosen: Mapping[str, str]) -> int:
    """How many objects there are with all of these values; the names of the indexes are those of the attributes."""
    if not chosen:
        return len(collection)
    (index, value), *others = sorted(chosen.items(), key=lambda each: collection.count(*each))
    if not others:
        return collection.count(index, value)
    return sum(all(getattr(obj, name) == other for name, other in others) for obj in collection.find_all(index, value))
