"""Compares two schemas, and all that is within them, keyword by keyword."""

from collections.abc import Iterator
from typing import Any

import attrs

from followup_mockserver.lab.drift.differences import (
    NOT_COMPARED,
    Difference,
    Direction,
    Side,
    canonical,
    changed,
    class_of,
    compare_texts,
    shortened,
)
from followup_mockserver.lab.drift.schemas import (
    ANNOTATIONS,
    KINDS,
    LOWER,
    TEXTS,
    UPPER,
    Form,
    Schemas,
    kinds_of,
    types_of,
)

_KEYWORDS = ("enum", *LOWER, *UPPER, *TEXTS)
_DEPENDENT = ("minContains", "patternProperties", "prefixItems")
"""Keywords that also widen what another one restricts."""


class Comparer:
    """Compares schemas of two contracts in one direction, equal pairs only once.

    Args:
        direction: the direction.
        ours: the schemas of our contract, none of which contains itself.
        theirs: those of the other one.
    """

    def __init__(self, direction: Direction, ours: Schemas, theirs: Schemas) -> None:
        self._direction: Direction = direction
        self._ours = ours
        self._theirs = theirs
        self._known: dict[str, tuple[str, list[Difference]]] = {}

    def compare(self, ours: Any, theirs: Any, where: str) -> Iterator[Difference]:
        """Iterate over the differences of two schemas, and of all parts that both have.

        Raises:
            DocumentError: a schema is malformed.
        """
        key = canonical([ours, theirs])
        if key not in self._known:
            self._known[key] = where, [*dict.fromkeys(self._compare(ours, theirs, where))]
        first, found = self._known[key]
        yield from (attrs.evolve(each, where=where + each.where.removeprefix(first)) for each in found)

    def _compare(self, ours: Any, theirs: Any, where: str) -> Iterator[Difference]:
        our_form, their_form = self._ours.form(ours, where), self._theirs.form(theirs, where)
        one, other = types_of(our_form), types_of(their_form)
        detail = changed("type", _shown_types(one), _shown_types(other))
        yield from (self._accepted_by(side, where, detail) for side, _ in _only(one, other))
        yield from self._compare_annotations(ours, theirs, where)
        yield from self._compare_forms(our_form, their_form, one & other, where)

    def _compare_annotations(self, ours: Any, theirs: Any, where: str) -> Iterator[Difference]:
        one, other = self._ours.annotations(ours), self._theirs.annotations(theirs)
        yield from compare_texts({name: one.get(name) for name in ANNOTATIONS if name != "default"}, other, where)
        defaults = one.get("default"), other.get("default")
        if canonical(defaults[0]) != canonical(defaults[1]):
            is_used = self._direction == "request" and None not in defaults
            detail = changed("default", *([canonical(each)] for each in defaults))
            yield Difference("mock differs" if is_used else "wording", where, detail)

    def _compare_forms(self, ours: Form, theirs: Form, types: set[str], where: str) -> Iterator[Difference]:
        """Compare the keywords of the types that both accept."""
        for keyword in _KEYWORDS:
            if ours.get(keyword) != theirs.get(keyword) and kinds_of(keyword) & types:
                yield from self._compare_keyword(keyword, ours, theirs, where)
        if "array" in types and ("items" in ours or "items" in theirs):
            yield from self.compare(ours.get("items", True), theirs.get("items", True), f"{where}[]")
        if "object" in types:
            forms = ours.get("forms", 1), theirs.get("forms", 1)
            if self._direction == "request" and forms[1] > max(forms[0], 1):
                detail = f"The contract has {forms[1]} forms of the object, SDK and mock have {forms[0] or 1}"
                yield Difference("breaking", where, f"{detail}; {NOT_COMPARED}")
            yield from self._compare_properties(ours, theirs, where)
            yield from self._compare_further(ours, theirs, where)

    def _compare_keyword(self, keyword: str, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get(keyword), theirs.get(keyword)
        detail = changed(keyword, _values(one), _values(other))
        if keyword == "enum" and one is not None and other is not None:
            for side, members in _only(one, other):
                listed = ", ".join(map(shortened, sorted(members)))
                detail = f"enum: the contract {'lacks' if side == 'ours' else 'adds'} {listed}"
                yield self._of_keyword(keyword, side, ours, where, detail)
        elif keyword in _DEPENDENT:
            yield Difference("breaking", where, f"{detail}; {NOT_COMPARED}")
        elif one is None or other is None:
            yield self._of_keyword(keyword, "ours" if one is None else "theirs", ours, where, detail)
        elif keyword in TEXTS and not (one < other or other < one):
            yield Difference("breaking", where, f"{detail}; {NOT_COMPARED}")
        else:
            is_ours = one > other if keyword in UPPER else one < other
            yield self._of_keyword(keyword, "ours" if is_ours else "theirs", ours, where, detail)

    def _of_keyword(self, keyword: str, side: Side, ours: Form, where: str, detail: str) -> Difference:
        # The types of the SDK have enums, dates and times. Constants, as in the envelope of a list, and other formats
        # are properties of the mock's responses only.
        is_constant = keyword == "enum" and ours.get("const")
        is_text = keyword == "format" and not ours.get(keyword, set()) & {'"date"', '"date-time"'}
        if self._direction == "response" and (is_constant or is_text):
            return Difference("mock differs", where, detail)
        return self._accepted_by(side, where, detail)

    def _compare_properties(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get("properties", {}), theirs.get("properties", {})
        our_required, their_required = ours.get("required", set()), theirs.get("required", set())
        for name in dict.fromkeys([*one, *other, *sorted(our_required | their_required)]):
            at = f"{where}.{name}"
            if name not in other and name not in their_required:
                yield Difference("breaking", at, "The contract does not have this field.")
            elif name not in one and name not in our_required:
                if self._direction == "request" and name in their_required:
                    yield Difference("breaking", at, "The contract requires this new field.")
                else:
                    yield Difference("added", at, "The contract has this new field.")
            else:
                if name in our_required ^ their_required:
                    side: Side = "ours" if name in their_required else "theirs"
                    verbs = ("requires", "do not") if side == "ours" else ("does not require", "do")
                    detail = "required: the contract {} this field, SDK and mock {}".format(*verbs)
                    yield self._accepted_by(side, at, detail)
                yield from self.compare(one.get(name, {}), other.get(name, {}), at)

    def _compare_further(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get("additionalProperties"), theirs.get("additionalProperties")
        if isinstance(one, dict) and isinstance(other, dict):
            yield from self.compare(one, other, f"{where}.*")
        elif self._direction == "response" and one is None and other is not None and ours.get("properties"):
            # Our contract allows further fields because the SDK keeps them; the mock sends none.
            yield Difference("wording", where, "additionalProperties: the contract restricts further fields")
        elif one != other:
            side: Side = "ours" if other is False or one is None else "theirs"
            verb = "rejects" if other is False else "restricts" if side == "ours" else "accepts"
            detail = f"additionalProperties: the contract {verb} further fields"
            yield self._accepted_by(side, where, detail)

    def _accepted_by(self, side: Side, where: str, detail: str) -> Difference:
        return Difference(class_of(self._direction, side), where, detail)


def _only(ours: set[str], theirs: set[str]) -> Iterator[tuple[Side, set[str]]]:
    """Iterate over the sides that have members of their own, with these."""
    if ours - theirs:
        yield "ours", ours - theirs
    if theirs - ours:
        yield "theirs", theirs - ours


def _shown_types(types: set[str]) -> list[str]:
    if len(types) > len(KINDS):
        return ["any"]
    names = ["integer" if kind == "number" and "number" not in types else kind for kind in KINDS]
    return [name for name in names if name in types]


def _values(value: Any) -> list[str]:
    return [] if value is None else sorted(value) if isinstance(value, set) else [canonical(value)]
