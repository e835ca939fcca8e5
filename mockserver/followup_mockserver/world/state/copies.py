"""Copies of records: a record that a test holds shares nothing mutable with the one that the mock stores."""

import copy
import functools
from datetime import date, datetime, timedelta
from types import NoneType
from typing import Any, TypeVar

import attrs

from followup import NOT_GIVEN, ResponseInfo

T = TypeVar("T")

_IMMUTABLE = frozenset({str, bytes, int, float, bool, NoneType, datetime, date, timedelta, ResponseInfo})


def copied(value: T) -> T:
    """Return a copy of a record, a list or a mapping, and of everything mutable in it.

    ``copy.deepcopy`` does the same and takes several times as long, because it handles objects that contain themselves.
    """
    kind = type(value)
    return value if kind in _IMMUTABLE else _copied(value, kind)


def _copied(value: Any, kind: Any) -> Any:
    if kind is dict:
        return {
            name: each if (inner := type(each)) in _IMMUTABLE else _copied(each, inner) for name, each in value.items()
        }
    if kind is list:
        return [each if (inner := type(each)) in _IMMUTABLE else _copied(each, inner) for each in value]
    names = _names(kind)
    if not names:
        return value
    result = copy.copy(value)
    for name in names:
        each = getattr(value, name)
        inner = type(each)
        if inner not in _IMMUTABLE:
            object.__setattr__(result, name, _copied(each, inner))
    return result


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind)) if attrs.has(kind) else ()


def passed(**arguments: Any) -> dict[str, Any]:
    """Return copies of the arguments that were not omitted."""
    return {name: copied(value) for name, value in arguments.items() if value is not NOT_GIVEN}
