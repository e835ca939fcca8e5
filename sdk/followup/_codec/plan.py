"""The plan of a result class: its fields and their JSON types. Both paths of the decoder follow it."""

import functools
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal, get_args, get_origin

import attrs

from followup._codec.names import ABSENT_IF_NONE, annotations_of, bare, is_union, wire_fields
from followup._codec.timestamps import parse_timestamp


class WireError(ValueError):
    """The JSON does not match the schema. The message names the field, never its value.

    Attributes:
        path: path of the field, such as ``data[3].createdAt``; empty for the body as a whole.
        problem: description of the problem, such as ``is missing``.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the body'} {problem}")
        self.path = path
        self.problem = problem


@attrs.frozen(eq=False)
class Leaf:
    """A JSON value that has no fields of its own to decode.

    Attributes:
        expected: its name in an error message.
        json_class: the class that ``json.loads`` returns for it.
        parse: converts it to the Python value; None where no conversion is needed.
    """

    expected: str
    json_class: type
    parse: Callable[[Any], Any] | None = None

    def decode(self, value: Any) -> Any:
        """Return the Python value.

        Raises:
            WireError: the JSON value is not of the expected type or format.
        """
        if value.__class__ is self.json_class:
            if self.parse is None:
                return value
            try:
                return self.parse(value)
            except ValueError:
                pass
        # Raised outside the handler, because the original error holds the value.
        raise WireError("", f"is not {self.expected}")


TEXT = Leaf("a string", str)
LEAVES: dict[Any, Leaf] = {
    str: TEXT,
    bool: Leaf("a boolean", bool),
    int: Leaf("an integer", int),
    datetime: Leaf("a timestamp", str, parse_timestamp),
    date: Leaf("a date", str, date.fromisoformat),
}
_OBJECT = Leaf("an object", dict)


@attrs.frozen(eq=False)
class FieldPlan:
    """One field of a result class.

    Attributes:
        annotation: its type, with type variables replaced.
        often_absent: whether most objects lack it.
    """

    name: str
    wire_name: str
    annotation: Any
    often_absent: bool


def leaf_of(annotation: Any) -> Leaf | None:
    """Return the leaf of an annotation; None for lists, result classes and optional values."""
    annotation = bare(annotation)
    if _is_text(annotation):
        return TEXT
    return _OBJECT if get_origin(annotation) is Mapping else LEAVES.get(annotation)


def _is_text(annotation: Any) -> bool:
    """Return whether the annotation is a string, an id or an enum. Unknown values of an enum stay strings."""
    annotation = bare(annotation)
    if is_union(annotation):
        return all(_is_text(arm) for arm in get_args(annotation))
    return annotation is str or get_origin(annotation) is Literal


def is_list(annotation: Any) -> bool:
    """Return whether the annotation is a list."""
    return get_origin(annotation) is list


def class_of(annotation: Any) -> type[Any]:
    """Return the class of an annotation: for ``Envelope[Patient]``, ``Envelope``."""
    cls: type[Any] = get_origin(annotation) or annotation
    return cls


@functools.cache
def fields_of(annotation: Any) -> tuple[FieldPlan, ...]:
    """Return the plan of a result class, one entry per field."""
    cls = class_of(annotation)
    declared = annotations_of(cls)
    metadata = {field.name: field.metadata for field in attrs.fields(cls)}
    return tuple(
        FieldPlan(
            name=name,
            wire_name=wire_name,
            annotation=_with_arguments(declared[name], get_args(annotation)),
            often_absent=metadata[name].get(ABSENT_IF_NONE, False),
        )
        for name, wire_name in wire_fields(cls).items()
    )


def _with_arguments(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    return annotation[arguments] if getattr(annotation, "__parameters__", ()) else annotation
