"""Decodes the JSON of responses into result objects.

A result class has one plan, its fields and their JSON types (``fields_of``), of which two things are made.

- The decoder of the class, a function that is compiled, since a function call for each field would take twice as long
  as parsing the JSON. It raises if a field is missing or has another type. There is one that expects every field, and a
  slower one that does not expect the optional ones.
- The explanation of such an error, which names the path of the first invalid field.
"""

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, TypeVar, cast, get_args, get_origin

import attrs

from followup._core.codec.kinds import NOT_IN_JSON, Kinds, annotations_of, camel, kinds_of
from followup._core.codec.wire import WireError, parse_timestamp

T = TypeVar("T")
Decoder = Callable[[Any], Any]


@attrs.frozen(eq=False, repr=False)
class Leaf:
    """A JSON value that has no fields of its own to decode.

    Attributes:
        expected: its name in an error message.
        json_class: the class that ``json.loads`` returns for it.
        parse: converts it to the Python value; None where no conversion is needed.
    """

    expected: str
    json_class: type
    parse: Decoder | None = None

    def decode(self, value: Any) -> Any:
        """Return the Python value.

        Raises:
            ValueError: the JSON value is not of the expected type or format.
        """
        if value.__class__ is not self.json_class:  # not isinstance, for which True is an integer
            raise ValueError
        return value if self.parse is None else self.parse(value)


_LEAVES: dict[Any, Leaf] = {
    str: Leaf("a string", str),  # also an id, and an enumeration: its unknown values stay strings
    bool: Leaf("a boolean", bool),
    int: Leaf("an integer", int),
    datetime: Leaf("a timestamp", str, parse_timestamp),
    date: Leaf("a date", str, date.fromisoformat),
    Mapping: Leaf("an object", dict),
}


@attrs.frozen(eq=False, repr=False)
class FieldPlan:
    """One field of a result class.

    Attributes:
        kinds: what its values are.
        default: its value where the JSON lacks it; ``attrs.NOTHING`` if it is required.
    """

    name: str
    wire_name: str
    kinds: Kinds
    default: Any


def _leaf_of(kinds: Kinds) -> Leaf | None:
    """Return the leaf of a type; None for lists and result classes."""
    return _LEAVES.get(kinds.any_of[0].type)


def _class_of(kinds: Kinds) -> type[Any]:
    """Return the result class: for ``Envelope[Patient]``, ``Envelope``."""
    annotation = kinds.any_of[0].type
    cls: type[Any] = get_origin(annotation) or annotation
    return cls


@functools.cache
def fields_of(kinds: Kinds) -> tuple[FieldPlan, ...]:
    """Return the plan of a result class, one entry per field."""
    cls, arguments = _class_of(kinds), get_args(kinds.any_of[0].type)
    # Only an envelope is generic: the list[T] of an Envelope[Patient] is a list[Patient].
    declared = {
        name: kinds_of(each[arguments] if getattr(each, "__parameters__", ()) else each)
        for name, each in annotations_of(cls).items()
    }
    return tuple(
        FieldPlan(field.name, camel(field.name), declared[field.name], field.default)
        for field in attrs.fields(cls)
        if field.name not in NOT_IN_JSON
    )


@functools.cache
def _decoder(kinds: Kinds, *, is_complete: bool) -> Decoder:
    """Return the function that takes parsed JSON and returns the Python value, or raises one of ``_INVALID``.

    Args:
        kinds: the kinds of the value.
        is_complete: whether the JSON has to have the optional fields too, which is faster.
    """
    if leaf := _leaf_of(kinds):
        return leaf.decode
    items = kinds.any_of[0].items
    if items is None:
        return _compiled(kinds, is_complete=is_complete)
    decode_item = _decoder(items, is_complete=is_complete)

    def decode_list(raw: Any) -> list[Any]:
        if raw.__class__ is not list:
            raise ValueError
        return [decode_item(item) for item in raw]

    return decode_list


