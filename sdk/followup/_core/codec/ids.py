"""The id of an event, made from what the event states."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from followup._core.codec.kinds import kind_of
from followup._core.privacy.frames import clears_frames

IdPart = str | int | float | Decimal | date | time | Mapping[str, Any] | list[Any] | tuple[Any, ...]
"""What ``id_of`` takes; ``datetime`` and ``bool`` are a ``date`` and an ``int``."""

_DEEPEST = 50

_VALID = "text, a number, a date, an aware datetime, a time, or a dict or list of these"


@clears_frames
def id_of(*parts: IdPart) -> str:
    """Return an id for an event, made from what the event states.

    The same parts have the same id, in every process and on every machine; other parts have another id. Begin with a
    word that names the kind of thing, and pass all that may change, such as ``id_of("patient", "H-1", patient)``.

    The order of the keys of a dict does not matter, and a key whose value is None counts as omitted. Equal numbers have
    one id, and so have equal instants in two time zones. Text is compared as it is: ``"1"`` is not ``1``, and a time
    that is written as text is not a ``datetime``.

    Args:
        parts: one or more of text, numbers, dates, aware datetimes, times, and dicts and lists of these. Their order
            matters.

    Returns:
        40 hexadecimal digits, a hash: the id shows nothing of the parts. Like any hash, it confirms a guess of all of
        them.

    Raises:
        TypeError, ValueError: a part is something else, or a naive datetime; the message names it.
    """
    if not parts:
        raise ValueError("id_of needs at least one part")
    stated = [_stated(part, f"parts[{index}]", 0) for index, part in enumerate(parts)]
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _stated(value: object, path: str, depth: int) -> Any:
    """Return a value as JSON that is different for different values, whatever their types."""
    if depth > _DEEPEST:
        raise ValueError(f"{path} is nested too deeply")
    if isinstance(value, str):
        return str.__str__(value)  # of an enum, its value
    if isinstance(value, bool):
        return ["bool", bool(value)]
    if isinstance(value, (int, float, Decimal)):
        return ["number", _number(value, path)]
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(f"{path} is a naive datetime: pass one with a time zone")
        try:
            return ["instant", value.astimezone(UTC).isoformat()]
        except OverflowError:
            problem = f"{path} is a time that UTC cannot express"
        raise ValueError(problem)
    if isinstance(value, (date, time)):
        return ["date" if isinstance(value, date) else "time", value.isoformat()]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"the keys of {path} must be text")
        there = ((key, each) for key, each in value.items() if each is not None)
        return {str.__str__(key): _stated(each, f"{path}.{key}", depth + 1) for key, each in there}
    if isinstance(value, (list, tuple)):
        return ["list", [_stated(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]]
    raise TypeError(f"{path} must be {_VALID}, not {kind_of(value)}")


def _number(value: float | Decimal, path: str) -> str:
    """Return a number as text, the same for equal numbers of all types."""
    exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{path} must be a finite number")
    sign, digits, exponent = exact.as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    shortest = significant.rstrip("0")
    assert isinstance(exponent, int)
    return f"{'-' * sign}{shortest}e{exponent + len(significant) - len(shortest)}" if shortest else "0"
