"""The fast path of the decoder: a function that is compiled for each result class and expects every field.

Nearly every response has every field, and a function call for each of them would take twice as long as parsing the
JSON. Where a field is missing or has another type, the fast path bails out, and the slow path decides whether that is
an error.
"""

import functools
from collections.abc import Callable
from typing import Any, get_args

import attrs

from followup._codec.names import bare, is_optional, without_none
from followup._codec.plan import FieldPlan, class_of, fields_of, is_list, leaf_of

Decoder = Callable[[Any], Any]

BAILS_OUT = (KeyError, TypeError, ValueError)
"""The exceptions by which a fast decoder bails out."""


@functools.cache
def fast_decoder(annotation: Any) -> Decoder:
    """Return the fast decoder of an annotation. It takes parsed JSON and returns the Python value, or bails out."""
    annotation = bare(annotation)
    if leaf := leaf_of(annotation):
        return leaf.decode
    return _list_decoder(annotation) if is_list(annotation) else _compiled(annotation)


def _list_decoder(annotation: Any) -> Decoder:
    decode_item = fast_decoder(*get_args(annotation))

    def decode_list(raw: Any) -> list[Any]:
        if raw.__class__ is not list:
            raise ValueError
        return [decode_item(item) for item in raw]

    return decode_list


def _compiled(annotation: Any) -> Decoder:
    """Compile a decoder that sets the attributes of a new instance directly.

    This takes a third of the time that ``__init__`` takes, which the result classes do not need: they validate nothing.
    """
    fields = [_Field(plan, f"value_{number}") for number, plan in enumerate(fields_of(annotation))]
    checks = [check for field in fields if (check := field.check)]
    lines = [f"{field.value} = {field.read}" for field in fields]
    if checks:
        lines += [f"if not ({' and '.join(checks)}):", "    raise ValueError"]
    lines += ["result = new(cls)"]
    lines += [f"result.{field.plan.name} = {field.decoded}" for field in fields]
    has_all = "known.issuperset(raw)" if any(f.plan.often_absent for f in fields) else f"len(raw) == {len(fields)}"
    lines += [f"result.extra = no_extra if {has_all} else others(raw)"]
    cls = class_of(annotation)
    defaults = {field.name: field.default for field in attrs.fields(cls)}
    if "last_response" in defaults:
        lines += ["result.last_response = no_response"]
    source = "def decode(raw):\n" + "".join(f"    {line}\n" for line in lines) + "    return result\n"
    known = frozenset(field.plan.wire_name for field in fields)
    scope: dict[str, Any] = {
        "cls": cls,
        "new": cls.__new__,
        "known": known,
        "others": lambda raw: {name: value for name, value in raw.items() if name not in known},
        "no_extra": defaults["extra"],
        "no_response": defaults.get("last_response"),
        **{f"decode_{field.value}": field.decode for field in fields},
    }
    exec(compile(source, f"<decoder of {cls.__name__}>", "exec"), scope)  # noqa: S102 # nosec B102 - our own declarations
    decoder: Decoder = scope["decode"]
    return decoder


class _Field:
    """The source code that decodes one field.

    Attributes:
        value: name of the local variable that holds the JSON value.
        decode: the function that decodes the value; None if it only has to be checked.
    """

    def __init__(self, plan: FieldPlan, value: str) -> None:
        annotation = without_none(plan.annotation)
        leaf = leaf_of(annotation)
        self.plan = plan
        self.value = value
        self.decode = fast_decoder(annotation) if leaf is None else leaf.parse
        self._null = f"{value} is None" if is_optional(plan.annotation) else ""
        self._class = leaf.json_class.__name__ if leaf else ""

    @property
    def read(self) -> str:
        return f"raw.get({self.plan.wire_name!r})" if self.plan.often_absent else f"raw[{self.plan.wire_name!r}]"

    @property
    def check(self) -> str:
        if self.decode is not None:
            return ""
        check = f"{self.value}.__class__ is {self._class}"
        return f"({self._null} or {check})" if self._null else check

    @property
    def decoded(self) -> str:
        if self.decode is None:
            return self.value
        decoded = f"decode_{self.value}({self.value})"
        return f"None if {self._null} else {decoded}" if self._null else decoded
