"""Compares what two schemas accept of each kind of value: strings, numbers and booleans, arrays, objects."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import attrs

from followup_mockserver.judge.drift.alternatives import Alternative, canonical, paired
from followup_mockserver.judge.drift.differences import OTHER, SIDES, DifferenceClass, Side, class_of
from followup_mockserver.judge.drift.parts import (
    NO_EXAMPLE,
    Comparison,
    Part,
    annotation,
    enum_detail,
    json_text,
    keyword_detail,
)
from followup_mockserver.judge.drift.samples import NoSampleError, array_sample, object_sample, sample, scalars
from followup_mockserver.judge.drift.schemas import Schema, Schemas

_UNKNOWN = "unknownField"
_WRONG: tuple[Any, ...] = (None, 0, "", False, [], {})

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
    values = {side: {text for texts in _texts(keyword, part.of(side)) for text in texts} for side in SIDES}
    tried = {"1"} if keyword == "minLength" else set()  # the empty text is always tried
    rejected: list[Side] = [side for side in untried if values[OTHER[side]] - values[side] - tried]
    for side in rejected:
        comparison.add(class_of(comparison.direction, side), part.path, detail)
    if not rejected and not is_known:
        comparison.add("wording", part.path, detail)


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
    for pair in paired(ours, theirs, _similarity_of_arrays):
        _compare_pair(comparison, part, pair)


def _similarity_of_arrays(one: Alternative, other: Alternative) -> float:
    return sum(one.values(keyword) == other.values(keyword) for keyword in (*_SIZES, "items"))


def _compare_pair(comparison: Comparison, part: Part, pair: dict[Side, Alternative]) -> None:
    schemas = comparison.schemas
    for keyword in _SIZES:

        def arrays(side: Side, limits: _Limits, keyword: str = keyword) -> list[Any]:
            sizes = sorted(_sizes_of_one(keyword, limits[side], limits[OTHER[side]]))
            return _made(lambda size: array_sample(pair[side], schemas[side], size), sizes)

        _compare_size(comparison, part, pair, keyword, arrays)

    def lift(side: Side, item: Any) -> Any:
        more = max([0, *pair[side].values("minItems")]) - 1
        return part.lift(side, [item, *array_sample(pair[side], schemas[side], max(0, more))])

    comparison.compare_part({side: each.items for side, each in pair.items()}, f"{part.path}[]", lift)


def _made(make: Callable[[int], Any], sizes: Iterable[int]) -> list[Any]:
    """Return the samples of these sizes that can be made."""
    made = []
    for size in sizes:
        with suppress(NoSampleError):
            made.append(make(size))
    return made


_Limits = dict[Side, set[int]]


def _compare_size(
    comparison: Comparison,
    part: Part,
    pair: dict[Side, Alternative],
    keyword: str,
    values_of: Callable[[Side, _Limits], list[Any]],
) -> None:
    """Compare a limit of the size of objects or arrays; ``values_of`` returns those of one side that may prove it."""
    limits: _Limits = {side: set(pair[side].values(keyword)) for side in SIDES}
    if limits["ours"] == limits["theirs"]:
        return
    detail = keyword_detail(keyword, [pair["ours"]], [pair["theirs"]])
    tried = {side: values_of(side, limits) for side in SIDES}
    reported = [comparison.report(part, side, detail, tried[side]) for side in SIDES if tried[side]]
    if not any(reported) and keyword in _SIZES:
        comparison.add("wording", part.path, f"{detail}; {NO_EXAMPLE}")
    elif not any(reported):
        comparison.report(part, "ours" if limits["theirs"] else "theirs", detail, [])


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


def compare_objects(comparison: Comparison, part: Part) -> None:
    """Compare the objects, which both sides accept some of."""
    ours, theirs = part.of_kind("object")
    our_names, their_names = ({name for each in found for name in each.property_names} for found in (ours, theirs))
    for pair in paired(ours, theirs, _similarity):
        _PairOfObjects(comparison, part, pair, our_names, their_names).compare()


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
        for name in dict.fromkeys(name for each in self.pair.values() for name in each.property_names):
            if name not in self.theirs:
                self._report_removed(name)
            elif name not in self.ours:
                self._report_new(name)
            elif all(name in each.property_names for each in self.pair.values()):
                self._compare_required(name)
                self._compare_default(name)
                self._compare_values(name, f"{self.part.path}.{name}")
        self._compare_unknown_names()
        for keyword in ("minProperties", "maxProperties"):
            _compare_size(self.comparison, self.part, self.pair, keyword, self._of_sizes)

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
        detail = "The contract does not have this field."
        if self.comparison.direction == "request":
            self._add("breaking", name, detail, "ours", self._object("ours", name))
            return
        if name in self.pair["ours"].required:
            values = self._objects_without("theirs", name)
        else:
            schema = self.pair["ours"].of_property(name)
            wrong = [each for each in _WRONG if not self._schemas("ours").accepts(schema, each)]
            values = [{**each, name: value} for each in self._object("theirs") for value in wrong]
        self.comparison.report(self.part, "theirs", detail, values, path=f".{name}")

    def _report_new(self, name: str) -> None:
        if self.comparison.direction == "request" and name in self.pair["theirs"].required:
            detail = "The contract requires this new field."
            self.comparison.report(self.part, "ours", detail, self._object("ours"), path=f".{name}")
            return
        self._add("added", name, "The contract has this new field.", "theirs", self._object("theirs", name))

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
            self._add("mock differs", name, detail, "ours", self._objects_without("ours", name))
        else:
            self._add("wording", name, detail, "ours", [])

    def _add(self, class_: DifferenceClass, name: str, detail: str, side: Side, objects: list[Any]) -> None:
        witness = next((self.comparison.whole(self.part, side, each) for each in objects), None)
        self.comparison.add(class_, f"{self.part.path}.{name}", detail, witness)

    def _compare_values(self, name: str, path: str) -> None:
        def lift(side: Side, value: Any) -> Any:
            return self.part.lift(side, {**object_sample(self.pair[side], self._schemas(side)), name: value})

        schema_of: dict[Side, Schema] = {side: each.of_property(name) for side, each in self.pair.items()}
        self.comparison.compare_part(schema_of, path, lift)

    def _compare_unknown_names(self) -> None:
        unknown: dict[Side, Schema] = {side: each.of_property(_UNKNOWN) for side, each in self.pair.items()}
        closed = {side: schema == {"not": {}} for side, schema in unknown.items()}
        if closed["ours"] != closed["theirs"]:
            self._report_closed("theirs" if closed["ours"] else "ours")
        elif not closed["ours"] and canonical(unknown["ours"]) != canonical(unknown["theirs"]):
            self._compare_values(_UNKNOWN, f"{self.part.path}.*")

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

    def _of_sizes(self, side: Side, limits: _Limits) -> list[Any]:
        sizes = sorted({max(each + more, 0) for found in limits.values() for each in found for more in (-1, 0, 1)})
        names = [*self.pair[side].property_names, *(f"field{number}" for number in range(sizes[-1]))]
        objects = _made(lambda size: object_sample(self.pair[side], self._schemas(side), *names[:size]), sizes)
        return [each for each in objects if self.comparison.tells_apart(self.part, side, each)]


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
            if comparison.tells_apart(part, side, value)
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
    sizes = sorted({0, 1, 2} | bounds | {bound + 1 for bound in bounds})
    yield from _made(lambda size: array_sample(alternative, schemas, size), sizes)
