"""A comparison of two schemas: its state, and the proof of each difference by a value that only one side accepts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from followup_mockserver.judge.drift.alternatives import Alternative
from followup_mockserver.judge.drift.differences import OTHER, Difference, DifferenceClass, Direction, Side, class_of
from followup_mockserver.judge.drift.samples import NoSampleError
from followup_mockserver.judge.drift.schemas import Schema, Schemas
from followup_mockserver.judge.drift.wordings import NO_EXAMPLE

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


class Comparison(ABC):
    """A comparison of two schemas, part by part.

    Attributes:
        direction: the direction of the messages.
        schemas: the schemas of both documents.
        roots: the schemas of the whole messages.
        found: the differences so far.
    """

    def __init__(self, direction: Direction, schemas: dict[Side, Schemas], roots: dict[Side, Schema]) -> None:
        self.direction: Direction = direction
        self.schemas = schemas
        self.found: list[Difference] = []
        self.roots = roots

    @abstractmethod
    def compare_part(self, schema_of: dict[Side, Schema], path: str, lift: Lift) -> None:
        """Compare a part, and the parts within it.

        Args:
            schema_of: its schema, by side.
            path: its path.
            lift: makes a whole message of a value of the part.

        Raises:
            DocumentError: the document is too large.
        """

    def accepts(self, part: Part, side: Side, value: Any) -> bool:
        """Return whether a side accepts a value of a part."""
        valid: bool = part.validators[side].is_valid(value)
        return valid

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
        self.found.append(Difference(class_=class_, where=path, detail=detail, witness=witness))
