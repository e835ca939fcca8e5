"""Compares two schemas, and all that is within them."""

from typing import Any

import attrs

from followup_mockserver.judge.drift.alternatives import KINDS, Alternative, alternatives, canonical, kind_of
from followup_mockserver.judge.drift.differences import SIDES, Difference, Direction, Side
from followup_mockserver.judge.drift.kinds import compare_arrays, compare_objects, compare_scalars, compare_union
from followup_mockserver.judge.drift.parts import Comparison, Lift, Part, compare_texts, texts_of, type_detail
from followup_mockserver.judge.drift.reading import DocumentError
from followup_mockserver.judge.drift.samples import samples_of
from followup_mockserver.judge.drift.schemas import Schema, Schemas

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
    apart = [value for value in tried if comparison.tells_apart(part, side, value)]
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


_MAX_PARTS = 20_000
"""Parts of one message that are compared. The messages of this service have less than a hundred."""


@attrs.frozen(eq=False)
class Message:
    """A part of the traffic that has a schema, such as the body of a response.

    Attributes:
        schema: its schema.
        schemas: the schemas of its document.
    """

    schema: Schema
    schemas: Schemas


def compare_schemas(direction: Direction, ours: Message, theirs: Message) -> list[Difference]:
    """Return the differences of two schemas; ``where`` is a path within the message, such as ``.patient.phone``.

    Raises:
        DocumentError: a schema is too large.
    """
    comparison = _SchemaComparison(
        direction,
        {"ours": ours.schemas, "theirs": theirs.schemas},
        {"ours": ours.schema, "theirs": theirs.schema},
    )
    comparison.compare_part(comparison.roots, "", lambda _, value: value)
    return [*{(each.class_, each.where, each.detail): each for each in comparison.found}.values()]


class _SchemaComparison(Comparison):
    def __init__(self, direction: Direction, schemas: dict[Side, Schemas], roots: dict[Side, Schema]) -> None:
        super().__init__(direction, schemas, roots)
        self._parts = 0
        self._open: set[tuple[str, str]] = set()

    def compare_part(self, schema_of: dict[Side, Schema], path: str, lift: Lift) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise DocumentError(f"a schema has more than {_MAX_PARTS:,} parts once its references are resolved")
        pair = (self.schemas["ours"].text(schema_of["ours"]), self.schemas["theirs"].text(schema_of["theirs"]))
        if pair[0] == pair[1] or pair in self._open:  # nothing differs, or a schema contains itself
            return
        self._open.add(pair)
        # First, because it rejects an invalid schema, of which nothing else can be read.
        validators: dict[Side, Any] = {side: self.schemas[side].validator(schema_of[side]) for side in SIDES}
        ours, theirs = (alternatives(schema_of[side], self.schemas[side]) for side in SIDES)
        part = Part(ours, theirs, validators, path, lift)
        self._compare_types(part)
        our_texts, their_texts = (texts_of(schema_of[side], self.schemas[side]) for side in SIDES)
        self.found += compare_texts(our_texts, their_texts, path)
        for kind in KINDS:
            if all(part.of_kind(kind)):
                if kind not in ("object", "array"):
                    compare_scalars(self, part, kind)
                    continue
                (compare_objects if kind == "object" else compare_arrays)(self, part)
                compare_union(self, part, kind)
        compare_complex_keywords(self, part)
        self._open.remove(pair)

    def _compare_types(self, part: Part) -> None:
        kinds = {side: {kind for each in part.of(side) for kind in each.kinds} for side in SIDES}
        for side, other in (SIDES, SIDES[::-1]):
            only = kinds[side] - kinds[other]
            if only:
                values = [value for kind in KINDS if kind in only for value in self._values_of_kind(part, side, kind)]
                self.report(part, side, type_detail(part.ours, part.theirs), values)

    def _values_of_kind(self, part: Part, side: Side, kind: str) -> list[Any]:
        values = (value for each in part.of(side) for value in samples_of(each, self.schemas[side]))
        return [value for value in values if kind_of(value) == kind and self.accepts(part, side, value)][:3]
