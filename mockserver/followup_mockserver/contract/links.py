"""The links of the OpenAPI document: which operations can follow one, with an id from its response.

They are derived from the declarations: the id that an operation returns is the path id of others, or a filter of lists.
Tools for stateful tests follow them.
"""

from collections.abc import Iterator
from typing import Any, get_args

from followup._for_mockserver import IdPrefix, Parameter, annotations_of, bare, camel, is_union, wire_fields
from followup_mockserver.contract.operations import OPERATIONS, Operation

Link = dict[str, Any]


def links_of(operation: Operation) -> dict[str, Link]:
    """Return the links of the successful response of an operation, each under the name of the operation it leads to."""
    return {link["operationId"]: link for link in _links(operation) if link["operationId"] != operation.name}


def _links(operation: Operation) -> Iterator[Link]:
    declaration = operation.declaration
    result = declaration.item_type or declaration.returns
    # The first item of a list; a tool does not follow the link if there is none.
    start = "/" if declaration.item_type is None else "/data/0/"
    for name, annotation in annotations_of(result).items():
        prefix = _prefix_in(annotation)
        if name in wire_fields(result) and prefix is not None:
            yield from _followers(prefix, f"$response.body#{start}{camel(name)}", is_own_id=name == "id")


def _followers(prefix: IdPrefix, value: str, *, is_own_id: bool) -> Iterator[Link]:
    """Yield the links to the operations that take an id with this prefix.

    Args:
        prefix: the prefix of the id.
        value: the runtime expression of the id.
        is_own_id: whether the id is that of the result. To the id of another object, only retrieving it is a link.
    """
    for operation in OPERATIONS.values():
        declaration = operation.declaration
        if declaration.id_prefix == prefix and (is_own_id or declaration.method_name == "retrieve"):
            yield _link(operation, "path.id", value)
        if is_own_id and declaration.item_type is not None:
            for parameter in declaration.parameters:
                if prefix in map(_prefix_in, _types_of(parameter)) and parameter.name not in _CURSORS:
                    yield _link(operation, f"query.{parameter.wire_name}", value)


_CURSORS = ("starting_after", "ending_before")


def _link(operation: Operation, parameter: str, value: str) -> Link:
    summary = operation.description.partition("\n\n")[0]
    return {"operationId": operation.name, "parameters": {parameter: value}, "description": summary}


def _types_of(parameter: Parameter) -> tuple[Any, ...]:
    """Return the types of a parameter; that of an omitted argument is one of them."""
    return get_args(parameter.annotation) if is_union(parameter.annotation) else (parameter.annotation,)


def _prefix_in(annotation: Any) -> IdPrefix | None:
    """Return the prefix of an id that is never null; None for any other value."""
    if bare(annotation) is not str:
        return None
    return next((each for each in get_args(annotation)[1:] if isinstance(each, IdPrefix)), None)
