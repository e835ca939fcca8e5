"""Compares keywords that are not taken apart, such as ``not``, ``if`` and ``contains``."""

from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, canonical
from followup_mockserver.judge.drift.differences import OTHER, SIDES, Side
from followup_mockserver.judge.drift.parts import Comparison, Part
from followup_mockserver.judge.drift.samples import samples_of
from followup_mockserver.judge.drift.schemas import Schemas

KEYWORDS = (
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "contains",
    "minContains",
    "maxContains",
    "prefixItems",
    "unevaluatedItems",
)
"""Keywords that are compared as a whole. The direction of a change is known if only one contract has the keyword."""

_MAX_DEPTH = 20


def compare_complex_keywords(comparison: Comparison, part: Part) -> None:
    """Report the complex keywords that the two contracts use differently."""
    for keyword in KEYWORDS:
        ours, theirs = (_texts(keyword, part.of(side), comparison.schemas[side]) for side in SIDES)
        reported = any(each.where == part.path and each.detail.startswith(f"{keyword}:") for each in comparison.found)
        if ours == theirs or reported:
            continue
        detail = f"{keyword}: {_listed(theirs)} in the contract, {_listed(ours)} in SDK and mock"
        proven = [side for side in SIDES if _report_proven(comparison, part, side, detail)]
        if not proven:
            # A keyword that only one side has is a further condition. If both have it, the sender's messages may fail.
            sender: Side = "ours" if comparison.direction == "request" else "theirs"
            comparison.report(part, "ours" if not ours else "theirs" if not theirs else sender, detail, [])


def _report_proven(comparison: Comparison, part: Part, side: Side, detail: str) -> bool:
    tried = [value for each in part.of(side) for value in samples_of(each, comparison.schemas[side])]
    apart = [
        value
        for value in tried
        if comparison.accepts(part, side, value) and not comparison.accepts(part, OTHER[side], value)
    ]
    known = {canonical(each.witness) for each in comparison.found}
    proven, _ = comparison.proven(part, side, apart)
    fresh = [value for value in proven if canonical(comparison.whole(part, side, value)) not in known]
    return bool(fresh) and comparison.report(part, side, detail, fresh)


def _texts(keyword: str, alternatives: list[Alternative], schemas: Schemas) -> list[str]:
    values = (value for each in alternatives for value in each.values(keyword))
    return sorted({canonical(_inlined(value, schemas, 0)) for value in values})


def _inlined(value: Any, schemas: Schemas, depth: int) -> Any:
    if isinstance(value, list):
        return [_inlined(each, schemas, depth) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value and depth < _MAX_DEPTH:
        return {**_inlined(schemas.target(value["$ref"]), schemas, depth + 1)}
    return {name: _inlined(each, schemas, depth) for name, each in value.items() if name != "description"}


def _listed(texts: list[str]) -> str:
    return " or ".join(text if len(text) <= 80 else f"{text[:80]}…" for text in texts) or "none"
