"""Between Python and the wire: names, times, unknown fields, and the cattrs converter of the result classes.

Field names are snake_case here and camelCase there (specification, section 1).
"""

import functools
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    get_args,
    get_origin,
)

import attrs

from followup._codec.compiled import GIVES_UP, Decoder, FieldPlan, Kind, compile_decoder
from followup._codec.names import (
    NOT_IN_JSON,
    annotations_of,
    bare,
    camel,
    is_optional,
    is_union,
    wire_fields,
    without_none,
)
from followup._codec.timestamps import parse_timestamp
from followup._results import ABSENT_IF_NONE, Model

if TYPE_CHECKING:
    from cattrs import Converter


T = TypeVar("T")


class WireError(ValueError):
    """What arrived does not have the shape of the contract. The text shows where, never what stood there."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the body'} {problem}")
        self.path = path
        self.problem = problem

    def inside(self, parent: str) -> "WireError":
        separator = "" if not self.path or self.path.startswith("[") else "."
        return WireError(f"{parent}{separator}{self.path}", self.problem)


def _refuse(expected: str) -> NoReturn:
    raise WireError("", f"is not {expected}")


def _text(value: Any, _: Any = None) -> str:
    return value if type(value) is str else _refuse("a string")


def _optional_text(value: Any, _: Any = None) -> str | None:
    return value if value is None or type(value) is str else _refuse("a string")


def _boolean(value: Any, _: Any = None) -> bool:
    return value if type(value) is bool else _refuse("a boolean")


def _integer(value: Any, _: Any = None) -> int:
    return value if type(value) is int else _refuse("an integer")


def _mapping(value: Any, _: Any = None) -> Mapping[str, Any]:
    return value if type(value) is dict else _refuse("an object")


def _timestamp(value: Any, _: Any = None) -> datetime:
    try:
        return parse_timestamp(value)
    except (TypeError, ValueError):
        _refuse("a timestamp")


def _date(value: Any, _: Any = None) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        _refuse("a date")


def _is_text(annotation: Any) -> bool:
    """Strings, ids, and enums, whose unknown values arrive as their string."""
    annotation = bare(annotation)
    if is_union(annotation):
        return all(_is_text(arm) for arm in get_args(annotation))
    return annotation is str or get_origin(annotation) is Literal


def _optional_hook(annotation: Any) -> Callable[[Any, Any], Any]:
    inner = without_none(annotation)
    if _is_text(inner):
        return _optional_text
    hook = _converter().get_structure_hook(inner)
    return lambda value, _: None if value is None else hook(value, inner)


def _list_hook(annotation: Any) -> Callable[[Any, Any], Any]:
    (item_type,) = get_args(annotation)
    hook = _converter().get_structure_hook(item_type)

    def decode_list(value: Any, _: Any) -> list[Any]:
        if type(value) is not list:
            _refuse("an array")
        try:
            return [hook(item, item_type) for item in value]
        except WireError:
            for position, item in enumerate(value):
                _explain(f"[{position}]", hook, item)
            raise

    return decode_list


def _explain(path: str, hook: Callable[[Any, Any], Any], value: Any) -> None:
    try:
        hook(value, None)
    except WireError as error:
        raise error.inside(path) from None


def _field_override(cls: type[Any], field: "attrs.Attribute[Any]") -> Any:
    from cattrs.gen import override

    if field.name in NOT_IN_JSON:
        return override(omit=True)
    hook = _converter().get_structure_hook(annotations_of(cls)[field.name])
    return override(rename=camel(field.name), struct_hook=hook)


def _class_hook(cls: type[Any]) -> Callable[[Any, Any], Any]:
    """Decodes as compiled what is as expected, and everything else with care."""
    decode_with_care = _careful_hook(cls)
    if any(field.metadata.get(ABSENT_IF_NONE) for field in attrs.fields(cls)):
        return decode_with_care
    decode_expected = compile_decoder(cls, _field_plans(cls))

    def decode(raw: Any, _: Any) -> Any:
        try:
            return decode_expected(raw)
        except GIVES_UP:
            return decode_with_care(raw, cls)

    return decode


def _field_plans(cls: type[Any]) -> list[FieldPlan]:
    annotations = annotations_of(cls)
    return [FieldPlan(name, wire_name, *_kind(annotations[name])) for name, wire_name in wire_fields(cls).items()]


def _kind(annotation: Any) -> tuple[Kind | Decoder, bool]:
    optional = is_optional(annotation)
    inner = bare(without_none(annotation) if optional else annotation)
    if _is_text(inner):
        return "text", optional
    if get_origin(inner) is Mapping:
        return "object", optional
    if inner in _KINDS:
        return _KINDS[inner], optional
    hook = _converter().get_structure_hook(inner)
    return lambda value: hook(value, inner), optional


_KINDS: dict[Any, Kind] = {bool: "boolean", int: "integer", datetime: "timestamp", date: "date"}


def _careful_hook(cls: type[Any]) -> Callable[[Any, Any], Any]:
    """Decodes field by field, and names the one that is wrong."""
    from cattrs.gen import make_dict_structure_fn

    overrides: dict[str, Any] = {field.name: _field_override(cls, field) for field in attrs.fields(cls)}
    decode_known = make_dict_structure_fn(cls, _converter(), _cattrs_detailed_validation=False, **overrides)
    known = frozenset(wire_fields(cls).values())

    def decode(raw: Any, _: Any) -> Any:
        if type(raw) is not dict:
            _refuse("an object")
        try:
            result = decode_known(raw, cls)
        except (WireError, KeyError):
            _explain_fields(raw, overrides)
            raise
        if not known.issuperset(raw):
            result.extra = {name: value for name, value in raw.items() if name not in known}
        return result

    def _explain_fields(raw: dict[str, Any], overrides: Mapping[str, Any]) -> None:
        for field in attrs.fields(cls):
            name, hook = overrides[field.name].rename, overrides[field.name].struct_hook
            if name is None or hook is None:
                continue
            if name in raw:
                _explain(name, hook, raw[name])
            elif field.default is attrs.NOTHING:
                raise WireError(name, "is missing")

    return decode


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Model)


def _is_generic(origin: type[Any]) -> Callable[[Any], bool]:
    return lambda annotation: get_origin(annotation) is origin


@functools.cache
def _converter() -> "Converter":
    """Made when the first answer is decoded, for importing cattrs takes a while."""
    from cattrs import Converter

    converter = Converter(detailed_validation=False)
    for kind, hook in {str: _text, bool: _boolean, int: _integer, datetime: _timestamp, date: _date}.items():
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_func(_is_text, _text)
    converter.register_structure_hook_func(_is_generic(Mapping), _mapping)
    converter.register_structure_hook_factory(_is_generic(list), _list_hook)
    converter.register_structure_hook_factory(is_optional, _optional_hook)
    converter.register_structure_hook_factory(_is_model, _class_hook)
    return converter


def decode(cls: type[T], raw: Any) -> T:
    """A result object from decoded JSON.

    Raises:
        WireError: the JSON does not have the shape of the contract; its path names the field.
    """
    return _converter().structure(raw, cls)
