"""The rules of the service: one module per group of operations, one function per operation, and no HTTP.

Besides, ``reminders`` has the messages to patients, ``event_effects`` what each type of inbound event does, and
``triggered_events`` the webhooks that a test asks for. Here is the pagination of the operations that list
(specification, section 4, Conventions).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from followup._for_mockserver import DEFAULT_PAGE_SIZE
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.state.collection import Bounds, Collection, PageResult, S, UnknownCursor
from followup_mockserver.world.state.tenant import Tenant


def page(
    collection: Collection[S],
    query: Mapping[str, Any],
    *,
    where: Iterable[str] = (),
    between: Mapping[str, Bounds] | None = None,
) -> PageResult[S]:
    """Return a page of a collection.

    Args:
        collection: the objects to list.
        query: the parameters of the request, by their snake_case names.
        where: names of the parameters that filter by the index of the same name.
        between: bounds by the name of an attribute.

    Raises:
        ServiceError: 400: the query has both cursors, or the cursor is not the id of an object in the collection.
    """
    after, before = query.get("starting_after"), query.get("ending_before")
    if after is not None and before is not None:
        raise invalid("parameter_invalid", "startingAfter and endingBefore cannot be combined.", "endingBefore")
    try:
        return collection.page(
            limit=query.get("limit", DEFAULT_PAGE_SIZE),
            after=after,
            before=before,
            where={name: query[name] for name in where if name in query},
            between=between,
        )
    except UnknownCursor:
        param = "startingAfter" if before is None else "endingBefore"
        raise invalid("resource_missing", "There is no object with this id.", param) from None


def list_of(collection: str, *where: str) -> Callable[..., PageResult[Any]]:
    """Return the rule of an operation that lists a collection, most recently created first.

    Args:
        collection: name of the collection of the tenant.
        where: names of the parameters that filter by the index of the same name.
    """

    def list_(tenant: Tenant, **query: Any) -> PageResult[Any]:
        return page(getattr(tenant, collection), query, where=where)

    return list_
