"""Example strings for a regular expression: some that match it, and similar ones, which may not."""

from collections.abc import Iterator
from re import _constants as constants  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from re import error as PatternError  # noqa: N812
from typing import Any

_MOST = 12
"""Examples that are kept for each part of an expression."""
_LONGEST = 10_000
_ALPHABET = "a0A_- ./é"


def matching(pattern: str) -> list[str] | None:
    """Return strings that match a regular expression, or almost do.

    Lookarounds and boundaries are ignored, so the caller checks the strings. ``re`` has no public way to read an
    expression, and its private one is used here alone.

    Returns:
        The strings, the simplest first; None if Python cannot read the expression.
    """
    try:
        return _sequence(parser.parse(pattern))
    except (PatternError, OverflowError, RecursionError, LookupError):
        return None


def similar(text: str) -> Iterator[str]:
    """Iterate over strings that differ a little from another."""
    yield from (text[:-1], text[1:], f"{text}a", f"{text}0", f"{text}!", f"a{text}", f"!{text}", f" {text}", f"{text} ")
    yield from (text.upper(), text.lower(), f"{text}é", text + text)
    if len(text) < 100:
        yield from (text[:at] + other + text[at + 1 :] for at in range(len(text)) for other in "a0A!")


def _sequence(nodes: Any) -> list[str]:
    """Return examples of a concatenation: the simplest, and for each part its other examples within the simplest."""
    parts = [_examples(node) for node in nodes]
    simplest = [part[0] for part in parts]
    found = ["".join(simplest)]
    for position, part in enumerate(parts):
        found += ["".join([*simplest[:position], other, *simplest[position + 1 :]]) for other in part[1:]]
    return [*dict.fromkeys(found)][:_MOST]


def _examples(node: Any) -> list[str]:
    kind, argument = node
    match kind:
        case constants.LITERAL:
            return [chr(argument)]
        case constants.NOT_LITERAL:
            return [each for each in _ALPHABET if ord(each) != argument][:2]
        case constants.ANY:
            return ["a", "!"]
        case constants.IN:
            return _members(argument)
        case constants.BRANCH:
            return [*dict.fromkeys(text for branch in argument[1] for text in _sequence(branch))][:_MOST]
        case constants.SUBPATTERN:
            return _sequence(argument[-1])
        case constants.ATOMIC_GROUP:
            return _sequence(argument)
        case constants.MAX_REPEAT | constants.MIN_REPEAT | constants.POSSESSIVE_REPEAT:
            return _repeated(*argument)
    return [""]


def _repeated(least: int, most: Any, nodes: Any) -> list[str]:
    inner = _sequence(nodes)
    counts = [count for count in (least, least + 1, most) if count <= most]
    longest = max(map(len, inner)) or 1
    found = [inner[0] * count for count in counts if count * longest <= _LONGEST]
    if least:
        found += [other + inner[0] * (least - 1) for other in inner[1:] if least * longest <= _LONGEST]
    return [*dict.fromkeys(found)][:_MOST] or [""]


def _members(items: Any) -> list[str]:
    negated = items[0][0] is constants.NEGATE
    members = [text for kind, argument in items for text in _member(kind, argument)]
    if negated:
        return [each for each in _ALPHABET if each not in members][:2] or [""]
    return [*dict.fromkeys(members)][:_MOST] or [""]


def _member(kind: Any, argument: Any) -> Iterator[str]:
    match kind:
        case constants.LITERAL:
            yield chr(argument)
        case constants.RANGE:
            low, high = argument
            yield chr(low)
            yield chr(high)
        case constants.CATEGORY:
            yield _CATEGORIES.get(argument, "a")


_CATEGORIES = {
    constants.CATEGORY_DIGIT: "0",
    constants.CATEGORY_NOT_DIGIT: "a",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_NOT_SPACE: "a",
    constants.CATEGORY_WORD: "a",
    constants.CATEGORY_NOT_WORD: "!",
}
