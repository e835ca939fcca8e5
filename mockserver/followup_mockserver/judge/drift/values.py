"""Compares what two schemas accept of strings, numbers, booleans and arrays."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, canonical, paired
from followup_mockserver.judge.drift.differences import OTHER, SIDES, DifferenceClass, Side, class_of
from followup_mockserver.judge.drift.parts import NO_EXAMPLE, Comparison, Part, enum_detail, keyword_detail
from followup_mockserver.judge.drift.samples import NoSampleError, array_sample, scalars

_KEYWORDS = {
    "string": ("enum", "format", "pattern", "minLength", "maxLength"),
    "number": ("enum", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "boolean": ("enum",),
    "null": (),
}
"""The keywords of each kind that are compared in writing if no value distinguishes them."""

_DECODED = ("date", "date-time")
"""The formats that the SDK decodes."""

_Rejections = dict[tuple[Side, str], list[Any]]
"""Values that only one side accepts, by this side and the keyword because of which the other one rejects them."""


def compare_scalars(comparison: Comparison, part: Part, kind: str) -> None:
    """Compare the values of a kind other than object and array, which both sides accept some of."""
    ours, theirs = part.of_kind(kind)
    rejections = _rejections(comparison, part, kind)
    told_apart = {keyword for _, keyword in rejections}
    for (side, keyword), values in rejections.items():
        decoded = comparison.direction == "response" and side == "theirs" and _is_decoded(keyword, ours)
        class_: DifferenceClass | None = "mock differs" if decoded else None
        if keyword == "enum":
            proven, _ = comparison.proven(part, side, values)
            detail = enum_detail(side, proven or values, ours, theirs)
            comparison.report(part, side, detail, proven or values, class_=class_)
        else:
            comparison.report(part, side, keyword_detail(keyword, ours, theirs), values, class_=class_)
    if not all(each.values("enum") or each.values("const") for each in (*ours, *theirs)):
        untried = _untried(comparison, part) if kind == "string" else ()
        for keyword in _KEYWORDS[kind]:
            if _differs(keyword, ours, theirs):
                sides: list[Side] = [side for side in untried if (side, keyword) not in rejections]
                _add_unproven(comparison, part, keyword, sides, is_known=keyword in told_apart)


def _is_decoded(keyword: str, ours: list[Alternative]) -> bool:
    """Return whether the SDK decodes a value although our contract does not have it, because the mock never sends it.

    The types of the SDK have enums, dates and times. Constants, as in the envelope of a list, and other formats are
    properties of the mock's responses only.
    """
    if keyword == "enum":
        return not any(each.values("enum") for each in ours)
    return keyword == "format" and not any(value in _DECODED for each in ours for value in each.values("format"))


def _rejections(comparison: Comparison, part: Part, kind: str) -> _Rejections:
    ours, theirs = part.of_kind(kind)
    found: _Rejections = {}
    unclear: list[tuple[Side, list[str], Any]] = []
    for value in scalars([*ours, *theirs], kind):
        accepted = comparison.accepts(part, "ours", value)
        if accepted == comparison.accepts(part, "theirs", value):
            continue
        side: Side = "ours" if accepted else "theirs"
        rejecting = theirs if accepted else ours
        keywords = _failing(comparison, OTHER[side], rejecting, value)
        keywords = [each for each in keywords if _differs(each, ours, theirs)] or keywords
        if len(keywords) == 1:
            found.setdefault((side, keywords[0]), []).append(value)
        else:
            unclear.append((side, keywords, value))
    for side, keywords, value in unclear:
        if not any((side, keyword) in found for keyword in keywords):
            found[(side, keywords[0] if keywords else "not")] = [value]
    return found


def _failing(comparison: Comparison, side: Side, rejecting: list[Alternative], value: Any) -> list[str]:
    """Return the keywords because of which the closest alternative rejects a value."""
    failing = [
        [*dict.fromkeys(_name(error) for error in comparison.schemas[side].validator(each.schema).iter_errors(value))]
        for each in rejecting
    ]
    return min(failing, key=len)


def _name(error: Any) -> str:
    keyword = next((str(step) for step in reversed(error.schema_path) if isinstance(step, str)), "not")
    return "enum" if keyword == "const" else keyword


def _differs(keyword: str, ours: list[Alternative], theirs: list[Alternative]) -> bool:
    return _texts(keyword, ours) != _texts(keyword, theirs)


def _texts(keyword: str, alternatives: list[Alternative]) -> list[set[str]]:
    names = ("enum", "const") if keyword == "enum" else (keyword,)
    texts = ({canonical(value) for name in names for value in each.values(name)} for each in alternatives)
    return sorted(texts, key=sorted)


def _add_unproven(comparison: Comparison, part: Part, keyword: str, untried: Sequence[Side], *, is_known: bool) -> None:
    """Report a keyword that no value distinguishes: it is implied by others, written differently, or too complex."""
    detail = f"{keyword_detail(keyword, part.ours, part.theirs)}; {NO_EXAMPLE}"
    values = {side: _values_of(keyword, part.of(side)) for side in SIDES}
    tried = {"1"} if keyword == "minLength" else set()  # the empty text is always tried
    rejected: list[Side] = [side for side in untried if values[OTHER[side]] - values[side] - tried]
    for side in rejected:
        comparison.add(class_of(comparison.direction, side), part.path, detail)
    if not rejected and not is_known:
        comparison.add("wording", part.path, detail)


def _values_of(keyword: str, alternatives: Iterable[Alternative]) -> set[str]:
    names = ("enum", "const") if keyword == "enum" else (keyword,)
    return {canonical(value) for each in alternatives for name in names for value in each.values(name)}


def _untried(comparison: Comparison, part: Part) -> list[Side]:
    """Return the sides of whose texts none may have been tried: patterns are not analysed."""
    patterns = {side: {text for each in part.of(side) for text in each.values("pattern")} for side in SIDES}
    if not all(map(_is_readable, patterns["ours"] | patterns["theirs"])):
        return [*SIDES]
    tried = scalars([*part.ours, *part.theirs], "string")
    accepts = comparison.schemas["ours"].accepts
    return [
        side
        for side in SIDES
        if any(not any(accepts({"pattern": pattern}, value) for value in tried) for pattern in patterns[side])
    ]


def _is_readable(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


_SIZES = ("minItems", "maxItems", "uniqueItems")


def compare_arrays(comparison: Comparison, part: Part) -> None:
    """Compare the arrays, which both sides accept some of."""
    ours, theirs = part.of_kind("array")
    for pair in paired(ours, theirs, _similarity):
        _compare_pair(comparison, part, pair)


def _similarity(one: Alternative, other: Alternative) -> float:
    return sum(one.values(keyword) == other.values(keyword) for keyword in (*_SIZES, "items"))


def _compare_pair(comparison: Comparison, part: Part, pair: dict[Side, Alternative]) -> None:
    for keyword in _SIZES:
        _compare_size(comparison, part, pair, keyword)

    def lift(side: Side, item: Any) -> Any:
        more = max([0, *pair[side].values("minItems")]) - 1
        return part.lift(side, [item, *array_sample(pair[side], comparison.schemas[side], max(0, more))])

    comparison.compare_part({side: each.items for side, each in pair.items()}, f"{part.path}[]", lift)


def _compare_size(comparison: Comparison, part: Part, pair: dict[Side, Alternative], keyword: str) -> None:
    limits: dict[Side, set[int]] = {side: set(each.values(keyword)) for side, each in pair.items()}
    if limits["ours"] == limits["theirs"]:
        return
    detail = keyword_detail(keyword, [pair["ours"]], [pair["theirs"]])
    reported = False
    for side in SIDES:
        arrays = []
        for size in sorted(_sizes_of_one(keyword, limits[side], limits[OTHER[side]])):
            with suppress(NoSampleError):
                arrays.append(array_sample(pair[side], comparison.schemas[side], size))
        if arrays:
            reported |= comparison.report(part, side, detail, arrays)
    if not reported:
        comparison.add("wording", part.path, f"{detail}; {NO_EXAMPLE}")


def _sizes_of_one(keyword: str, own: set[int], other: set[int]) -> set[int]:
    """Return sizes that fit the limits of one side only; with ``uniqueItems``, that of a sample with equal items."""
    if keyword == "uniqueItems":
        return set() if own else {2}
    if keyword == "minItems":
        limit = max([0, *other])
        return {limit - 1} if max([0, *own]) < limit else set()
    if not other or (own and min(own) <= min(other)):
        return set()
    return {min(other) + 1, min(own, default=min(other) + 1)}
