"""The differences between two contracts, their classes, and their texts."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import attrs

from followup_mockserver.judge.drift.alternatives import KINDS, Alternative, canonical
from followup_mockserver.judge.drift.schemas import Direction

DifferenceClass = Literal["breaking", "mock differs", "added", "wording"]
"""The class of a difference.

- ``breaking``: the service would reject a request of the SDK, or its response could hold something that the SDK does
  not decode or type.
- ``mock differs``: the SDK works, but the service accepts a request that the mock rejects, never sends a response that
  the mock sends, or sends one that the SDK decodes and the mock never sends.
- ``added``: a new operation, or a new optional part of a request or a response.
- ``wording``: a text, or a keyword that accepts the same values in another form.
"""

CLASSES: tuple[DifferenceClass, ...] = get_args(DifferenceClass)
"""All classes, the most serious first."""

Side = Literal["ours", "theirs"]
"""One of the two contracts: ``ours``, which the SDK and the mock implement, or ``theirs``, the compared document."""

SIDES: tuple[Side, Side] = ("ours", "theirs")
OTHER: dict[Side, Side] = {"ours": "theirs", "theirs": "ours"}


@attrs.frozen
class Difference:
    """One difference between the two contracts.

    Attributes:
        class_: how serious it is.
        where: the operation, and the path of the part that differs, such as
            ``POST /v1/patients request body.email``.
        detail: a sentence that names the keyword or the part, and both values.
        witness: a JSON value that only one of the two contracts accepts: a whole body, the parameters of one place by
            name, or a request; for ``added``, an example. None: no plain sample shows it.
    """

    class_: DifferenceClass
    where: str
    detail: str
    witness: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON-compatible data."""
        return {"class": self.class_, "where": self.where, "detail": self.detail, "witness": self.witness}


@attrs.frozen
class Report:
    """The result of a comparison.

    Attributes:
        differences: the differences, the most serious first.
    """

    differences: tuple[Difference, ...]

    @classmethod
    def of(cls, differences: Iterable[Difference]) -> "Report":
        """Return the report of these differences, which are in the order of the contract."""
        return cls(tuple(sorted(differences, key=lambda each: CLASSES.index(each.class_))))

    def of_class(self, class_: DifferenceClass) -> list[Difference]:
        """Return the differences of a class."""
        return [each for each in self.differences if each.class_ == class_]

    @property
    def is_compatible(self) -> bool:
        """Whether SDK and mock still fit the compared contract."""
        return not self.of_class("breaking") and not self.of_class("mock differs")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        names = ("breaking", "mockDiffers", "added", "wording")
        counts = {name: len(self.of_class(class_)) for name, class_ in zip(names, CLASSES, strict=True)}
        return {"differences": [each.to_dict() for each in self.differences], **counts}


def class_of(direction: Direction, accepted_by: Side) -> DifferenceClass:
    """Return the class of a difference from the direction of the message and the only contract that accepts it."""
    sender: Side = "ours" if direction == "request" else "theirs"
    return "breaking" if accepted_by == sender else "mock differs"


NO_EXAMPLE = "no value was found that only one of them accepts"
_LONGEST = 80


def compare_texts(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Iterate over the texts that differ in more than white space; an absent text and an empty one are the same."""
    for name in ours:
        if _normal(ours[name]) != _normal(theirs.get(name)):
            yield Difference("wording", where, f"{name}: other in the contract")


def _normal(text: Any) -> Any:
    return " ".join(text.split()) if isinstance(text, str) else text or ""


def shortened(text: str) -> str:
    """Return a text, or its beginning if it is long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def changed(name: str, ours: Iterable[str], theirs: Iterable[str]) -> str:
    """Describe what has other values in the two contracts."""
    sides = (" or ".join(dict.fromkeys(map(shortened, each))) or "none" for each in (theirs, ours))
    return "{}: {} in the contract, {} in SDK and mock".format(name, *sides)


def changed_keyword(keyword: str, ours: Iterable[Alternative], theirs: Iterable[Alternative]) -> str:
    """Describe a keyword that has other values in the two contracts."""
    return changed(keyword, *(_values(keyword, each) for each in (ours, theirs)))


def changed_type(ours: Iterable[Alternative], theirs: Iterable[Alternative]) -> str:
    """Describe a part that has other types in the two contracts."""
    return changed("type", *(_types(each) for each in (ours, theirs)))


def changed_members(side: Side, values: Sequence[Any], members: Iterable[Alternative]) -> str:
    """Describe the members of an enum, among these values that only one contract accepts; empty if there are none."""
    known = {canonical(value) for each in members for values in each.members for value in values}
    listed = ", ".join(shortened(_json(value)) for value in values if canonical(value) in known)
    return listed and f"enum: the contract {'lacks' if side == 'ours' else 'adds'} {listed}"


def _values(keyword: str, alternatives: Iterable[Alternative]) -> list[str]:
    names = ("enum", "const") if keyword == "enum" else (keyword,)
    return [_json(value) for each in alternatives for name in names for value in each.values(name)]


def _types(alternatives: Iterable[Alternative]) -> list[str]:
    kinds = {kind for each in alternatives for kind in each.kinds}
    integers = [value in ("integer", ["integer"]) for each in alternatives for value in each.values("type")]
    names = ["integer" if kind == "number" and any(integers) else kind for kind in KINDS if kind in kinds]
    return ["any"] if len(kinds) == len(KINDS) else names


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
