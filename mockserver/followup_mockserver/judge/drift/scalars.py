"""Compares what two schemas accept of strings, numbers and booleans, by trying values of both."""

from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, canonical
from followup_mockserver.judge.drift.candidates import scalars
from followup_mockserver.judge.drift.differences import OTHER, DifferenceClass, Side, class_of
from followup_mockserver.judge.drift.parts import Comparison, Part
from followup_mockserver.judge.drift.patterns import matching
from followup_mockserver.judge.drift.wordings import NO_EXAMPLE, enum_detail, keyword_detail

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
    detail = f"{keyword_detail(keyword, ours, theirs)}; {NO_EXAMPLE}"
    patterns = [pattern for each in (*ours, *theirs) for pattern in each.values("pattern")]
    if keyword == "pattern" and any(matching(pattern) is None for pattern in patterns):
        stricter: Side = "ours" if not any(each.values("pattern") for each in theirs) else "theirs"
        comparison.add(class_of(comparison.direction, OTHER[stricter]), part.path, detail)
    else:
        comparison.add("wording", part.path, detail)
