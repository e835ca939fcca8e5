"""The differences between two contracts, and their classes."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

import attrs

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

Direction = Literal["request", "response"]
"""The direction of a message: from the client to the service, or back. A webhook has the direction of a response."""

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
        return {
            "differences": [each.to_dict() for each in self.differences],
            "breaking": len(self.of_class("breaking")),
            "mockDiffers": len(self.of_class("mock differs")),
            "added": len(self.of_class("added")),
            "wording": len(self.of_class("wording")),
        }


def class_of(direction: Direction, accepted_by: Side) -> DifferenceClass:
    """Return the class of a difference from the direction of the message and the only contract that accepts it."""
    sender: Side = "ours" if direction == "request" else "theirs"
    return "breaking" if accepted_by == sender else "mock differs"
