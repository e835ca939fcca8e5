"""The differences between two contracts, their classes, and their texts."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

import attrs

Direction = Literal["request", "response"]
"""The direction of a message: from the client to the service, or back. A webhook has the direction of a response."""

DifferenceClass = Literal["breaking", "mock differs", "added", "wording"]
"""The class of a difference.

- ``breaking``: the service would reject a request of the SDK, or its response could hold something that the SDK does
  not decode or type; also what cannot be compared.
- ``mock differs``: the SDK works, but the service accepts a request that the mock rejects, never sends a response that
  the mock sends, or sends one that the SDK decodes and the mock never sends.
- ``added``: a new operation, or a new optional part of a request or a response.
- ``wording``: a text.
"""

CLASSES: tuple[DifferenceClass, ...] = get_args(DifferenceClass)
"""All classes, the most serious first."""

Side = Literal["ours", "theirs"]
"""One of the two contracts: ``ours``, which the SDK and the mock implement, or ``theirs``, the compared document."""

NOT_COMPARED = "cannot be compared: look at it"


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

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON-compatible data; ``witness`` is always null."""
        return {"class": self.class_, "where": self.where, "detail": self.detail, "witness": None}


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


_LONGEST = 80


def compare_texts(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Iterate over the texts that differ in more than white space; an absent text and an empty one are the same."""
    for name in ours:
        if _normal(ours[name]) != _normal(theirs.get(name)):
            yield Difference("wording", where, f"{name}: other in the contract")


def _normal(text: Any) -> Any:
    return " ".join(text.split()) if isinstance(text, str) else text or ""


def canonical(value: Any) -> str:
    """Return a text that is the same for equal JSON values, and distinguishes true from 1; sets are lists."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=sorted)


def changed(name: str, ours: Iterable[str], theirs: Iterable[str]) -> str:
    """Describe what has other values in the two contracts."""
    sides = (" or ".join(map(shortened, each)) or "none" for each in (theirs, ours))
    return "{}: {} in the contract, {} in SDK and mock".format(name, *sides)


def shortened(text: str) -> str:
    """Return a text, or its beginning if it is long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
