"""The objects that the views show: the pages of their lists, and their names for people."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar
from urllib.parse import urlencode

import attrs

from followup import IntakeRequest
from followup_mockserver.control.occurrences import address, title_of_cause
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.web.dashboard.columns import TABLES, Column, title_of_view
from followup_mockserver.world.state.collection import Collection
from followup_mockserver.world.state.history import CONTROL_PREFIX, JOB_PREFIX
from followup_mockserver.world.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.world.state.tenant import Tenant

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
        columns: the columns to show of a list of objects; the first is the link to the object.
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
    columns: tuple[Column, ...] = ()
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


def collection_of(tenant: Tenant, name: str) -> Collection[Any]:
    """Return the collection whose objects a view shows."""
    collection: Collection[Any] = getattr(tenant, name)
    return collection


def page_of(tenant: Tenant, name: str, query: Mapping[str, str], rows: int = ROWS) -> ListPage:
    """Return a page of a list of objects. Each row is the id of an object and its values, one for each column.

    Args:
        tenant: the state of the organization.
        name: name of the view.
        query: the filters by name, and the id ``after`` which the page begins. An unknown id, such as one from before a
            reset, selects the first page.
        rows: rows per page.
    """
    table = TABLES[name]
    objects = [*collection_of(tenant, name)][::-1]
    page = list_page(name, objects, query, attrgetter("id"), table.facets_of(tenant), rows=rows)
    counts = {facet: page.counts[facet] for facet in table.shown_facets}
    if table.tabs:
        counts["status"] = {choice: counts["status"].get(choice, 0) for choice in ("", *table.tabs)}
    shown = [(each, each.values(tenant, page.rows)) for each in table.columns if each.hidden_by not in page.filters]
    columns, values = zip(*(pair for pair in shown if any(pair[1]) or not pair[0].is_optional), strict=True)
    return attrs.evolve(
        page,
        rows=[(obj.id, row) for obj, *row in zip(page.rows, *values, strict=True)],
        counts=counts,
        tabs="status" if table.tabs else None,
        columns=columns,
    )


def _selected(
    items: Iterable[T], facets: Mapping[str, Callable[[T], str]], filters: Mapping[str, str]
) -> tuple[list[T], dict[str, dict[str, int]]]:
    """Return the items that match the filters, and the numbers for each choice of a filter."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in facets}
    found = []
    for item in items:
        values = {name: facet(item) for name, facet in facets.items()}
        wrong = [name for name, value in filters.items() if values[name] != value]
        if not wrong:
            found.append(item)
        # A choice says how many rows it would show, so it counts what only its own filter rejects.
        for name in wrong if len(wrong) == 1 else () if wrong else facets:
            counts[name][values[name]] += 1
    return found, {name: _choices(count, filters.get(name)) for name, count in counts.items()}


def _choices(counts: Counter[str], chosen: str | None) -> dict[str, int]:
    """Return the values with their numbers, that of all first; the chosen one is there even if nothing has it."""
    first = {"": counts.total()} | ({chosen: 0} if chosen else {})
    return first | {value: count for value, count in sorted(counts.items()) if value}


def list_page(
    name: str,
    items: Sequence[T],
    query: Mapping[str, str],
    key_of: Callable[[T], str],
    facets: Mapping[str, Callable[[T], str]],
    tabs: Mapping[str, Callable[[T], bool]] | None = None,
    rows: int = ROWS,
) -> ListPage:
    """Return a page of a list, whose rows are the items themselves.

    Args:
        name: name of the view.
        items: the items, in the order of the list.
        query: the filters by name, and the key ``after`` which the page begins; an unknown one selects the first page.
        key_of: returns the key of an item.
        facets: the filters by name, each a function that returns the value of an item.
        tabs: the choices of the further filter ``show``, which may overlap; the empty one shows all.
        rows: rows per page.
    """
    filters = {name: value for name in facets if (value := query.get(name, "").strip())}
    found, counts = _selected(items, facets, filters)
    if tabs is not None:
        show = query.get("show", "") if query.get("show") in tabs else ""
        counts_of_tabs = {tab: sum(map(shows, found)) for tab, shows in tabs.items()}
        found, counts = _selected(filter(tabs[show], items), facets, filters)
        counts = {"show": counts_of_tabs, **counts}
        filters = {"show": show, **filters} if show else filters
    after = query.get("after")
    start = next((place for place, each in enumerate(found, 1) if key_of(each) == after), 0) if after else 0
    shown = found[start : start + rows]
    return ListPage(
        name=name,
        rows=shown,
        matching=len(found),
        total=len(items),
        filters=filters,
        counts=counts,
        is_later=start > 0,
        older=key_of(shown[-1]) if start + rows < len(found) else None,
    )


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
        id: id of any object of the API, or of a call (``req_…``), a job (``job_…``) or a test control (``ctl_…``).
    """
    if id.startswith(REQUEST_ID_PREFIX):
        call = tenant.journal.find(id)
        return None if call is None or call.operation is None else Name(call.operation)
    if id.startswith((CONTROL_PREFIX, JOB_PREFIX)):
        record = next((each for each in reversed(tenant.history.records) if each.id == id), None)
        return None if record is None else Name(title_of_cause(record))
    prefix, underscore, _ = id.partition("_")
    view = VIEW_OF_PREFIX.get(prefix + underscore)
    obj = None if view is None else collection_of(tenant, view).get(id)
    return None if view is None or obj is None else _NAMES[view](tenant, obj)


def patient_name(tenant: Tenant, id: str | None) -> str | None:
    """Return a patient's name, or else the phone; None if there is neither."""
    patient = None if id is None else tenant.patients.get(id)
    return None if patient is None else patient.full_name or patient.phone


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
