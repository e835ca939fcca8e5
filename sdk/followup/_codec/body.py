"""The JSON text of a request body, and errors that name the place of a value that is not JSON without showing it."""

import json
import math
from collections.abc import Iterator
from typing import Any

import attrs

from followup._redaction import redacted

_LONGEST_PATH = 20
"""Steps of a path that are shown."""


def json_bytes(value: Any, path: str) -> bytes:
    """Return the value as JSON.

    Args:
        value: the body of a request.
        path: name of the argument that it was passed as.

    Raises:
        ValueError: it cannot be written as JSON; the text names the place, and neither the text nor its context holds
            a part of the value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        pass
    # Outside the handler: the original error would carry the body along.
    place, problem = next(_problems(value), (_Place(""), "is nested too deep, or contains itself"))
    raise ValueError(f"{place.shown(path)} {problem}; it cannot be written as JSON")


def kind_of(value: object) -> str:
    """Return what a value is, for a message: ``a list``, ``an int``, ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


@attrs.frozen
class _Place:
    """A place in a body: the step that leads there from its parent."""

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
    """Yield the place and the problem of each part that is not JSON; look into a container once, so that this ends."""
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
            return "is a number of too many digits" if value.bit_length() > 10_000 else None
        case float():
            return None if math.isfinite(value) else "is a number that is not finite"
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
    """Return why a text cannot be sent; None if it can."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode: it has a lone surrogate"
    return None
