"""Compares what two schemas accept of arrays."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, paired
from followup_mockserver.judge.drift.differences import OTHER, SIDES, Side
from followup_mockserver.judge.drift.parts import Comparison, Part
from followup_mockserver.judge.drift.samples import NoSampleError, array_sample, sample
from followup_mockserver.judge.drift.wordings import NO_EXAMPLE, keyword_detail

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
