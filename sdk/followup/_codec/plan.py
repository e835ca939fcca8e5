"""The plan of a result class: what its JSON has to be. The fast and the slow path of the decoder both follow it."""

import functools
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal, get_args, get_origin

import attrs

from followup._codec.names import annotations_of, bare, is_union, wire_fields
from followup._codec.timestamps import parse_timestamp
from followup._results import ABSENT_IF_NONE, Model


class WireError(ValueError):
    """The JSON is not what the contract says. The text names the place, and shows no value.

    Attributes:
        path: the place, such as ``data[3].createdAt``; empty for the body as a whole.
        problem: what is wrong there.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the body'} {problem}")
        self.path = path
        self.problem = problem


@attrs.frozen(eq=False)
class Leaf:
    """A JSON value that is decoded as a whole.

    Attributes:
        expected: its name in an error message.
        json_class: the class of the value in decoded JSON.
        parse: makes the Python value of it; None where that is the same one.
    """

    expected: str
    json_class: type
    parse: Callable[[Any], Any] | None = None

    def decode(self, value: Any) -> Any:
        """Return the Python value.

        Raises:
            WireError: the JSON value is another one than expected.
        """
        if value.__class__ is self.json_class:
            if self.parse is None:
                return value
            try:
                return self.parse(value)
            except ValueError:
                pass
        # Outside the handler: the original error would carry the value along.
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
        annotation: what it may be, type variables replaced.
        often_absent: whether most objects do not have it.
    """

    name: str
    wire_name: str
    annotation: Any
    often_absent: bool


def leaf_of(annotation: Any) -> Leaf | None:
    """Return the leaf of an annotation; None for lists, objects with a class, and None itself."""
    annotation = bare(annotation)
    if _is_text(annotation):
        return TEXT
    return _OBJECT if get_origin(annotation) is Mapping else LEAVES.get(annotation)


def _is_text(annotation: Any) -> bool:
    """Strings, ids, and enums, whose unknown values are kept as their string."""
    annotation = bare(annotation)
    if is_union(annotation):
        return all(_is_text(arm) for arm in get_args(annotation))
    return annotation is str or get_origin(annotation) is Literal


def is_list(annotation: Any) -> bool:
    """Return whether the annotation is that of a list."""
    return get_origin(annotation) is list


def class_of(annotation: Any) -> type[Model]:
    """Return the class of a result: of ``Envelope[Patient]``, ``Envelope``."""
    cls: type[Model] = get_origin(annotation) or annotation
    return cls


@functools.cache
def fields_of(annotation: Any) -> tuple[FieldPlan, ...]:
    """Return the plan of a result class, field by field."""
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
