"""Serializes request bodies as JSON. An error names the place of a value that JSON cannot represent, not the value."""

import json
import math
from collections.abc import Iterator
from typing import Any

import attrs

from followup._codec.names import kind_of
from followup._redaction import redacted

_LONGEST_PATH = 20
"""Steps of a path that an error message shows."""


def json_bytes(value: Any, path: str) -> bytes:
    """Serialize a request body as JSON.

    Args:
        value: the request body.
        path: name of the argument that is the body; empty where several arguments make up the body.

    Raises:
        ValueError: JSON cannot represent the value. The message names the place; neither the message nor the
            exception's context contains any part of the value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        pass
    # Raised outside the handler, because the original error holds the body.
    place, problem = next(_problems(value), (_Place(""), "is nested too deeply, or contains itself"))
    raise ValueError(f"{place.shown(path)} {problem}; JSON cannot represent it")


@attrs.frozen
class _Place:
    """A place in a body: its parent, and the step from the parent to it, such as ``.name`` or ``[0]``."""

    step: str
    parent: "_Place | None" = None

    def shown(self, path: str) -> str:
        steps, place = [], self
        while place.parent is not None:
            steps.append(place.step)
            place = place.parent
        shown = "".join(reversed(steps[-_LONGEST_PATH:]))
        return (path + shown if path else shown.lstrip(".")) or "the body"


def _problems(value: Any) -> Iterator[tuple[_Place, str]]:
    """Yield place and problem of each part that JSON cannot represent; visit each container once, against cycles."""
    left, seen = [(value, _Place(""))], set[int]()
    while left:
        each, place = left.pop()
        if problem := _problem(each):
            yield place, problem
        elif isinstance(each, (dict, list, tuple)) and id(each) not in seen:
            seen.add(id(each))
            if isinstance(each, dict):
                left += [(item, _Place(f".{redacted(str(key), max_length=64)}", place)) for key, item in each.items()]
            else:
                left += [(item, _Place(f"[{position}]", place)) for position, item in enumerate(each)]


def _problem(value: Any) -> str | None:
    match value:
        case None | bool():
            return None
        case str():
            return text_problem(value)
        case int():
            return "is an integer with too many digits" if value.bit_length() > 10_000 else None
        case float():
            return None if math.isfinite(value) else "is not a finite number"
        case dict():
            return next((problem for key in value if (problem := _key_problem(key))), None)
        case list() | tuple():
            return None
    return f"is {kind_of(value)}"


def _key_problem(key: object) -> str | None:
    if not isinstance(key, (str, int, float, type(None))):
        return f"has a key that is {kind_of(key)}"
    return "has a key that is not valid Unicode" if isinstance(key, str) and text_problem(key) else None


def text_problem(text: str) -> str | None:
    """Return the reason why a text cannot be sent; None if it can."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode: it contains a lone surrogate"
    return None
