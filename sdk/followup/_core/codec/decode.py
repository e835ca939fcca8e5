"""Decodes the JSON of responses into result objects.

A result class has one plan, its fields and their JSON types (``fields_of``), which two decoders follow.

- The fast path is a function that is compiled for each result class and expects every field. Nearly every response has
  every field, and a function call for each of them would take twice as long as parsing the JSON. Where a field is
  missing or has another type, the fast path bails out.
- The slow path then decides whether that is an error. It accepts missing optional fields, and names the path of an
  invalid one.
"""

import functools
from collections.abc import Callable, Hashable, Mapping
from datetime import date, datetime
from typing import Any, TypeVar, cast, get_args, get_origin

import attrs

from followup._core.codec.kinds import ABSENT_IF_NONE, NOT_IN_JSON, Kinds, annotations_of, camel, kinds_of
from followup._core.codec.wire import LONGEST_NESTING, WireError, is_deep, parse_timestamp


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


def _shallow(value: Any) -> Any:
    if value.__class__ is not dict or is_deep(value):
        raise ValueError
    return value


_LEAVES: dict[Any, Leaf] = {
    str: Leaf("a string", str),  # also an id, and an enumeration: its unknown values stay strings
    bool: Leaf("a boolean", bool),
    int: Leaf("an integer", int),
    datetime: Leaf("a timestamp", str, parse_timestamp),
    date: Leaf("a date", str, date.fromisoformat),
    Mapping: Leaf(f"an object of at most {LONGEST_NESTING} levels", dict, _shallow),
}


@attrs.frozen(eq=False, repr=False)
class FieldPlan:
    """One field of a result class.

    Attributes:
        kinds: what its values are.
        required: whether it must be there.
        often_absent: whether most objects lack it.
        decode: its fast decoder.
    """

    name: str
    wire_name: str
    kinds: Kinds
    required: bool
    often_absent: bool
    decode: "Decoder"


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
    declared = {
        name: kinds_of(each[arguments] if getattr(each, "__parameters__", ()) else each)
        for name, each in annotations_of(cls).items()
    }
    return tuple(
        FieldPlan(
            name=field.name,
            wire_name=camel(field.name),
            kinds=declared[field.name],
            required=field.default is attrs.NOTHING,
            often_absent=field.metadata.get(ABSENT_IF_NONE, False),
            decode=fast_decoder(declared[field.name]),
        )
        for field in attrs.fields(cls)
        if field.name not in NOT_IN_JSON
    )


Decoder = Callable[[Any], Any]

BAILS_OUT = (KeyError, TypeError, ValueError)
"""The exceptions by which a fast decoder bails out."""


@functools.cache
def fast_decoder(annotation: Any) -> Decoder:
    """Return the fast decoder of an annotation. It takes parsed JSON and returns the Python value, or bails out."""
    kinds = kinds_of(annotation)
    if leaf := _leaf_of(kinds):
        return leaf.decode
    items = kinds.any_of[0].items
    return _compiled(kinds) if items is None else _list_decoder(items)


def _list_decoder(items: Kinds) -> Decoder:
    decode_item = fast_decoder(items)

    def decode_list(raw: Any) -> list[Any]:
        if raw.__class__ is not list:
            raise ValueError
        return [decode_item(item) for item in raw]

    return decode_list


