"""A decoder compiled for one result class: it takes an answer apart in one pass if everything in it is as expected.

Nearly every answer is, and checking each field with a call of its own takes twice as long as parsing the JSON. At
anything unusual it gives up without a word; the decoder in ``wire`` then decides what is wrong, or that nothing is.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Literal

import attrs

from followup._codec.timestamps import parse_timestamp
from followup._results import NO_EXTRA, NO_RESPONSE, Result

Kind = Literal["text", "boolean", "integer", "object", "timestamp", "date"]

Decoder = Callable[[Any], Any]

GIVES_UP = (KeyError, TypeError, ValueError)
"""What a compiled decoder raises for JSON that is not as expected."""


@attrs.frozen
class FieldPlan:
    """One field of a result class.

    Attributes:
        kind: a kind that is checked in place, or the function that decodes a value.
        optional: whether it may be null.
    """

    name: str
    wire_name: str
    kind: Kind | Decoder
    optional: bool


_CLASSES = {"text": "str", "boolean": "bool", "integer": "int", "object": "dict"}
_PARSERS = {"timestamp": "timestamp", "date": "date_of"}


def compile_decoder(cls: type[Any], fields: Sequence[FieldPlan]) -> Decoder:
    """A function from the JSON of an object, with all of these fields, to an instance of the class.

    The instance is filled without ``__init__``, which would take a third of the time: the classes have no validators,
    and every field is there.
    """
    names = {field: f"value_{number}" for number, field in enumerate(fields)}
    checks = [_check(field, names[field]) for field in fields if field.kind in _CLASSES]
    lines = [f"{names[field]} = raw[{field.wire_name!r}]" for field in fields]
    if checks:
        lines += [f"if not ({' and '.join(checks)}):", "    raise ValueError"]
    lines += ["result = new(cls)"]
    lines += [f"result.{field.name} = {_value(field, names[field])}" for field in fields]
    lines += [f"result.extra = NO_EXTRA if len(raw) == {len(fields)} else others(raw)"]
    if issubclass(cls, Result):
        lines += ["result.last_response = NO_RESPONSE"]
    source = "def decode(raw):\n" + "".join(f"    {line}\n" for line in lines) + "    return result\n"
    known = frozenset(field.wire_name for field in fields)
    scope: dict[str, Any] = {
        "cls": cls,
        "new": cls.__new__,
        "timestamp": parse_timestamp,
        "date_of": date.fromisoformat,
        "others": lambda raw: {name: value for name, value in raw.items() if name not in known},
        "NO_EXTRA": NO_EXTRA,
        "NO_RESPONSE": NO_RESPONSE,
        **{f"decode_{names[field]}": field.kind for field in fields},
    }
    exec(compile(source, f"<decoder of {cls.__name__}>", "exec"), scope)  # noqa: S102 # nosec B102 - our own declarations
    decoder: Decoder = scope["decode"]
    return decoder


def _check(field: FieldPlan, value: str) -> str:
    check = f"{value}.__class__ is {_CLASSES[str(field.kind)]}"
    return f"({value} is None or {check})" if field.optional else check


def _value(field: FieldPlan, value: str) -> str:
    if field.kind in _CLASSES:
        return value
    parsed = f"{_PARSERS.get(str(field.kind), f'decode_{value}')}({value})"
    return f"None if {value} is None else {parsed}" if field.optional else parsed
