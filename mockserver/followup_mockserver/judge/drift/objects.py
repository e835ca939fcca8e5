"""Compares what two schemas accept of objects: their properties, and which of them are required."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import attrs

from followup_mockserver.judge.drift.alternatives import Alternative, canonical, paired
from followup_mockserver.judge.drift.differences import OTHER, SIDES, Side, class_of
from followup_mockserver.judge.drift.parts import Comparison, Part, annotation, json_text, keyword_detail
from followup_mockserver.judge.drift.samples import NoSampleError, array_sample, object_sample, sample
from followup_mockserver.judge.drift.schemas import Schema, Schemas

_UNKNOWN = "unknownField"
_WRONG: tuple[Any, ...] = (None, 0, "", False, [], {})


def compare_objects(comparison: Comparison, part: Part) -> None:
    """Compare the objects, which both sides accept some of."""
    ours, theirs = part.of_kind("object")
    for pair in paired(ours, theirs, _similarity):
        _PairOfObjects(comparison, part, pair, declared_by(ours), declared_by(theirs)).compare()


def declared_by(alternatives: list[Alternative]) -> set[str]:
    """Return the names of the properties that any of the alternatives declares."""
    return {name for each in alternatives for name in each.property_names}


def _similarity(one: Alternative, other: Alternative) -> float:
    names, others = set(one.property_names), set(other.property_names)
    shared = names & others
    equal = sum(canonical(one.of_property(name)) == canonical(other.of_property(name)) for name in shared)
    return (len(shared) + equal) / (2 * len(names | others) or 1)


@attrs.frozen(eq=False)
class _PairOfObjects:
    """Two alternatives that describe the same object.

    Attributes:
        comparison: the comparison.
        part: the part that the object is.
        pair: its alternative in both contracts.
        ours: the properties that any alternative of our contract declares.
        theirs: those of the compared contract.
    """

    comparison: Comparison
    part: Part
    pair: dict[Side, Alternative]
    ours: set[str]
    theirs: set[str]

    def compare(self) -> None:
        for name in self._names():
            if name not in self.theirs:
                self._report_removed(name)
            elif name not in self.ours:
                self._report_new(name)
            elif all(name in each.property_names for each in self.pair.values()):
                self._compare_required(name)
                self._compare_default(name)
                self._compare_property(name)
        self._compare_unknown_names()
        for keyword in ("minProperties", "maxProperties"):
            self._compare_size(keyword)

    def _names(self) -> dict[str, None]:
        return dict.fromkeys(name for each in self.pair.values() for name in each.property_names)

    def _schemas(self, side: Side) -> Schemas:
        return self.comparison.schemas[side]

    def _object(self, side: Side, *also: str) -> list[Any]:
        """Return an object of one side with the required properties and those that are named; empty: none was found."""
        with suppress(NoSampleError):
            return [object_sample(self.pair[side], self._schemas(side), *also)]
        return []

    def _objects_without(self, side: Side, name: str) -> list[Any]:
        return [{key: each[key] for key in each if key != name} for each in self._object(side)]

    def _report_removed(self, name: str) -> None:
        detail, path = "The contract does not have this field.", f".{name}"
        if self.comparison.direction == "request":
            values = [each for each in self._object("ours", name) if name in each]
            accepted = [self.comparison.whole(self.part, "ours", each) for each in values]
            self.comparison.add("breaking", self.part.path + path, detail, next(iter(accepted), None))
            return
        if name in self.pair["ours"].required:
            values = self._objects_without("theirs", name)
        else:
            wrong = self._rejected_values(self.pair["ours"].of_property(name))
            values = [{**each, name: value} for each in self._object("theirs") for value in wrong]
        self.comparison.report(self.part, "theirs", detail, values, path=path)

    def _rejected_values(self, schema: Schema) -> list[Any]:
        return [value for value in _WRONG if not self._schemas("ours").accepts(schema, value)]

    def _report_new(self, name: str) -> None:
        path = f".{name}"
        if self.comparison.direction == "request" and name in self.pair["theirs"].required:
            self.comparison.report(
                self.part, "ours", "The contract requires this new field.", self._object("ours"), path=path
            )
            return
        example = [self.comparison.whole(self.part, "theirs", each) for each in self._object("theirs", name)]
        self.comparison.add(
            "added", self.part.path + path, "The contract has this new field.", next(iter(example), None)
        )

    def _compare_required(self, name: str) -> None:
        for side in SIDES:
            if name not in self.pair[side].required and name in self.pair[OTHER[side]].required:
                requires = "requires" if side == "ours" else "does not require"
                not_ours = "do not" if side == "ours" else "do"
                detail = f"required: the contract {requires} this field, SDK and mock {not_ours}"
                self.comparison.report(self.part, side, detail, self._objects_without(side, name), path=f".{name}")

    def _compare_default(self, name: str) -> None:
        ours, theirs = (annotation(self.pair[side].of_property(name), self._schemas(side), "default") for side in SIDES)
        if canonical(ours) == canonical(theirs):
            return
        detail = f"default: {json_text(theirs)} in the contract, {json_text(ours)} in SDK and mock"
        if self.comparison.direction == "request" and None not in (ours, theirs):
            values = [self.comparison.whole(self.part, "ours", each) for each in self._objects_without("ours", name)]
            self.comparison.add("mock differs", f"{self.part.path}.{name}", detail, next(iter(values), None))
        else:
            self.comparison.add("wording", f"{self.part.path}.{name}", detail)

    def _compare_property(self, name: str) -> None:
        def lift(side: Side, value: Any) -> Any:
            return self.part.lift(side, {**object_sample(self.pair[side], self._schemas(side)), name: value})

        schema_of: dict[Side, Schema] = {side: each.of_property(name) for side, each in self.pair.items()}
        self.comparison.compare_part(schema_of, f"{self.part.path}.{name}", lift)

    def _compare_unknown_names(self) -> None:
        unknown: dict[Side, Schema] = {side: each.of_property(_UNKNOWN) for side, each in self.pair.items()}
        closed = {side: schema == {"not": {}} for side, schema in unknown.items()}
        if closed["ours"] != closed["theirs"]:
            self._report_closed("theirs" if closed["ours"] else "ours")
        elif not closed["ours"] and canonical(unknown["ours"]) != canonical(unknown["theirs"]):

            def lift(side: Side, value: Any) -> Any:
                return self.part.lift(side, {**object_sample(self.pair[side], self._schemas(side)), _UNKNOWN: value})

            self.comparison.compare_part(unknown, f"{self.part.path}.*", lift)

    def _report_closed(self, open_side: Side) -> None:
        if open_side == "ours" and self.comparison.direction == "response" and not self.pair["ours"].has_free_names:
            # Our contract allows further fields because the SDK keeps them; the mock sends none.
            self.comparison.add("wording", self.part.path, "additionalProperties: the contract lists all fields")
            return
        verb = "rejects" if open_side == "ours" else "accepts"
        detail = f"additionalProperties: the contract {verb} further fields"
        values = []
        with suppress(NoSampleError):
            value = sample(self.pair[open_side].of_property(_UNKNOWN), self._schemas(open_side))
            values = [{**each, _UNKNOWN: value} for each in self._object(open_side)]
        self.comparison.report(self.part, open_side, detail, values)

    def _compare_size(self, keyword: str) -> None:
        bounds: dict[Side, set[int]] = {side: set(each.values(keyword)) for side, each in self.pair.items()}
        if bounds["ours"] == bounds["theirs"]:
            return
        detail = keyword_detail(keyword, [self.pair["ours"]], [self.pair["theirs"]])
        reported = False
        for side in SIDES:
            tried = [value for size in self._sizes(bounds) for value in self._object_of_size(side, size)]
            apart = [value for value in tried if not self.comparison.accepts(self.part, OTHER[side], value)]
            if apart:
                reported |= self.comparison.report(self.part, side, detail, apart)
        if not reported:
            self.comparison.report(self.part, "ours" if bounds["theirs"] else "theirs", detail, [])

    def _sizes(self, bounds: dict[Side, set[int]]) -> list[int]:
        return sorted({each + more for found in bounds.values() for each in found for more in (-1, 0, 1)})

    def _object_of_size(self, side: Side, size: int) -> list[Any]:
        names = [*self.pair[side].property_names, *(f"field{number}" for number in range(max(size, 0)))]
        for found in self._object(side, *names[: max(size, 0)]):
            if len(found) == size and self.comparison.accepts(self.part, side, found):
                return [found]
        return []


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
