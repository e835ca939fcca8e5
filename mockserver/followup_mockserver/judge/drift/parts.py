"""A comparison of two schemas: its state, and the proof of each difference by a value that only one side accepts."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from followup_mockserver.judge.drift.alternatives import KINDS, Alternative, canonical
from followup_mockserver.judge.drift.differences import OTHER, Difference, DifferenceClass, Direction, Side, class_of
from followup_mockserver.judge.drift.samples import NoSampleError
from followup_mockserver.judge.drift.schemas import Schema, Schemas

_OF_SCHEMAS = ("title", "description", "examples", "deprecated")
_MAX_DEPTH = 20


def compare_texts(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Iterate over the texts that differ in more than white space; an absent text and an empty one are the same."""
    for name in ours:
        if _normal(ours[name]) != _normal(theirs.get(name)):
            yield Difference("wording", where, f"{name}: other in the contract")


def texts_of(schema: Schema, schemas: Schemas) -> dict[str, Any]:
    """Return the texts of a schema, or of the schema that it wraps."""
    return {name: annotation(schema, schemas, name) for name in _OF_SCHEMAS}


def annotation(schema: Schema, schemas: Schemas, name: str, depth: int = 0) -> Any:
    """Return the value of an annotation of a schema, or of the schema that it wraps; None: there is none."""
    if name in schema or depth > _MAX_DEPTH:
        return schema.get(name)
    wrapped = [schemas.target(schema["$ref"])] if "$ref" in schema else []
    wrapped += schema.get("allOf", [])
    unions = [each for union in ("anyOf", "oneOf") for each in schema.get(union, []) if each != {"type": "null"}]
    wrapped += unions if len(unions) == 1 else []
    return next((text for each in wrapped if (text := annotation(each, schemas, name, depth + 1)) is not None), None)


def _normal(text: Any) -> Any:
    if isinstance(text, str):
        return " ".join(text.split())
    return text or ""


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


Lift = Callable[[Side, Any], Any]
"""Returns a whole message of one side that has a value in a certain place.

Raises:
    NoSampleError: no message was found that has such a place.
"""

_MOST_TRIED = 20


@attrs.frozen(eq=False)
class Part:
    """A part of a message, with its schema in both contracts.

    Attributes:
        ours: the alternatives of the schema in our contract.
        theirs: those in the compared contract.
        validators: validators of the schema as a whole, by side.
        path: the path of the part.
        lift: makes a whole message of a value of the part.
    """

    ours: list[Alternative]
    theirs: list[Alternative]
    validators: dict[Side, Any]
    path: str
    lift: Lift

    def of(self, side: Side) -> list[Alternative]:
        """Return the alternatives of one side."""
        return self.ours if side == "ours" else self.theirs

    def of_kind(self, kind: str) -> tuple[list[Alternative], list[Alternative]]:
        """Return the alternatives that accept values of a kind, ours and theirs."""
        ours = [each for each in self.ours if kind in each.kinds]
        return ours, [each for each in self.theirs if kind in each.kinds]


class Comparison:
    """A comparison of two schemas, part by part.

    Attributes:
        direction: the direction of the messages.
        schemas: the schemas of both documents.
        roots: the schemas of the whole messages.
        found: the differences so far.
        compare_part: compares a part, and the parts within it: its schema by side, its path, and its ``lift``.
    """

    compare_part: Callable[[dict[Side, Schema], str, Lift], None]

    def __init__(self, direction: Direction, schemas: dict[Side, Schemas], roots: dict[Side, Schema]) -> None:
        self.direction: Direction = direction
        self.schemas = schemas
        self.found: list[Difference] = []
        self.roots = roots

    def accepts(self, part: Part, side: Side, value: Any) -> bool:
        """Return whether a side accepts a value of a part."""
        valid: bool = part.validators[side].is_valid(value)
        return valid

    def tells_apart(self, part: Part, side: Side, value: Any) -> bool:
        """Return whether only this side accepts a value of a part."""
        return self.accepts(part, side, value) and not self.accepts(part, OTHER[side], value)

    def report(
        self,
        part: Part,
        side: Side,
        detail: str,
        values: Sequence[Any],
        *,
        path: str = "",
        class_: DifferenceClass | None = None,
    ) -> bool:
        """Report a difference if a value proves it, or if no value can be tried.

        Args:
            part: the part that contains the values.
            side: the only side that accepts the values.
            detail: describes the difference.
            values: values of the part.
            path: the place within the part.
            class_: the class; None: that of the direction.

        Returns:
            Whether it was reported.
        """
        proven, refuted = self.proven(part, side, values)
        if not proven and refuted:
            return False
        if not proven:
            detail = f"{detail}; {NO_EXAMPLE}"
        witness = self.whole(part, side, proven[0]) if proven else None
        self.add(class_ or class_of(self.direction, side), part.path + path, detail, witness)
        return True

    def proven(self, part: Part, side: Side, values: Iterable[Any]) -> tuple[list[Any], bool]:
        """Return the values that only one side accepts within a whole message, and whether there are others."""
        proven, refuted = [], False
        for value in [*values][:_MOST_TRIED]:
            try:
                whole = part.lift(side, value)
            except NoSampleError:
                continue
            if self._root_accepts(side, whole):
                if self._root_accepts(OTHER[side], whole):
                    refuted = True
                else:
                    proven.append(value)
        return proven, refuted

    def _root_accepts(self, side: Side, whole: Any) -> bool:
        return self.schemas[side].accepts(self.roots[side], whole)

    def whole(self, part: Part, side: Side, value: Any) -> Any:
        """Return a whole message with this value; None if the side does not accept it."""
        try:
            whole = part.lift(side, value)
        except NoSampleError:
            return None
        return whole if self._root_accepts(side, whole) else None

    def add(self, class_: DifferenceClass, path: str, detail: str, witness: Any = None) -> None:
        """Add a difference."""
        self.found.append(Difference(class_, path, detail, witness))
