"""Compares two schemas, and all that is within them, keyword by keyword, with both values of what differs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from followup_mockserver.lab import contract_schemas as schemas
from followup_mockserver.lab.contract_document import Raw
from followup_mockserver.lab.contract_schemas import Direction, Form, Schemas, canonical, kinds_of, types_of

DifferenceClass = Literal["breaking", "mock differs", "added", "wording"]
"""The class of a difference.

- ``breaking``: the service would reject a request of the SDK, or its response could hold something that the SDK does
  not decode or type; also what cannot be compared.
- ``mock differs``: the SDK works, but the service accepts a request that the mock rejects, never sends a response that
  the mock sends, or sends one that the SDK decodes and the mock never sends.
- ``added``: a new operation, or a new optional part of a request or a response.
- ``wording``: a text.
"""

_NOT_COMPARED = "cannot be compared: look at it"


@attrs.frozen
class Difference:
    """One difference between the two contracts.

    Attributes:
        class_: how serious it is.
        where: the operation, and the path of the part that differs, such as
            ``POST /v1/patients request body.email``.
        detail: a sentence that names the keyword or the part, and both values.
    """

    class_: DifferenceClass
    where: str
    detail: str


_LONGEST = 80


def compare_texts(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Iterate over the texts that differ in more than white space; an absent text and an empty one are the same."""
    for name in ours:
        if _normal(ours[name]) != _normal(theirs.get(name)):
            yield Difference("wording", where, f"{name}: other in the contract")


def _normal(text: Any) -> Any:
    return " ".join(text.split()) if isinstance(text, str) else text or ""


