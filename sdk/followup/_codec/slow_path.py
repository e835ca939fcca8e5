"""The slow path of the decoder: cattrs, which accepts missing optional fields and names the path of an invalid one."""

import functools
from collections.abc import Callable
from typing import Any

from cattrs import BaseValidationError, Converter, IterableValidationNote
from cattrs.cols import list_structure_factory
from cattrs.gen import make_dict_structure_fn, override

from followup._codec.decode import BAILS_OUT, LEAVES, Leaf, WireError, fast_decoder, fields_of, is_list, leaf_of
from followup._codec.names import NOT_IN_JSON, bare, camel, is_optional, without_none

_Hook = Callable[[Any, Any], Any]


def decode_slowly(annotation: Any, raw: Any) -> Any:
    """Decode parsed JSON into the annotated type.

    Raises:
        WireError: the JSON does not match the schema; its path names the first invalid field.
    """
    try:
        return _slow_hook(annotation)(raw, annotation)
    except BaseValidationError as error:
        problem = _first_problem(error)
    # Raised outside the handler, because the tracebacks of the exception group hold the body.
    raise problem


def _first_problem(error: BaseException) -> WireError:
    path = ""
    while isinstance(error, BaseValidationError):
        error, note = error.group_exceptions()[0][0]  # type: ignore[attr-defined]
        path += f"[{note.index}]" if isinstance(note, IterableValidationNote) else f".{camel(note.name)}"
    # An error other than a WireError is the KeyError of a missing field: nothing else is looked up.
    return WireError(path.removeprefix("."), error.problem if isinstance(error, WireError) else "is missing")


@functools.cache
def _slow_hook(annotation: Any) -> _Hook:
    annotation = bare(annotation)
    if leaf := leaf_of(annotation):
        return _leaf_hook(leaf)
    return _list_hook(annotation) if is_list(annotation) else _model_hook(annotation)


def _leaf_hook(leaf: Leaf, *, optional: bool = False) -> _Hook:
    unchanged = {type(None)} if optional else set[type]()
    if leaf.parse is None:
        unchanged.add(leaf.json_class)
    return lambda value, _: value if value.__class__ in unchanged else leaf.decode(value)


def _list_hook(annotation: Any) -> _Hook:
    decode_items = list_structure_factory(annotation, _converter)

    def decode_list(value: Any, _: Any) -> Any:
        if value.__class__ is not list:
            raise WireError("", "is not an array")
        return decode_items(value, annotation)

    return decode_list


def _model_hook(annotation: Any) -> _Hook:
    fields = fields_of(annotation)
    overrides: dict[str, Any] = {name: override(omit=True) for name in NOT_IN_JSON}
    for field in fields:
        overrides[field.name] = override(rename=field.wire_name, struct_hook=_nested_hook(field.annotation))
    decode_fields = make_dict_structure_fn(annotation, _converter, **overrides)
    known = frozenset(field.wire_name for field in fields)

    def decode_model(raw: Any, _: Any) -> Any:
        if raw.__class__ is not dict:
            raise WireError("", "is not an object")
        result = decode_fields(raw, annotation)
        if not known.issuperset(raw):
            result.extra = {name: value for name, value in raw.items() if name not in known}
        return result

    return decode_model


def _nested_hook(annotation: Any) -> _Hook:
    """Return the decoder of a field or item. It tries the fast path first, so that only unusual items are slow."""
    if is_optional(annotation):
        inner = without_none(annotation)
        if leaf := leaf_of(inner):
            return _leaf_hook(leaf, optional=True)
        decode_inner = _nested_hook(inner)
        return lambda value, _: None if value is None else decode_inner(value, inner)
    decode_slow = _slow_hook(annotation)
    if leaf_of(annotation) or is_list(bare(annotation)):
        return decode_slow
    decode_fast = fast_decoder(annotation)

    def decode_part(value: Any, _: Any) -> Any:
        try:
            return decode_fast(value)
        except BAILS_OUT:
            pass
        return decode_slow(value, annotation)

    return decode_part


_converter = Converter(detailed_validation=True)
# cattrs has hooks of its own for these classes, and hooks of a class take precedence over the factory below.
for _class, _leaf in LEAVES.items():
    _converter.register_structure_hook(_class, _leaf_hook(_leaf))
_converter.register_structure_hook_factory(lambda _: True, _nested_hook)