def _compiled(kinds: Kinds) -> Decoder:
    """Compile a decoder that sets the attributes of a new instance directly.

    This takes a third of the time that ``__init__`` takes, which the result classes do not need: they validate nothing.
    """
    fields = {f"value_{number}": field for number, field in enumerate(fields_of(kinds))}
    code = {value: _code_of(field, value) for value, field in fields.items()}
    lines = [f"{value} = {read}" for value, (read, _, _) in code.items()]
    if checks := [check for _, check, _ in code.values() if check]:
        lines += [f"if not ({' and '.join(checks)}):", "    raise ValueError"]
    lines += ["result = new(cls)"]
    lines += [f"result.{fields[value].name} = {decoded}" for value, (_, _, decoded) in code.items()]
    any_absent = any(field.often_absent for field in fields.values())
    has_all = "known.issuperset(raw)" if any_absent else f"len(raw) == {len(fields)}"
    lines += [f"result.extra = {{}} if {has_all} else others(raw)"]
    cls = _class_of(kinds)
    defaults = {field.name: field.default for field in attrs.fields(cls)}
    if "last_response" in defaults:
        lines += ["result.last_response = no_response"]
    source = "def decode(raw):\n" + "".join(f"    {line}\n" for line in lines) + "    return result\n"
    known = frozenset(field.wire_name for field in fields.values())
    scope: dict[str, Any] = {
        "cls": cls,
        "new": cls.__new__,
        "known": known,
        "others": lambda raw: _shallow({name: value for name, value in raw.items() if name not in known}),
        "no_response": defaults.get("last_response"),
        **{f"decode_{value}": _conversion_of(field) for value, field in fields.items()},
    }
    exec(compile(source, f"<decoder of {cls.__name__}>", "exec"), scope)  # noqa: S102 # nosec B102 - our own declarations
    return cast("Decoder", scope["decode"])


def _conversion_of(field: FieldPlan) -> Decoder | None:
    """Return the function that decodes the values of a field; None if they only have to be checked."""
    leaf = _leaf_of(field.kinds)
    return field.decode if leaf is None else leaf.parse


def _code_of(field: FieldPlan, value: str) -> tuple[str, str, str]:
    """Return the code that reads, checks and decodes a field, whose JSON is in a local variable of this name."""
    read = f"raw.get({field.wire_name!r})" if field.often_absent else f"raw[{field.wire_name!r}]"
    null = f"{value} is None" if field.kinds.nullable else ""
    leaf = _leaf_of(field.kinds)
    if leaf is not None and leaf.parse is None:
        check = f"{value}.__class__ is {leaf.json_class.__name__}"
        return read, f"({null} or {check})" if null else check, value
    decoded = f"decode_{value}({value})"
    return read, "", f"None if {null} else {decoded}" if null else decoded


T = TypeVar("T")


def decode(annotation: type[T], raw: Any) -> T:
    """Decode parsed JSON into a result object.

    Args:
        annotation: a result class, or a list of one.
        raw: the value that ``json.loads`` returned.

    Raises:
        WireError: the JSON does not match the schema; its path names the field.
    """
    try:
        return cast("T", fast_decoder(cast("Hashable", annotation))(raw))
    except BAILS_OUT:
        pass
    return cast("T", decode_slowly(annotation, raw))


def decode_slowly(annotation: Any, raw: Any, path: str = "") -> Any:
    """Decode parsed JSON on the slow path.

    Raises:
        WireError: the JSON does not match the schema; its path begins with this one, and names the first invalid field.
    """
    kinds = kinds_of(annotation)
    if leaf := _leaf_of(kinds):
        try:
            return leaf.decode(raw)
        except WireError as error:
            problem = error.problem
        raise WireError(path, problem)
    if (items := kinds.any_of[0].items) is not None:
        if raw.__class__ is not list:
            raise WireError(path, "is not an array")
        decode_item = fast_decoder(items)
        return [_decode_part(items, decode_item, each, path, position) for position, each in enumerate(raw)]
    if raw.__class__ is not dict:
        raise WireError(path, "is not an object")
    values: dict[str, Any] = {}
    others = dict(raw)
    for field in fields_of(kinds):
        if field.wire_name in raw:
            value = others.pop(field.wire_name)
            if value is not None or not field.kinds.nullable:
                value = _decode_part(field.kinds, field.decode, value, path, field.wire_name)
            values[field.name] = value
        elif field.required:
            raise WireError(f"{path}.{field.wire_name}".removeprefix("."), "is missing")
    if others:
        if is_deep(others):
            raise WireError(path, f"has an unknown field of more than {LONGEST_NESTING} levels")
        values["extra"] = others
    return _class_of(kinds)(**values)


def _decode_part(kinds: Kinds, decode_fast: Decoder, raw: Any, path: str, step: str | int) -> Any:
    """Decode a field or an item. It tries the fast path first, so that only unusual items are slow."""
    if not isinstance(raw, list):  # the fast path would decode all of its items again
        try:
            return decode_fast(raw)
        except BAILS_OUT:
            pass
    place = f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}".removeprefix(".")
    return decode_slowly(kinds, raw, place)
