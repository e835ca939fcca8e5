"""Collections: the objects of one resource in order of arrival, with an index for every filter.

Each object gets the next number when it is added. An index maps a key to the sorted numbers of the objects that have
that key, so a page is a slice of them, whatever the size of the collection.
"""

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from followup_mockserver.state.copies import shallow_copier

Key = Hashable

_BLOCK = 1024
"""How many consecutive arrival numbers make a block, for which a range stores its lowest and its highest value."""


class Stored(Protocol):
    """An object that a collection can hold: it has an id."""

    id: str


S = TypeVar("S", bound=Stored)


class PageResult(NamedTuple, Generic[S]):
    """A page of objects, and whether more objects follow in the direction of the query."""

    items: list[S]
    has_more: bool


class UnknownCursor(LookupError):
    """The collection has no object with the id of the cursor."""


Bounds = tuple[Any, Any]
"""The lower bound (inclusive) and the upper bound (exclusive); None for no bound."""


def attributes(*names: str) -> dict[str, Callable[[Any], Any]]:
    """Return indexes or ranges over the attributes with these names, each named like its attribute."""
    return {name: attrgetter(name) for name in names}


class _Index(Generic[S]):
    """An index from a key to the arrival numbers of the objects that have it, in ascending order.

    Most keys belong to one object. Its number is stored without a list, which saves a quarter of a patient's memory.
    """

    __slots__ = ("_numbers", "key_of")

    def __init__(self, key_of: Callable[[S], Key]) -> None:
        self.key_of = key_of
        self._numbers: dict[Key, int | list[int]] = {}

    def copy(self) -> "_Index[S]":
        """Return an independent index."""
        twin: _Index[S] = _Index(self.key_of)
        twin._numbers = {
            key: numbers.copy() if type(numbers) is list else numbers for key, numbers in self._numbers.items()
        }
        return twin

    def add(self, key: Key, number: int) -> None:
        """Add a number to a key. A key that is None is not indexed."""
        if key is None:
            return
        numbers = self._numbers.setdefault(key, number)
        if isinstance(numbers, list):
            insort(numbers, number)
        elif numbers != number:
            self._numbers[key] = sorted((numbers, number))

    def remove(self, key: Key, number: int) -> None:
        """Remove a number from a key."""
        if key is None:
            return
        numbers = self._numbers[key]
        if isinstance(numbers, list):
            _remove(numbers, number)
        if not isinstance(numbers, list) or not numbers:
            del self._numbers[key]

    def numbers(self, key: Key) -> Sequence[int]:
        """Return the numbers of a key."""
        numbers = self._numbers.get(key, ())
        return (numbers,) if isinstance(numbers, int) else numbers


class _Range(Generic[S]):
    """Arrival numbers, sorted by a value that has an order, such as a time.

    Times often increase with arrival, so whole blocks of neighbours are out of bounds, and a query skips them by their
    lowest and highest value. A removal does not update these two: a needless search costs less than finding them again.
    """

    __slots__ = ("_entries", "_extremes", "value_of")

    def __init__(self, value_of: Callable[[S], Any]) -> None:
        self.value_of = value_of
        self._entries: list[tuple[Any, int]] = []
        self._extremes: dict[int, tuple[Any, Any]] = {}

    def copy(self) -> "_Range[S]":
        """Return an independent range."""
        twin: _Range[S] = _Range(self.value_of)
        twin._entries = self._entries.copy()
        twin._extremes = self._extremes.copy()
        return twin

    def add(self, value: Any, number: int) -> None:
        """Add a number with its value."""
        insort(self._entries, (value, number))
        block = number // _BLOCK
        lowest, highest = self._extremes.get(block, (value, value))
        self._extremes[block] = (min(lowest, value), max(highest, value))

    def remove(self, value: Any, number: int) -> None:
        """Remove a number with its value."""
        _remove(self._entries, (value, number))

    def positions(self, low: Any, high: Any) -> tuple[int, int]:
        """Return the positions of the first value in these bounds and of the first beyond them."""
        start = 0 if low is None else bisect_left(self._entries, low, key=itemgetter(0))
        stop = len(self._entries) if high is None else bisect_left(self._entries, high, key=itemgetter(0))
        return start, max(start, stop)

    def may_hold(self, block: int, low: Any, high: Any) -> bool:
        """Return whether a block may have a value in these bounds."""
        lowest, highest = self._extremes[block]
        return (low is None or highest >= low) and (high is None or lowest < high)

    def numbers_between(self, start: int, stop: int) -> Iterator[int]:
        """Iterate over the numbers at these positions, in order of value."""
        return map(itemgetter(1), self._entries[start:stop])


