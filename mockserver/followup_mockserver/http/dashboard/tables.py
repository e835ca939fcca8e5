"""The lists of the dashboard: their collections, columns and filters."""

from collections.abc import Mapping
from typing import Any, get_args

import attrs

from followup._for_mockserver import AppointmentStatus, EventStatus, EventType, IntakeStatus, WebhookDeliveryStatus
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.state.collection import Collection, UnknownCursor
from followup_mockserver.state.tenant import Tenant

ROWS = 50
"""Rows per page."""

VIEW_OF_PREFIX = {
    declaration.id_prefix.prefix: operation.group
    for operation in OPERATIONS.values()
    if (declaration := operation.declaration).id_prefix is not None
}
"""Prefix of an id to the name of the view that shows the object. A view has the name of its collection."""


@attrs.frozen(kw_only=True)
class Table:
    """A list of the objects of one collection.

    Attributes:
        title: heading of the list.
        singular: noun for one object.
        columns: heading of a column to the attribute that it shows.
        choices: index to the values that the user can filter by.
        link_filters: further indexes that links from other objects filter by, such as ``patient``.
    """

    title: str
    singular: str
    columns: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    link_filters: tuple[str, ...] = ()


_CREATED = {"created": "created_at"}
_ID = {"id": "id"}

TABLES: Mapping[str, Table] = {
    "webhook_deliveries": Table(
        title="Webhook deliveries",
        singular="webhook delivery",
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
        link_filters=("webhook_endpoint",),
    ),
    "webhook_endpoints": Table(
        title="Webhook endpoints",
        singular="webhook endpoint",
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
        singular="patient",
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
        singular="appointment",
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
        link_filters=("patient",),
    ),
    "visits": Table(
        title="Visits",
        singular="visit",
        columns={
            **_ID,
            "visited": "visited_at",
            "patient": "patient",
            "doctor": "doctor",
            "appointment": "appointment",
            "external id": "external_id",
            **_CREATED,
        },
        link_filters=("patient",),
    ),
    "treatments": Table(
        title="Treatments",
        singular="treatment",
        columns={
            **_ID,
            "kind": "kind",
            "name": "name",
            "patient": "patient",
            "active": "active",
            **_CREATED,
        },
        link_filters=("patient",),
    ),
    "intake_requests": Table(
        title="Intake requests",
        singular="intake request",
        columns={
            **_ID,
            "status": "status",
            "missing": "missing",
            "patient": "patient",
            "summary": "summary",
            **_CREATED,
        },
        choices={"status": get_args(IntakeStatus)},
        link_filters=("patient",),
    ),
    "events": Table(
        title="Events",
        singular="event",
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
        singular="doctor",
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
    """A page of a list, newest first.

    Attributes:
        name: name of the view.
        table: the list.
        rows: the objects of this page.
        matching: number of objects that match the filters.
        total: number of all objects.
        filters: index to the selected value.
        counts: index to the number of objects for each choice, with the other filters applied.
        newer: id of the first row if there are newer rows, else None.
        older: id of the last row if there are older rows, else None.
    """

    name: str
    table: Table
    rows: list[Any]
    matching: int
    total: int
    filters: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    newer: str | None = None
    older: str | None = None


def collection_of(tenant: Tenant, name: str) -> Collection[Any]:
    """Return the collection whose objects a view shows."""
    collection: Collection[Any] = getattr(tenant, name)
    return collection


def page_of(tenant: Tenant, name: str, query: Mapping[str, str], rows: int = ROWS) -> TablePage:
    """Return a page of a list.

    Args:
        tenant: the state of the organization.
        name: name of the view.
        query: the filters by index, and the id ``after`` which the page begins (older rows) or ``before`` which it
            ends (newer rows). An unknown id, such as one from before a reset, selects the first page.
        rows: rows per page.
    """
    table, collection = TABLES[name], collection_of(tenant, name)
    filters = {index: query[index] for index in (*table.choices, *table.link_filters) if query.get(index)}
    after, before = query.get("after"), query.get("before")
    try:
        found, more = collection.page(limit=rows, after=after, before=before, where=filters)
    except UnknownCursor:
        after = before = None
        found, more = collection.page(limit=rows, where=filters)
    return TablePage(
        name=name,
        table=table,
        rows=found,
        matching=_count(collection, filters),
        total=len(collection),
        filters=filters,
        counts={
            index: {choice: _count(collection, {**filters, index: choice}) for choice in choices}
            for index, choices in table.choices.items()
        },
        newer=found[0].id if found and (after is not None or (before is not None and more)) else None,
        older=found[-1].id if found and (more if before is None else True) else None,
    )


def _count(collection: Collection[Any], filters: Mapping[str, str]) -> int:
    """Return the number of objects that match all filters. An index has the name of its attribute."""
    if not filters:
        return len(collection)
    (index, value), *others = sorted(filters.items(), key=lambda item: collection.count(*item))
    if not others:
        return collection.count(index, value)
    return sum(all(getattr(obj, name) == other for name, other in others) for obj in collection.find_all(index, value))
