"""The indexes of a collection: from a key, or from a value that has an order, to arrival numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from sortedcontainers import SortedKeyList, SortedList

S = TypeVar("S")
Key = Hashable
Numbers = Any
"""Arrival numbers in ascending order: a tuple or a ``SortedList``. The library has no types."""

_FEW = 16
"""The maximum of arrival numbers that an index stores as a tuple."""

BLOCK = 1024
"""How many consecutive arrival numbers make a block, for which a range stores its lowest and its highest value."""


class Index(Generic[S]):
    """An index from a key to arrival numbers.

    Most keys belong to one object or to a few; their numbers are stored without a list, so that the index is small and
    copied quickly.
    """

    __slots__ = ("_numbers", "key_of")

    def __init__(self, key_of: Callable[[S], Key]) -> None:
        self.key_of = key_of
        self._numbers: dict[Key, Any] = {}
        """A number, an ascending tuple of a few numbers, or a ``SortedList``."""

    def copy(self) -> "Index[S]":
        """Return an independent index."""
        twin: Index[S] = Index(self.key_of)
        twin._numbers = {
            key: present.copy() if type(present) is SortedList else present for key, present in self._numbers.items()
        }
        return twin

    def add(self, key: Key, number: int) -> None:
        """Add a number to a key. A key that is None is not indexed."""
        if key is None:
            return
        present = self._numbers.get(key)
        if present is None:
            self._numbers[key] = number
        elif isinstance(present, int):
            self._numbers[key] = (present, number) if present < number else (number, present)
        elif type(present) is not tuple:
            present.add(number)
        else:
            numbers = sorted((*present, number))
            self._numbers[key] = tuple(numbers) if len(numbers) <= _FEW else SortedList(numbers)

    def remove(self, key: Key, number: int) -> None:
        """Remove a number from a key."""
        if key is None:
            return
        present = self._numbers[key]
        if isinstance(present, int) or len(present) == 1:
            del self._numbers[key]
        elif type(present) is tuple:
            self._numbers[key] = tuple(each for each in present if each != number)
        else:
            present.remove(number)

    def newest(self, key: Key) -> int | None:
        """Return the highest number of a key; None if it has none."""
        present = self._numbers.get(key)
        return present if present is None or isinstance(present, int) else present[-1]

    def numbers(self, key: Key) -> Sequence[int]:
        """Return the numbers of a key, in ascending order."""
        present = self._numbers.get(key, ())
        return (present,) if isinstance(present, int) else present


class Range(Generic[S]):
    """Arrival numbers, sorted by a value that has an order, such as a time.

    Times often increase with arrival, so whole blocks of neighbours are out of bounds, and a query skips them by their
    lowest and highest value. A removal does not update these two: a needless search costs less than finding them again.
    """

    __slots__ = ("_extremes", "_values", "value_of")

    def __init__(self, value_of: Callable[[S], Any]) -> None:
        self.value_of = value_of
        self._values: Any = SortedKeyList(key=lambda entry: entry[0])
        self._extremes: dict[int, tuple[Any, Any]] = {}

    def copy(self) -> "Range[S]":
        """Return an independent range."""
        twin: Range[S] = Range(self.value_of)
        twin._values = self._values.copy()
        twin._extremes = self._extremes.copy()
        return twin

    def add(self, value: Any, number: int) -> None:
        """Add a number with its value."""
        self._values.add((value, number))
        block = number // BLOCK
        lowest, highest = self._extremes.get(block, (value, value))
        self._extremes[block] = (min(lowest, value), max(highest, value))

    def remove(self, value: Any, number: int) -> None:
        """Remove a number with its value."""
        self._values.remove((value, number))

    def positions(self, low: Any, high: Any) -> tuple[int, int]:
        """Return the positions of the first value in these bounds and of the first beyond them."""
        start = 0 if low is None else self._values.bisect_key_left(low)
        return start, max(start, len(self._values) if high is None else self._values.bisect_key_left(high))

    def may_hold(self, block: int, low: Any, high: Any) -> bool:
        """Return whether a block may have a value in these bounds."""
        lowest, highest = self._extremes[block]
        return (low is None or highest >= low) and (high is None or lowest < high)

    def numbers_between(self, start: int, stop: int) -> Iterator[int]:
        """Iterate over the numbers at these positions, in order of value."""
        return (number for _, number in self._values.islice(start, stop))


def beyond(numbers: Numbers, cursor: int | None, backwards: bool) -> Iterator[int]:
    """Iterate over the numbers beyond the cursor: ascending if backwards (towards newer objects), else descending."""
    if not numbers:
        return iter(())
    if type(numbers) is tuple:
        if backwards:
            return iter(numbers[0 if cursor is None else bisect_right(numbers, cursor) :])
        return reversed(numbers[: None if cursor is None else bisect_left(numbers, cursor)])
    if backwards:
        return iter(numbers.irange(cursor, None, inclusive=(False, False)))
    return iter(numbers.irange(None, cursor, inclusive=(False, False), reverse=True))
