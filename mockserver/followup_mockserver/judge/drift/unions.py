"""Compares unions of objects or of arrays as a whole, because pairs of their alternatives do not show everything."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative
from followup_mockserver.judge.drift.differences import OTHER, SIDES, class_of
from followup_mockserver.judge.drift.parts import Comparison, Part
from followup_mockserver.judge.drift.samples import NoSampleError, array_sample, object_sample
from followup_mockserver.judge.drift.schemas import Schemas


def compare_union(comparison: Comparison, part: Part, kind: str) -> None:
    """Report that one side accepts an alternative of the other only in part, if no difference within it shows this.

    Args:
        comparison: the comparison.
        part: the part that the union is.
        kind: ``object`` or ``array``.
    """
    ours, theirs = part.of_kind(kind)
    if len(ours) == len(theirs) == 1:
        return
    for side in SIDES:
        class_ = class_of(comparison.direction, side)
        if any(each.class_ == class_ and each.where.startswith(part.path) for each in comparison.found):
            continue
        values = [
            value
            for alternative in (ours if side == "ours" else theirs)
            for value in _variants(alternative, comparison.schemas[side], kind)
            if comparison.accepts(part, side, value) and not comparison.accepts(part, OTHER[side], value)
        ]
        if values:
            verb = "rejects" if side == "ours" else "accepts"
            comparison.report(part, side, f"The contract {verb} this form of the {kind}.", values)


def _variants(alternative: Alternative, schemas: Schemas, kind: str) -> Iterator[Any]:
    if kind == "object":
        names = alternative.property_names
        for also in ([], names, *([name] for name in names)):
            with suppress(NoSampleError):
                yield object_sample(alternative, schemas, *also)
        return
    bounds = {bound for keyword in ("minItems", "maxItems") for bound in alternative.values(keyword)}
    for size in sorted({0, 1, 2} | bounds | {bound + 1 for bound in bounds}):
        with suppress(NoSampleError):
            yield array_sample(alternative, schemas, size)
