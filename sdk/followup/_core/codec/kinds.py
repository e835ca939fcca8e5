"""Annotations as kinds of values, and the names of fields in JSON (specification, sections 1 and 2).

Encoders, decoders, schemas, commands and strategies are derived from the kinds.

An annotation allows one or more kinds. Unions are flat here, however they are nested, and None, omitted arguments and
``Required`` are no kinds but properties of the whole. A new form of annotation is described here, and once in each
module that asks for the ``form`` of a kind.
"""

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import attrs

Form = Literal["scalar", "choice", "list", "mapping", "input", "result"]
M = TypeVar("M")

_TIMES = (datetime, date)  # in this order, because each datetime is a date
"""Where annotations are resolved in a frozen test, freezegun has put subclasses in their place."""


class NotGiven:
    """Sentinel for an omitted argument; omitted arguments are not sent."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"

    def __bool__(self) -> Literal[False]:
        return False


NOT_GIVEN: Final = NotGiven()

NOT_IN_JSON = frozenset({"extra", "last_response"})
"""Fields of the result classes that are not part of the JSON."""

ABSENT_IF_NONE = "absent_if_none"
"""Key in the metadata of a field that is omitted from the JSON when it is None, instead of sent as null."""


@attrs.frozen(eq=False, repr=False)
class Kind:
    """A kind of values.

    Attributes:
        form: ``choice`` is an enumeration of strings, ``input`` an input dict and ``result`` a result class.
        type: the class of a scalar or of a collection; the ``TypedDict``; the result class; ``str`` for a choice.
        marks: the rules of ``_api_rules`` that the values follow.
        values: the values of a choice.
        items: what a list or a mapping contains.
    """

    form: Form
    type: Any
    marks: tuple[object, ...] = ()
    values: tuple[str, ...] = ()
    items: "Kinds | None" = None


# Without eq, so that the caches of decoders find a Kinds by its identity, which ``kinds_of`` keeps.
@attrs.frozen(eq=False, repr=False)
class Kinds:
    """The kinds of values that an annotation allows.

    Attributes:
        any_of: the kinds; all enumerations are one of them.
        nullable: whether None is allowed as well.
        required: whether it is that of a key that an input dict must have.
    """

    any_of: tuple[Kind, ...]
    nullable: bool
    required: bool

    @property
    def types(self) -> frozenset[Any]:
        """The types of the kinds."""
        return frozenset(each.type for each in self.any_of)

    @property
    def intended(self) -> tuple[Kind, ...]:
        """The kinds without plain text beside a time or a choice: it stands for one, or for a value not known yet."""
        has_texts = any(each.type in _TIMES or each.form == "choice" for each in self.any_of)
        return tuple(each for each in self.any_of if not (has_texts and (each.form, each.type) == ("scalar", str)))

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the enumeration among the kinds; empty if there is none."""
        return next((each.values for each in self.any_of if each.form == "choice"), ())

    @property
    def inputs(self) -> list[Any]:
        """The input dicts among the kinds, or among the items of lists."""
        within = [each for outer in self.any_of if outer.items for each in outer.items.any_of]
        return [each.type for each in (*self.any_of, *within) if each.form == "input"]

    def mark(self, cls: type[M]) -> M | None:
        """Return the first rule of a class that one of the kinds has; None if none has one."""
        return next((mark for each in self.any_of for mark in each.marks if isinstance(mark, cls)), None)

    def without_none(self) -> "Kinds":
        """Return the same kinds where None is not allowed."""
        return attrs.evolve(self, nullable=False)


@functools.cache
def kinds_of(annotation: Any) -> Kinds:
    """Return the kinds of an annotation, and kinds unchanged."""
    if isinstance(annotation, Kinds):
        return annotation
    found: list[Kind] = []
    nullable = False
    for member, marks in _members(annotation, ()):
        kind = _kind_of(member, marks)
        choices = [place for place, each in enumerate(found) if each.form == kind.form == "choice"]
        if member in (None, type(None)):
            nullable = True
        elif choices:
            # `OutboundEventType | Literal["*"]` has one list of values, in help, in schemas and in types.
            before = found[choices[0]]
            found[choices[0]] = attrs.evolve(before, values=before.values + kind.values)
        elif member is not NotGiven:
            found.append(kind)
    return Kinds(tuple(found), nullable, get_origin(annotation) is Required)


def _members(annotation: Any, marks: tuple[object, ...]) -> Iterator[tuple[Any, tuple[object, ...]]]:
    """Iterate over the members of an annotation, each with its marks."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _members(arguments[0], (*arguments[1:], *marks))
    elif origin in (Union, types.UnionType, Required, NotRequired):
        for each in arguments:
            yield from _members(each, marks)
    else:
        yield annotation, marks


def _kind_of(annotation: Any, marks: tuple[object, ...]) -> Kind:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return Kind("choice", str, marks, values=arguments)
    if is_typeddict(annotation):
        return Kind("input", annotation, marks)
    if attrs.has(origin or annotation):
        return Kind("result", annotation, marks)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Kind("mapping", origin, marks, items=kinds_of(arguments[1]))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return Kind("list", origin, marks, items=kinds_of(arguments[0]))
    times = [each for each in _TIMES if isinstance(annotation, type) and issubclass(annotation, each)]
    return Kind("scalar", times[0] if times else origin or annotation, marks)


def annotations_of(declared: Any) -> dict[str, Any]:
    """Return the resolved annotations of a class or function, by name, with their metadata."""
    return get_type_hints(declared, include_extras=True)


def kinds_in(declared: Any) -> dict[str, Kinds]:
    """Return the kinds of the fields of a class, or of the parameters of a function, by name."""
    return {name: kinds_of(each) for name, each in annotations_of(declared).items()}


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
