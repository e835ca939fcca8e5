"""Names as Python has them and as JSON has them (specification, sections 1 and 2)."""

import functools
from typing import Any

import attrs

NOT_IN_JSON = frozenset({"extra", "last_response"})
"""Fields of the result classes that are not part of the JSON."""

ABSENT_IF_NONE = "absent_if_none"
"""Key in the metadata of a field that is omitted from the JSON when it is None, instead of sent as null."""


@functools.cache
def camel(name: str) -> str:
    """Return the JSON name of a field: ``start_at_gte`` becomes ``startAtGte``."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def wire_fields(cls: type[Any]) -> dict[str, str]:
    """Return the JSON name of each field of a result class, by attribute name."""
    return {field.name: camel(field.name) for field in attrs.fields(cls) if field.name not in NOT_IN_JSON}


def kind_of(value: object) -> str:
    """Return the type of a value for an error message: ``a list``, ``an int``, ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
