"""Compares the messages of two operations, and remembers the results: many responses share one schema."""

from collections.abc import Iterator

import attrs

from followup_mockserver.judge.drift.alternatives import canonical
from followup_mockserver.judge.drift.contracts import Contract
from followup_mockserver.judge.drift.differences import Difference, Direction
from followup_mockserver.judge.drift.schema_comparison import Message, compare_schemas
from followup_mockserver.judge.drift.schemas import Schema


class Comparer:
    """Compares schemas of two contracts.

    Args:
        ours: the contract that SDK and mock implement.
        theirs: the compared contract.
    """

    def __init__(self, ours: Contract, theirs: Contract) -> None:
        self._ours = ours
        self._theirs = theirs
        self._known: dict[tuple[Direction, str, str], list[Difference]] = {}

    def compare(self, direction: Direction, ours: Schema, theirs: Schema, where: str) -> Iterator[Difference]:
        """Iterate over the differences of two schemas, each of its own contract.

        Raises:
            DocumentError: a schema is invalid or too large.
        """
        key = (direction, canonical(ours), canonical(theirs))
        if key not in self._known:
            our_schemas, their_schemas = (
                each.requests if direction == "request" else each.responses for each in (self._ours, self._theirs)
            )
            self._known[key] = compare_schemas(direction, Message(ours, our_schemas), Message(theirs, their_schemas))
        yield from (attrs.evolve(each, where=where + each.where) for each in self._known[key])