def changed(name: str, ours: Iterable[str], theirs: Iterable[str]) -> str:
    """Describe what has other values in the two contracts."""
    sides = (" or ".join(map(_shortened, each)) or "none" for each in (theirs, ours))
    return "{}: {} in the contract, {} in SDK and mock".format(name, *sides)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Comparer:
    """Compares schemas of two contracts in one direction, equal pairs only once.

    Args:
        direction: the direction.
        ours: our contract, none of whose schemas contains itself.
        theirs: the other one.
    """

    def __init__(self, direction: Direction, ours: Raw, theirs: Raw) -> None:
        self._direction: Direction = direction
        self._ours, self._theirs = Schemas(ours, direction), Schemas(theirs, direction)
        self._known: dict[str, tuple[str, list[Difference]]] = {}

    def compare(self, ours: Any, theirs: Any, where: str) -> Iterator[Difference]:
        """Iterate over the differences of two schemas, and of all parts that both have.

        Raises:
            DocumentError: a schema is malformed.
        """
        key = canonical([ours, theirs])
        if key not in self._known:
            forms = self._ours.form(ours, where), self._theirs.form(theirs, where)
            self._known[key] = where, [*dict.fromkeys(self._compare(*forms, where))]
        first, found = self._known[key]
        yield from (attrs.evolve(each, where=where + each.where.removeprefix(first)) for each in found)

    def accepted(self, where: str, detail: str, *, by_us: bool) -> Difference:
        """Return the difference of what only one of the two contracts accepts."""
        is_sender = by_us == (self._direction == "request")
        return Difference("breaking" if is_sender else "mock differs", where, detail)

    def _compare(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = types_of(ours), types_of(theirs)
        detail = changed("type", _shown_types(one), _shown_types(other))
        yield from (self.accepted(where, detail, by_us=by_us) for by_us, _ in _only(one, other))
        yield from self._compare_texts(ours.get("texts", {}), theirs.get("texts", {}), where)
        types = one & other
        for keyword in schemas.KEYWORDS:
            if ours.get(keyword) != theirs.get(keyword) and kinds_of(keyword) & types:
                yield from self._compare_keyword(keyword, ours, theirs, where)
        if "array" in types and ("items" in ours or "items" in theirs):
            yield from self.compare(ours.get("items", True), theirs.get("items", True), f"{where}[]")
        if "object" in types:
            forms = ours.get("forms", 1), theirs.get("forms", 1)
            if self._direction == "request" and forms[1] > max(forms[0], 1):
                detail = f"The contract has {forms[1]} forms of the object, SDK and mock have {forms[0] or 1}"
                yield Difference("breaking", where, f"{detail}; {_NOT_COMPARED}")
            yield from self._compare_properties(ours, theirs, where)
            yield from self._compare_further(ours, theirs, where)

    def _compare_texts(self, ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
        yield from compare_texts({name: ours.get(name) for name in schemas.TEXTS}, theirs, where)
        defaults = ours.get("default"), theirs.get("default")
        if canonical(defaults[0]) != canonical(defaults[1]):
            is_used = self._direction == "request" and None not in defaults
            detail = changed("default", *([canonical(each)] for each in defaults))
            yield Difference("mock differs" if is_used else "wording", where, detail)

    def _compare_keyword(self, keyword: str, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one: Any = ours.get(keyword)
        other: Any = theirs.get(keyword)
        is_both = None not in (one, other)
        detail = changed(keyword, _values(one), _values(other))
        # The types of the SDK have enums, dates and times. Constants, as in the envelope of a list, and other formats
        # are properties of the mock's responses only.
        is_only_sent = self._direction == "response" and (
            ours.get("const") if keyword == "enum" else keyword == "format" and not {*(one or ())} & _TIMES
        )
        if keyword == "enum" and is_both:
            for by_us, members in _only(one, other):
                listed = ", ".join(map(_shortened, sorted(members)))
                detail = f"enum: the contract {'lacks' if by_us else 'adds'} {listed}"
                found = self.accepted(where, detail, by_us=by_us)
                yield attrs.evolve(found, class_="mock differs") if is_only_sent else found
        elif is_only_sent:
            yield Difference("mock differs", where, detail)
        elif keyword in schemas.OTHERS or (
            keyword in schemas.RESTRICTING and is_both and not (one < other or other < one)
        ):
            yield Difference("breaking", where, f"{detail}; {_NOT_COMPARED}")
        else:
            by_us = one is None or (is_both and (one > other if keyword in schemas.UPPER else one < other))
            yield self.accepted(where, detail, by_us=by_us)

    def _compare_properties(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get("properties", {}), theirs.get("properties", {})
        our_required, their_required = ours.get("required", set()), theirs.get("required", set())
        for name in dict.fromkeys([*one, *other, *sorted(our_required | their_required)]):
            at = f"{where}.{name}"
            if name not in other and name not in their_required:
                yield Difference("breaking", at, "The contract does not have this field.")
            elif name not in one and name not in our_required:
                is_demanded = self._direction == "request" and name in their_required
                detail = f"The contract {'requires' if is_demanded else 'has'} this new field."
                yield Difference("breaking" if is_demanded else "added", at, detail)
            else:
                if name in our_required ^ their_required:
                    by_us = name in their_required
                    verbs = ("requires", "do not") if by_us else ("does not require", "do")
                    detail = "required: the contract {} this field, SDK and mock {}".format(*verbs)
                    yield self.accepted(at, detail, by_us=by_us)
                yield from self.compare(one.get(name, {}), other.get(name, {}), at)

    def _compare_further(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get("additionalProperties"), theirs.get("additionalProperties")
        if isinstance(one, dict) and isinstance(other, dict):
            yield from self.compare(one, other, f"{where}.*")
        elif self._direction == "response" and one is None and other is not None and ours.get("properties"):
            # Our contract allows further fields because the SDK keeps them; the mock sends none.
            yield Difference("wording", where, "additionalProperties: the contract restricts further fields")
        elif one != other:
            by_us = other is False or one is None
            verb = "rejects" if other is False else "restricts" if by_us else "accepts"
            yield self.accepted(where, f"additionalProperties: the contract {verb} further fields", by_us=by_us)


_TIMES = {'"date"', '"date-time"'}


def _only(ours: set[str], theirs: set[str]) -> Iterator[tuple[bool, set[str]]]:
    """Iterate over the sides that have members of their own: whether it is ours, and these members."""
    if ours - theirs:
        yield True, ours - theirs
    if theirs - ours:
        yield False, theirs - ours


def _shown_types(types: set[str]) -> list[str]:
    if len(types) > len(schemas.KINDS):
        return ["any"]
    names = ["integer" if kind == "number" and "number" not in types else kind for kind in schemas.KINDS]
    return [name for name in names if name in types]


def _values(value: Any) -> list[str]:
    return [] if value is None else sorted(value) if isinstance(value, set) else [canonical(value)]