def _compiled(kinds: Kinds, *, is_complete: bool) -> Decoder:
    """Compile a decoder that sets the attributes of a new instance directly.

    This takes a third of the time that ``__init__`` takes, which the result classes do not need: they validate nothing.
    """
    cls, fields = _class_of(kinds), fields_of(kinds)
    known = frozenset(field.wire_name for field in fields)
    scope: dict[str, Any] = {
        "cls": cls,
        "new": cls.__new__,
        "known": known,
        "others": lambda raw: {name: value for name, value in raw.items() if name not in known},
    }
    reads, checks, sets = [], ["raw.__class__ is dict"], ["result = new(cls)"]
    for number, field in enumerate(fields):
        value, leaf = f"value_{number}", _leaf_of(field.kinds)
        is_required = is_complete or field.default is attrs.NOTHING
        read = f"[{field.wire_name!r}]" if is_required else f".get({field.wire_name!r}, {field.default!r})"
        reads.append(f"{value} = raw{read}")
        null = f"{value} is None" if field.kinds.nullable else ""
        decoded = value
        if leaf is not None and leaf.parse is None:
            check = f"{value}.__class__ is {leaf.json_class.__name__}"
            checks.append(f"({null} or {check})" if null else check)
        else:
            scope[f"decode_{value}"] = _decoder(field.kinds, is_complete=is_complete) if leaf is None else leaf.parse
            decoded = f"None if {null} else decode_{value}({value})" if null else f"decode_{value}({value})"
        sets.append(f"result.{field.name} = {decoded}")
    # In a complete object every field has been read, so that no more keys than fields means no unknown one.
    is_known = f"len(raw) == {len(fields)}" if is_complete else "known.issuperset(raw)"
    sets.append(f"result.extra = {{}} if {is_known} else others(raw)")
    if "last_response" in attrs.fields_dict(cls):
        scope["no_response"] = attrs.fields_dict(cls)["last_response"].default
        sets.append("result.last_response = no_response")
    lines = [*reads, f"if not ({' and '.join(checks)}): raise ValueError", *sets, "return result"]
    source = "def decode(raw):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, f"<decoder of {cls.__name__}>", "exec"), scope)  # noqa: S102 # nosec B102 - our own declarations
    return cast("Decoder", scope["decode"])


def decode(annotation: type[T], raw: Any) -> T:
    """Decode parsed JSON into a result object.

    Args:
        annotation: a result class, or a list of one.
        raw: the value that ``json.loads`` returned.

    Raises:
        WireError: the JSON does not match the schema; its path names the first invalid field.
    """
    kinds = kinds_of(cast("Hashable", annotation))
    for is_complete in (True, False):  # nearly every response has every field
        try:
            return cast("T", _decoder(kinds, is_complete=is_complete)(raw))
        except _INVALID:
            pass
    # Raised outside the handler, because the original error holds the value.
    raise next(_problems(kinds, raw, ""))


# A decoder reads before it checks: an AttributeError or TypeError comes from a value that is no object.
_INVALID = (AttributeError, KeyError, TypeError, ValueError)


def _problems(kinds: Kinds, raw: Any, path: str) -> Iterator[WireError]:
    """Iterate over what is wrong in a JSON value, whose path this is."""
    if leaf := _leaf_of(kinds):
        try:
            leaf.decode(raw)
        except _INVALID:
            yield WireError(path, f"is not {leaf.expected}")
    elif (items := kinds.any_of[0].items) is not None:
        if raw.__class__ is not list:
            yield WireError(path, "is not an array")
            return
        for position, item in enumerate(raw):
            yield from _problems(items, item, f"{path}[{position}]")
    elif raw.__class__ is not dict:
        yield WireError(path, "is not an object")
    else:
        for field in fields_of(kinds):
            place = f"{path}.{field.wire_name}".removeprefix(".")
            value = raw.get(field.wire_name, field.default)
            if value is attrs.NOTHING:
                yield WireError(place, "is missing")
            elif value is not None or not field.kinds.nullable:
                yield from _problems(field.kinds, value, place)
