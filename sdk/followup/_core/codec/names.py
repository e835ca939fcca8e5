"""Names and annotations: as Python has them and as JSON has them (specification, sections 1 and 2)."""

import functools
import types
from datetime import date, datetime
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs

NOT_IN_JSON = frozenset({"extra", "last_response"})
"""Fields of the result classes that are not part of the JSON."""

ABSENT_IF_NONE = "absent_if_none"
"""Key in the metadata of a field that is omitted from the JSON when it is None, instead of sent as null."""

_TIMES = (datetime, date)
"""Where annotations are resolved in a frozen test, freezegun has put subclasses in their place."""


@functools.cache
def camel(name: str) -> str:
    """Return the JSON name of a field: ``start_at_gte`` becomes ``startAtGte``."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def wire_fields(cls: type[Any]) -> dict[str, str]:
    """Return the JSON name of each field of a result class, by attribute name."""
    return {field.name: camel(field.name) for field in attrs.fields(cls) if field.name not in NOT_IN_JSON}


def annotations_of(declared: Any) -> dict[str, Any]:
    """Return the resolved annotations of a class or function, by name, with their metadata."""
    return get_type_hints(declared, include_extras=True)


def bare(annotation: Any) -> Any:
    """Return the annotation without ``Annotated`` around it, and without the subclasses of freezegun."""
    annotation = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if isinstance(annotation, type) and issubclass(annotation, _TIMES):
        return next(each for each in _TIMES if issubclass(annotation, each))
    return annotation


def is_union(annotation: Any) -> bool:
    """Return whether the annotation is a union, written either way."""
    return get_origin(annotation) in (Union, types.UnionType)


def is_optional(annotation: Any) -> bool:
    """Return whether the annotation is a union with None."""
    return is_union(annotation) and type(None) in get_args(annotation)


def without_none(annotation: Any) -> Any:
    """Return the annotation without None."""
    if not is_optional(annotation):
        return annotation
    return functools.reduce(
        lambda left, right: left | right, (arm for arm in get_args(annotation) if arm is not type(None))
    )


def kind_of(value: object) -> str:
    """Return the type of a value for an error message: ``a list``, ``an int``, ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
