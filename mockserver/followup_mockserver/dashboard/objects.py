"""The objects that the views show: the pages of their lists, and their names for people."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import attrs

from followup import IntakeRequest
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.dashboard.columns import TABLES, Column, Table, title_of_view
from followup_mockserver.state.collection import Collection, UnknownCursor
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant

T = TypeVar("T")

ROWS = 50
"""Rows per page."""

VIEW_OF_PREFIX = {
    operation.declaration.id_prefix.prefix: operation.group
    for operation in OPERATIONS.values()
    if operation.declaration.id_prefix is not None
}
"""Prefix of an id to the name of the view that shows the object. A view has the name of its collection."""


@attrs.frozen(kw_only=True)
class ListPage:
    """A page of a list, newest first.

    Attributes:
        name: name of the view.
        rows: what this page shows.
        matching: number of rows that match the filters, on all pages.
        total: number of rows without filters.
        filters: name of a filter to the selected value.
        counts: number of rows for each choice of a filter, with other filters applied; the empty choice counts all.
        tabs: the filter whose choices are tabs above the list; None for a list without tabs.
        is_later: whether there are newer rows.
        older: identifies the last row if there are older rows, else None.
    """

    name: str
    rows: Sequence[Any]
    matching: int
    total: int
    filters: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    tabs: str | None = "show"
    is_later: bool
    older: str | None

    @property
    def title(self) -> str:
        """The heading of a list of objects."""
        return title_of_view(self.name)

    def address(self, **changes: str) -> str:
        """Return the address of this list with other filters; an empty value removes a filter."""
        query = {name: value for name, value in {**self.filters, **changes}.items() if value}
        return f"#/{self.name}?{urlencode(query)}" if query else f"#/{self.name}"


@attrs.frozen(kw_only=True)
class TablePage(ListPage):
    """A page of a list of objects. Each row is the id of an object and its values, one for each column.

    Attributes:
        table: the list.
        columns: the columns to show; the first is the link to the object.
        newer: id of the first row if there are newer rows, else None.
    """

    table: Table
    columns: tuple[Column, ...]
    newer: str | None


def collection_of(tenant: Tenant, name: str) -> Collection[Any]:
    """Return the collection whose objects a view shows."""
    collection: Collection[Any] = getattr(tenant, name)
    return collection


def page_of(tenant: Tenant, name: str, query: Mapping[str, str], rows: int = ROWS) -> TablePage:
    """Return a page of a list of objects.

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
    shown = [(each, each.values(tenant, found)) for each in table.columns if each.hidden_by not in filters]
    columns, values = zip(*(pair for pair in shown if any(pair[1]) or not pair[0].is_optional), strict=True)
    newer = found[0].id if found and (after is not None or (before is not None and more)) else None
    return TablePage(
        name=name,
        table=table,
        columns=columns,
        rows=[(obj.id, row) for obj, *row in zip(found, *values, strict=True)],
        matching=_count(collection, filters),
        total=len(collection),
        filters=filters,
        counts={
            index: {choice: _count(collection, {**filters, index: choice}) for choice in ("", *choices)}
            for index, choices in table.choices.items()
        },
        tabs="status" if "status" in table.choices else None,
        is_later=newer is not None,
        newer=newer,
        older=found[-1].id if found and (more if before is None else True) else None,
    )


def page_after(
    name: str,
    found: Sequence[T],
    after: str | None,
    key_of: Callable[[T], str],
    row_of: Callable[[T], Any],
    **others: Any,
) -> ListPage:
    """Return a page of a list that is no collection.

    Args:
        name: name of the view.
        found: what matches the filters, newest first.
        after: key of what precedes the page; an unknown one selects the first page.
        key_of: returns the key.
        row_of: returns what the page shows.
        others: further attributes of the page.
    """
    start = next((place for place, each in enumerate(found, 1) if key_of(each) == after), 0) if after else 0
    rows = found[start : start + ROWS]
    return ListPage(
        name=name,
        rows=[row_of(each) for each in rows],
        matching=len(found),
        is_later=start > 0,
        older=key_of(rows[-1]) if start + ROWS < len(found) else None,
        **others,
    )


def _count(collection: Collection[Any], filters: Mapping[str, str]) -> int:
    """Return the number of objects that match all filters that are not empty. An index is named after its attribute."""
    wanted = [item for item in filters.items() if item[1]]
    if not wanted:
        return len(collection)
    (index, value), *others = sorted(wanted, key=lambda item: collection.count(*item))
    if not others:
        return collection.count(index, value)
    return sum(all(getattr(obj, name) == other for name, other in others) for obj in collection.find_all(index, value))


@attrs.frozen
class Name:
    """The name of an object.

    Attributes:
        text: the name, such as ``Ana Díaz``.
        at: a time that belongs to the name, such as the start of an appointment; None if there is none.
    """

    text: str
    at: datetime | None = None


def name_of(tenant: Tenant, id: str) -> Name | None:
    """Return the name of an object or a call; None if it has none, or does not exist any more.

    Args:
        tenant: the state of the organization.
        id: id of any object of the API, or of a call (``req_…``).
    """
    if id.startswith(REQUEST_ID_PREFIX):
        call = tenant.journal.find(id)
        return None if call is None or call.operation is None else Name(call.operation)
    prefix, underscore, _ = id.partition("_")
    view = VIEW_OF_PREFIX.get(prefix + underscore)
    obj = None if view is None else collection_of(tenant, view).get(id)
    return None if view is None or obj is None else _NAMES[view](tenant, obj)


def patient_name(tenant: Tenant, id: str | None) -> str | None:
    """Return a patient's name, or else the phone; None if there is neither."""
    patient = None if id is None else tenant.patients.get(id)
    return None if patient is None else patient.full_name or patient.phone


def address(url: str) -> str:
    """Return host and path of a URL: what distinguishes the endpoints of an organization."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def _of_patient(tenant: Tenant, id: str | None, otherwise: str, at: datetime | None = None) -> Name:
    return Name(patient_name(tenant, id) or otherwise, at)


def _intake_request(tenant: Tenant, intake: IntakeRequest) -> Name | None:
    text = intake.data.get("patient", {}).get("fullName") or patient_name(tenant, intake.patient) or intake.summary
    return Name(text) if text else None


_NAMES: Mapping[str, Callable[[Tenant, Any], Name | None]] = {
    "patients": lambda tenant, patient: Name(text) if (text := patient_name(tenant, patient.id)) else None,
    "doctors": lambda _, doctor: Name(doctor.full_name),
    "appointments": lambda tenant, each: _of_patient(tenant, each.patient, "Appointment", each.start_at),
    "visits": lambda tenant, each: _of_patient(tenant, each.patient, "Visit", each.visited_at),
    "treatments": lambda _, treatment: Name(treatment.name),
    "intake_requests": _intake_request,
    "events": lambda _, event: Name(event.type),
    "webhook_endpoints": lambda _, endpoint: Name(address(endpoint.url)),
    "webhook_deliveries": lambda _, delivery: Name(delivery.event_type),
}