def _remove(ascending: list[Any], item: Any) -> None:
    del ascending[bisect_left(ascending, item)]


def _beyond(numbers: Sequence[int], cursor: int | None, backwards: bool) -> Iterator[int]:
    """Iterate over the numbers beyond the cursor: ascending if backwards (towards newer objects), else descending."""
    if backwards:
        start = 0 if cursor is None else bisect_right(numbers, cursor)
        return map(numbers.__getitem__, range(start, len(numbers)))
    stop = len(numbers) if cursor is None else bisect_left(numbers, cursor)
    return map(numbers.__getitem__, range(stop - 1, -1, -1))


class Collection(Generic[S]):
    """The objects of one resource.

    Args:
        indexes: functions that return the key of an object, by filter name. An object whose key is None is not indexed.
        ranges: functions that return a value that has an order, by filter name.
    """

    def __init__(
        self,
        indexes: Mapping[str, Callable[[S], Key]] | None = None,
        ranges: Mapping[str, Callable[[S], Any]] | None = None,
    ) -> None:
        self._indexes = {name: _Index(key_of) for name, key_of in (indexes or {}).items()}
        self._ranges = {name: _Range(value_of) for name, value_of in (ranges or {}).items()}
        self._arrived = 0
        self._number_of: dict[str, int] = {}
        self._objects: dict[int, S] = {}
        self._all: list[int] = []

    def copy(self) -> "Collection[S]":
        """Return an independent collection.

        The objects are copied, and the values of their fields are shared: ``update`` replaces such values and never
        changes them in place. Indexes are copied, not built again.
        """
        twin: Collection[S] = Collection()
        twin._indexes = {name: index.copy() for name, index in self._indexes.items()}
        twin._ranges = {name: order.copy() for name, order in self._ranges.items()}
        twin._arrived = self._arrived
        twin._number_of = self._number_of.copy()
        twin._objects = {number: shallow_copier(type(obj))(obj) for number, obj in self._objects.items()}
        twin._all = self._all.copy()
        return twin

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[S]:
        """Iterate over all objects, oldest first."""
        return iter(list(self._objects.values()))

    def __contains__(self, id: str) -> bool:
        return id in self._number_of

    def get(self, id: str) -> S | None:
        """Return the object with this id; None if there is none."""
        number = self._number_of.get(id)
        return None if number is None else self._objects[number]

    def add(self, obj: S) -> None:
        """Add an object."""
        self._arrived = number = self._arrived + 1
        self._number_of[obj.id] = number
        self._objects[number] = obj
        self._all.append(number)
        for index in self._indexes.values():
            index.add(index.key_of(obj), number)
        for order in self._ranges.values():
            order.add(order.value_of(obj), number)

    def remove(self, id: str) -> None:
        """Remove the object with this id."""
        number = self._number_of.pop(id)
        obj = self._objects.pop(number)
        _remove(self._all, number)
        for index in self._indexes.values():
            index.remove(index.key_of(obj), number)
        for order in self._ranges.values():
            order.remove(order.value_of(obj), number)

    def update(self, obj: S, **changes: Any) -> None:
        """Change attributes of an object, and update the indexes. An object must not be changed in any other way."""
        number = self._number_of[obj.id]
        keys = [(index, index.key_of(obj)) for index in self._indexes.values()]
        values = [(order, order.value_of(obj)) for order in self._ranges.values()]
        for name, value in changes.items():
            setattr(obj, name, value)
        for index, key in keys:
            if (new_key := index.key_of(obj)) != key:
                index.remove(key, number)
                index.add(new_key, number)
        for order, value in values:
            if (new_value := order.value_of(obj)) != value:
                order.remove(value, number)
                order.add(new_value, number)

    def find(self, index: str, key: Key) -> S | None:
        """Return the newest object with a key; None if there is none."""
        numbers = self._indexes[index].numbers(key)
        return self._objects[numbers[-1]] if numbers else None

    def find_all(self, index: str, key: Key) -> list[S]:
        """Return the objects with a key, oldest first."""
        return [self._objects[number] for number in self._indexes[index].numbers(key)]

    def count(self, index: str, key: Key) -> int:
        """Return the number of objects with a key."""
        return len(self._indexes[index].numbers(key))

    def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        before: str | None = None,
        where: Mapping[str, Key] | None = None,
        between: Mapping[str, Bounds] | None = None,
    ) -> PageResult[S]:
        """Return a page of objects, newest first.

        Args:
            limit: largest number of objects in the page.
            after: id of an object; the page has the objects that follow it in the list, which are older.
            before: id of an object; the page has the nearest objects that precede it, which are newer.
            where: keys by index name.
            between: bounds by range name.

        Raises:
            UnknownCursor: the collection has no object with the id ``after`` or ``before``.
        """
        backwards = before is not None
        cursor = self._cursor(before if backwards else after)
        numbers = self._select(cursor, backwards, where or {}, between or {}, limit + 1)
        found = [self._objects[number] for number in numbers]
        more = len(found) > limit
        found = found[:limit]
        return PageResult(found[::-1] if backwards else found, more)

    def _cursor(self, id: str | None) -> int | None:
        if id is None:
            return None
        if id not in self._number_of:
            raise UnknownCursor(id)
        return self._number_of[id]

    def _select(
        self,
        cursor: int | None,
        backwards: bool,
        where: Mapping[str, Key],
        between: Mapping[str, Bounds],
        wanted: int,
    ) -> list[int]:
        """Return the numbers nearest to the cursor that match every filter."""
        candidates: Sequence[int] = self._all
        for name, key in where.items():
            numbers = self._indexes[name].numbers(key)
            if len(numbers) < len(candidates):
                candidates = numbers
        selective = self._selective_range(between, len(candidates), wanted)
        if selective is not None:
            return self._select_from_range(selective, cursor, backwards, where, between, wanted)
        found: list[int] = []
        for number in self._skipping_blocks(candidates, cursor, backwards, between):
            if self._matches(self._objects[number], where, between):
                found.append(number)
                if len(found) == wanted:
                    break
        return found

    def _skipping_blocks(
        self, numbers: Sequence[int], cursor: int | None, backwards: bool, between: Mapping[str, Bounds]
    ) -> Iterator[int]:
        """Iterate over the numbers beyond the cursor, without the blocks that are out of bounds."""
        if not between:
            yield from _beyond(numbers, cursor, backwards)
            return
        current: int | None = None
        remaining = _beyond(numbers, cursor, backwards)
        while (number := next(remaining, None)) is not None:
            block = number // _BLOCK
            if block != current:
                if not self._may_hold(block, between):
                    far_end = (block + 1) * _BLOCK - 1 if backwards else block * _BLOCK
                    remaining = _beyond(numbers, far_end, backwards)
                    continue
                current = block
            yield number

    def _may_hold(self, block: int, between: Mapping[str, Bounds]) -> bool:
        return all(self._ranges[name].may_hold(block, low, high) for name, (low, high) in between.items())

    def _selective_range(
        self, between: Mapping[str, Bounds], candidates: int, wanted: int
    ) -> tuple[_Range[S], int, int] | None:
        """Return a range with so few matches that sorting them costs less than filtering the candidates, if any."""
        for name, (low, high) in between.items():
            start, stop = self._ranges[name].positions(low, high)
            matching = stop - start
            if matching * matching <= wanted * candidates:
                return self._ranges[name], start, stop
        return None

    def _select_from_range(
        self,
        selective: tuple[_Range[S], int, int],
        cursor: int | None,
        backwards: bool,
        where: Mapping[str, Key],
        between: Mapping[str, Bounds],
        wanted: int,
    ) -> list[int]:
        order, start, stop = selective
        matching = (
            number
            for number in order.numbers_between(start, stop)
            if (cursor is None or (number > cursor if backwards else number < cursor))
            and self._matches(self._objects[number], where, between)
        )
        return heapq.nsmallest(wanted, matching) if backwards else heapq.nlargest(wanted, matching)

    def _matches(self, obj: S, where: Mapping[str, Key], between: Mapping[str, Bounds]) -> bool:
        return all(self._indexes[name].key_of(obj) == key for name, key in where.items()) and all(
            (low is None or value >= low) and (high is None or value < high)
            for name, (low, high) in between.items()
            for value in (self._ranges[name].value_of(obj),)
        )
