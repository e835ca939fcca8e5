"""The objects of one resource, in order of arrival, with an index behind every filter.

Each object gets a running number when it arrives. An index maps a key to the numbers of the objects that have it,
sorted, so that a page is a slice between two positions, whatever the size of the collection.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from sortedcontainers import SortedKeyList, SortedList


class Stored(Protocol):
    """What is kept here: something with an id."""

    id: str


S = TypeVar("S", bound=Stored)
Key = Hashable
Numbers = Any
"""A SortedList of arrival numbers; a library without types."""

_BLOCK = 1024
"""Arrival numbers that share one record of the lowest and the highest value of a range."""


class PageResult(NamedTuple, Generic[S]):
    """A page of objects, and whether there are more in the direction of travel."""

    items: list[S]
    has_more: bool


class UnknownCursor(LookupError):
    """The object that a page should begin after, or end before, is not in the collection."""


class _Index(Generic[S]):
    """Key to arrival numbers. A key that one object alone has, as most do, costs no list."""

    __slots__ = ("_numbers", "key_of")

    def __init__(self, key_of: Callable[[S], Key]) -> None:
        self.key_of = key_of
        self._numbers: dict[Key, Any] = {}

    def add(self, key: Key, number: int) -> None:
        if key is None:
            return
        present = self._numbers.get(key)
        if present is None:
            self._numbers[key] = number
        elif isinstance(present, int):
            self._numbers[key] = SortedList((present, number))
        else:
            present.add(number)

    def remove(self, key: Key, number: int) -> None:
        if key is None:
            return
        present = self._numbers[key]
        if isinstance(present, int) or len(present) == 1:
            del self._numbers[key]
        else:
            present.remove(number)

    def newest(self, key: Key) -> int | None:
        present = self._numbers.get(key)
        return present if present is None or isinstance(present, int) else present[-1]

    def numbers(self, key: Key) -> Numbers:
        present = self._numbers.get(key, ())
        return SortedList((present,)) if isinstance(present, int) else present


class _Range(Generic[S]):
    """Arrival numbers sorted by a value that has an order, such as a time.

    Times often rise with arrival, so whole blocks of neighbours lie outside of the bounds. The extremes of each block
    let a walk pass over it in one step. They only widen: too wide costs a look, too narrow would lose objects.
    """

    __slots__ = ("_extremes", "_values", "value_of")

    def __init__(self, value_of: Callable[[S], Any]) -> None:
        self.value_of = value_of
        self._values: Any = SortedKeyList(key=lambda entry: entry[0])
        self._extremes: dict[int, tuple[Any, Any]] = {}

    def add(self, value: Any, number: int) -> None:
        self._values.add((value, number))
        block = number // _BLOCK
        lowest, highest = self._extremes.get(block, (value, value))
        self._extremes[block] = (min(lowest, value), max(highest, value))

    def remove(self, value: Any, number: int) -> None:
        self._values.remove((value, number))

    def positions(self, low: Any, high: Any) -> tuple[int, int]:
        start = 0 if low is None else self._values.bisect_key_left(low)
        return start, max(start, len(self._values) if high is None else self._values.bisect_key_left(high))

    def may_hold(self, block: int, low: Any, high: Any) -> bool:
        lowest, highest = self._extremes[block]
        return (low is None or highest >= low) and (high is None or lowest < high)

    def numbers_between(self, start: int, stop: int) -> Iterator[int]:
        return (number for _, number in self._values.islice(start, stop))


Bounds = tuple[Any, Any]
"""From this value on, and below that one; None for no bound."""


def attributes(*names: str) -> dict[str, Callable[[Any], Any]]:
    """Return indexes or ranges over the attributes with these names, each named like its attribute."""
    return {name: attrgetter(name) for name in names}


class Collection(Generic[S]):
    """The objects of one resource.

    Args:
        indexes: filter name to the key of an object. Objects without a key (None) are not found by it.
        ranges: filter name to a value that has an order.
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
        self._all: Numbers = SortedList()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[S]:
        """Every object, oldest first."""
        return iter(list(self._objects.values()))

    def __contains__(self, id: str) -> bool:
        return id in self._number_of

    def get(self, id: str) -> S | None:
        """The object with this id."""
        number = self._number_of.get(id)
        return None if number is None else self._objects[number]

    def add(self, obj: S) -> None:
        """Take in a new object."""
        self._arrived = number = self._arrived + 1
        self._number_of[obj.id] = number
        self._objects[number] = obj
        self._all.add(number)
        for index in self._indexes.values():
            index.add(index.key_of(obj), number)
        for order in self._ranges.values():
            order.add(order.value_of(obj), number)

    def remove(self, id: str) -> None:
        """Drop an object."""
        number = self._number_of.pop(id)
        obj = self._objects.pop(number)
        self._all.remove(number)
        for index in self._indexes.values():
            index.remove(index.key_of(obj), number)
        for order in self._ranges.values():
            order.remove(order.value_of(obj), number)

    def update(self, obj: S, **changes: Any) -> None:
        """Change attributes of an object; the only way that keeps the indexes true."""
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
        """The newest object with this key."""
        number = self._indexes[index].newest(key)
        return None if number is None else self._objects[number]

    def find_all(self, index: str, key: Key) -> list[S]:
        """Every object with this key, oldest first."""
        return [self._objects[number] for number in self._indexes[index].numbers(key)]

    def count(self, index: str, key: Key) -> int:
        """How many objects have this key."""
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
            limit: how many, at most.
            after: id of an object; gives those that follow it in the list, which are older.
            before: id of an object; gives the nearest that precede it, which are newer.
            where: index name to key.
            between: range name to bounds.

        Raises:
            UnknownCursor: there is no such object.
        """
        backwards = before is not None
        cursor = self._cursor(before if backwards else after)
        numbers = self._walk(cursor, backwards, where or {}, between or {}, limit + 1)
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

    def _walk(
        self,
        cursor: int | None,
        backwards: bool,
        where: Mapping[str, Key],
        between: Mapping[str, Bounds],
        wanted: int,
    ) -> list[int]:
        """The first numbers that pass every filter, going away from the cursor."""
        candidates = self._all
        for name, key in where.items():
            numbers = self._indexes[name].numbers(key)
            if len(numbers) < len(candidates):
                candidates = numbers
        narrow = self._narrow_range(between, len(candidates), wanted)
        if narrow is not None:
            return self._from_range(narrow, cursor, backwards, where, between, wanted)
        found: list[int] = []
        for number in self._worth_a_look(candidates, cursor, backwards, between):
            if self._passes(self._objects[number], where, between):
                found.append(number)
                if len(found) == wanted:
                    break
        return found

    def _worth_a_look(
        self, numbers: Numbers, cursor: int | None, backwards: bool, between: Mapping[str, Bounds]
    ) -> Iterator[int]:
        """The numbers beyond the cursor, without the blocks in which nothing is within the bounds."""
        if not between:
            yield from _away_from(numbers, cursor, backwards)
            return
        looking_at: int | None = None
        walk = _away_from(numbers, cursor, backwards)
        while (number := next(walk, None)) is not None:
            block = number // _BLOCK
            if block != looking_at:
                if not self._may_hold(block, between):
                    far_end = (block + 1) * _BLOCK - 1 if backwards else block * _BLOCK
                    walk = _away_from(numbers, far_end, backwards)
                    continue
                looking_at = block
            yield number

    def _may_hold(self, block: int, between: Mapping[str, Bounds]) -> bool:
        return all(self._ranges[name].may_hold(block, low, high) for name, (low, high) in between.items())

    def _narrow_range(
        self, between: Mapping[str, Bounds], candidates: int, wanted: int
    ) -> tuple[_Range[S], int, int] | None:
        """The range that is cheaper to collect whole than the candidates are to walk until enough match."""
        for name, (low, high) in between.items():
            start, stop = self._ranges[name].positions(low, high)
            matching = stop - start
            if matching * matching <= wanted * candidates:
                return self._ranges[name], start, stop
        return None

    def _from_range(
        self,
        narrow: tuple[_Range[S], int, int],
        cursor: int | None,
        backwards: bool,
        where: Mapping[str, Key],
        between: Mapping[str, Bounds],
        wanted: int,
    ) -> list[int]:
        order, start, stop = narrow
        matching = (
            number
            for number in order.numbers_between(start, stop)
            if (cursor is None or (number > cursor if backwards else number < cursor))
            and self._passes(self._objects[number], where, between)
        )
        return heapq.nsmallest(wanted, matching) if backwards else heapq.nlargest(wanted, matching)

    def _passes(self, obj: S, where: Mapping[str, Key], between: Mapping[str, Bounds]) -> bool:
        return all(self._indexes[name].key_of(obj) == key for name, key in where.items()) and all(
            (low is None or value >= low) and (high is None or value < high)
            for name, (low, high) in between.items()
            for value in (self._ranges[name].value_of(obj),)
        )


def _away_from(numbers: Numbers, cursor: int | None, backwards: bool) -> Iterator[int]:
    """The numbers beyond the cursor: rising if backwards (towards newer objects), else falling."""
    if not numbers:
        return iter(())
    if backwards:
        return iter(numbers.irange(cursor, None, inclusive=(False, False)))
    return iter(numbers.irange(None, cursor, inclusive=(False, False), reverse=True))
