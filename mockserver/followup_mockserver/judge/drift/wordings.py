"""The sentences that describe the difference of a keyword."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from followup_mockserver.judge.drift.alternatives import KINDS, Alternative, canonical
from followup_mockserver.judge.drift.differences import Side

NO_EXAMPLE = "no value was found that only one of them accepts"
_LONGEST = 80


def json_text(value: Any) -> str:
    """Return a value as JSON, shortened if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def keyword_detail(keyword: str, ours: Iterable[Alternative], theirs: Iterable[Alternative]) -> str:
    """Describe a keyword that has other values in the two contracts."""
    return f"{keyword}: {_values(keyword, theirs)} in the contract, {_values(keyword, ours)} in SDK and mock"


def enum_detail(side: Side, values: Sequence[Any], ours: Iterable[Alternative], theirs: Iterable[Alternative]) -> str:
    """Describe an enum; ``values`` are members, or examples of values, that only one contract accepts."""
    members = {canonical(value) for each in (ours if side == "ours" else theirs) for value in _members(each)}
    listed = [value for value in values if canonical(value) in members]
    if not listed:
        return keyword_detail("enum", ours, theirs)
    texts = ", ".join(json_text(value) for value in listed)
    return f"enum: the contract {'lacks' if side == 'ours' else 'adds'} {texts}"


def type_detail(ours: Iterable[Alternative], theirs: Iterable[Alternative]) -> str:
    """Describe a part that has other types in the two contracts."""
    return f"type: {_types(theirs)} in the contract, {_types(ours)} in SDK and mock"


def _members(alternative: Alternative) -> list[Any]:
    lists = [*alternative.values("enum"), *([value] for value in alternative.values("const"))]
    return [value for members in lists for value in members]


def _values(keyword: str, alternatives: Iterable[Alternative]) -> str:
    names = ("enum", "const") if keyword == "enum" else (keyword,)
    values = [value for each in alternatives for name in names for value in each.values(name)]
    return " or ".join(dict.fromkeys(map(json_text, values))) or "none"


def _types(alternatives: Iterable[Alternative]) -> str:
    kinds = {kind for each in alternatives for kind in each.kinds}
    integers = [value in ("integer", ["integer"]) for each in alternatives for value in each.values("type")]
    names = ["integer" if kind == "number" and any(integers) else kind for kind in KINDS if kind in kinds]
    return "any" if len(kinds) == len(KINDS) else " or ".join(names) or "none"
