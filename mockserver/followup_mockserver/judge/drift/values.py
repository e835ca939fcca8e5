"""Compares what two schemas accept of strings, numbers, booleans and arrays."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, canonical, paired
from followup_mockserver.judge.drift.differences import OTHER, SIDES, DifferenceClass, Side, class_of
from followup_mockserver.judge.drift.parts import NO_EXAMPLE, Comparison, Part, enum_detail, keyword_detail
from followup_mockserver.judge.drift.samples import NoSampleError, array_sample, sample, scalars

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
        for keyword in _KEYWORDS[kind]:
            if keyword not in told_apart and _differs(keyword, ours, theirs):
                _add_unproven(comparison, part, keyword, ours, theirs)


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


def _add_unproven(
    comparison: Comparison, part: Part, keyword: str, ours: list[Alternative], theirs: list[Alternative]
) -> None:
    """Report a keyword that no value distinguishes: it is implied by others, written differently, or too complex."""
    class_: DifferenceClass = "wording"
    patterns = {pattern for each in (*ours, *theirs) for pattern in each.values("pattern")}
    if keyword == "pattern" and not all(_has_sample(comparison, part, pattern) for pattern in patterns):
        stricter: Side = "ours" if not any(each.values("pattern") for each in theirs) else "theirs"
        class_ = class_of(comparison.direction, OTHER[stricter])
    comparison.add(class_, part.path, f"{keyword_detail(keyword, ours, theirs)}; {NO_EXAMPLE}")


def _has_sample(comparison: Comparison, part: Part, pattern: str) -> bool:
    """Return whether a value that was tried matches a pattern: patterns are not analysed."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    tried = scalars([*part.ours, *part.theirs], "string")
    return any(comparison.schemas["ours"].accepts({"pattern": pattern}, value) for value in tried)


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
    if set(pair["ours"].values(keyword)) == set(pair["theirs"].values(keyword)):
        return
    detail = keyword_detail(keyword, [pair["ours"]], [pair["theirs"]])
    reported = False
    for side in SIDES:
        values = [value for value in _arrays(comparison, pair, side, keyword) if _fits(pair[side], keyword, value)]
        values = [value for value in values if not _fits(pair[OTHER[side]], keyword, value)]
        if values:
            reported |= comparison.report(part, side, detail, values)
    if not reported:
        comparison.add("wording", part.path, f"{detail}; {NO_EXAMPLE}")


def _arrays(comparison: Comparison, pair: dict[Side, Alternative], side: Side, keyword: str) -> Iterator[list[Any]]:
    """Iterate over arrays of one side that are as long as the bounds of both, or differ from them by one."""
    schemas = comparison.schemas[side]
    if keyword == "uniqueItems":
        with suppress(NoSampleError):
            yield [sample(pair[side].items, schemas)] * 2
        return
    bounds = {bound for each in pair.values() for bound in each.values(keyword)}
    for size in sorted({bound + more for bound in bounds for more in (-1, 0, 1) if bound + more >= 0}):
        with suppress(NoSampleError):
            yield array_sample(pair[side], schemas, size)


def _fits(alternative: Alternative, keyword: str, value: list[Any]) -> bool:
    bounds = alternative.values(keyword)
    match keyword:
        case "minItems":
            return all(len(value) >= bound for bound in bounds)
        case "maxItems":
            return all(len(value) <= bound for bound in bounds)
    return not any(bounds) or len(value) < 2
