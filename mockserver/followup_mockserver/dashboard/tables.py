"""The pages of a list: the objects that match its filters, and how many match each filter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import attrs

from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.dashboard.columns import TABLES, Column, Table
from followup_mockserver.dashboard.empty_lists import EMPTY_LISTS, EmptyList
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
class TablePage:
    """A page of a list, newest first.

    Attributes:
        name: name of the view.
        table: the list.
        rows: the objects of this page.
        found: heading of a column with a lookup to the values that it found, by id of the object.
        empty: what the list shows if there are no objects at all.
        columns: the columns to show; the first is the link to the object.
        matching: number of objects that match the filters.
        total: number of all objects.
        filters: index to the selected value.
        counts: index to the number of objects for each choice, with the other filters applied; the empty choice
            counts all.
        newer: id of the first row if there are newer rows, else None.
        older: id of the last row if there are older rows, else None.
    """

    name: str
    table: Table
    empty: EmptyList
    columns: tuple[Column, ...]
    rows: list[Any]
    found: Mapping[str, Mapping[str, Any]]
    matching: int
    total: int
    filters: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    newer: str | None = None
    older: str | None = None

    @property
    def headings(self) -> list[tuple[str, str]]:
        """The heading of each column, and its classes."""
        return [(column.heading, column.classes) for column in self.columns]

    def value(self, column: Column, row: Any) -> Any:
        """Return the value of a cell."""
        return column.value(row) if column.lookup is None else self.found[column.heading].get(row.id)

    def address(self, changes: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return the address of this list with other filters; an empty value removes a filter."""
        query = {name: value for name, value in {**self.filters, **changes}.items() if value}
        return f"#/{self.name}?{urlencode(query)}" if query else f"#/{self.name}"


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
        empty=EMPTY_LISTS[name],
        columns=tuple(column for column in table.columns if column.hidden_by not in filters),
        rows=found,
        found={column.heading: column.lookup(tenant, found) for column in table.columns if column.lookup is not None},
        matching=_count(collection, filters),
        total=len(collection),
        filters=filters,
        counts={
            index: {choice: _count(collection, _with(filters, index, choice)) for choice in ("", *choices)}
            for index, choices in table.choices.items()
        },
        newer=found[0].id if found and (after is not None or (before is not None and more)) else None,
        older=found[-1].id if found and (more if before is None else True) else None,
    )


def _with(filters: Mapping[str, str], index: str, choice: str) -> dict[str, str]:
    """Return the filters with another choice; the empty choice removes the filter."""
    others = {name: value for name, value in filters.items() if name != index}
    return {**others, index: choice} if choice else others


def _count(collection: Collection[Any], filters: Mapping[str, str]) -> int:
    """Return the number of objects that match all filters. An index has the name of its attribute."""
    if not filters:
        return len(collection)
    (index, value), *others = sorted(filters.items(), key=lambda item: collection.count(*item))
    if not others:
        return collection.count(index, value)
    return sum(all(getattr(obj, name) == other for name, other in others) for obj in collection.find_all(index, value))
