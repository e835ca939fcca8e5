"""Collections: the objects of one resource in order of arrival, with an index for every filter; and the ids of objects.

Each object gets the next number when it is added. An index maps a key to the sorted numbers of the objects that have
that key, so a page is a slice of them, whatever the size of the collection.
"""

import copy
import hashlib
import itertools
import secrets
import string
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar

import attrs

from followup._for_mockserver import Limits
from followup_mockserver.world.schema.errors import integer, optional, validator
from followup_mockserver.world.schema.shapes import LARGEST_INTEGER

Key = Hashable


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
    """Return indexes over the attributes with these names, each named like its attribute."""
    return {name: attrgetter(name) for name in names}


def _remove(ascending: list[Any], item: Any) -> None:
    del ascending[bisect_left(ascending, item)]


def _beyond(numbers: Sequence[int], cursor: int | None, backwards: bool) -> Iterator[int]:
    """Iterate over the numbers beyond the cursor: ascending if backwards (towards newer objects), else descending."""
    # Lazily: a slice would copy all numbers for each page.
    if backwards:
        start = 0 if cursor is None else bisect_right(numbers, cursor)
        return map(numbers.__getitem__, range(start, len(numbers)))
    stop = len(numbers) if cursor is None else bisect_left(numbers, cursor)
    return map(numbers.__getitem__, range(stop - 1, -1, -1))


class Collection(Generic[S]):
    """The objects of one resource.

    Args:
        indexes: functions that return the key of an object, by filter name. An object whose key is None is not indexed.
    """

    def __init__(self, indexes: Mapping[str, Callable[[S], Key]] | None = None) -> None:
        self._key_of = {**(indexes or {})}
        # By index and key: the numbers of the objects, in ascending order.
        self._numbers: dict[str, dict[Key, list[int]]] = {name: {} for name in self._key_of}
        self._arrived = 0
        self._number_of: dict[str, int] = {}
        self._objects: dict[int, S] = {}
        self._all: list[int] = []

    def copy(self) -> "Collection[S]":
        """Return an independent collection.

        The objects are copied, and the values of their fields are shared: ``update`` replaces such values and never
        changes them in place. Indexes are copied, not built again.
        """
        twin: Collection[S] = Collection(self._key_of)
        for name, numbers_of in self._numbers.items():
            twin._numbers[name] = {key: numbers.copy() for key, numbers in numbers_of.items()}
        twin._arrived = self._arrived
        twin._number_of = self._number_of.copy()
        twin._objects = {number: copy.copy(obj) for number, obj in self._objects.items()}
        twin._all = self._all.copy()
        return twin

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[S]:
        """Iterate over all objects, oldest first."""
        # A copy, because callers add and remove objects while they iterate.
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
        for name, key_of in self._key_of.items():
            self._index(name, key_of(obj), number)

    def remove(self, id: str) -> None:
        """Remove the object with this id."""
        number = self._number_of.pop(id)
        obj = self._objects.pop(number)
        _remove(self._all, number)
        for name, key_of in self._key_of.items():
            self._unindex(name, key_of(obj), number)

    def update(self, obj: S, **changes: Any) -> None:
        """Change attributes of an object, and update the indexes. An object must not be changed in any other way."""
        number = self._number_of[obj.id]
        before = {name: key_of(obj) for name, key_of in self._key_of.items()}
        for name, value in changes.items():
            setattr(obj, name, value)
        for name, key in before.items():
            if (new_key := self._key_of[name](obj)) != key:
                self._unindex(name, key, number)
                self._index(name, new_key, number)

    def _index(self, name: str, key: Key, number: int) -> None:
        if key is not None:
            insort(self._numbers[name].setdefault(key, []), number)

    def _unindex(self, name: str, key: Key, number: int) -> None:
        if key is not None:
            _remove(self._numbers[name][key], number)
            if not self._numbers[name][key]:
                del self._numbers[name][key]

    def _numbers_with(self, index: str, key: Key) -> Sequence[int]:
        return self._numbers[index].get(key, ())

    def find(self, index: str, key: Key) -> S | None:
        """Return the newest object with a key; None if there is none."""
        numbers = self._numbers_with(index, key)
        return self._objects[numbers[-1]] if numbers else None

    def find_first(self, values: Mapping[str, Any], indexes: Iterable[str]) -> S | None:
        """Return the newest object with the first of several keys that has one; None if none has."""
        for index in indexes:
            if (key := values.get(index)) is not None and (found := self.find(index, key)) is not None:
                return found
        return None

    def find_all(self, index: str, key: Key) -> list[S]:
        """Return the objects with a key, oldest first."""
        return [self._objects[number] for number in self._numbers_with(index, key)]

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
            between: bounds by the name of an attribute, which every object has.

        Raises:
            UnknownCursor: the collection has no object with the id ``after`` or ``before``.
        """
        backwards, where, between = before is not None, where or {}, between or {}
        cursor_id = before if backwards else after
        if cursor_id is not None and cursor_id not in self._number_of:
            raise UnknownCursor(cursor_id)
        cursor = None if cursor_id is None else self._number_of[cursor_id]
        # The shortest of the lists that have all matches: few objects are looked at, whatever the filters are.
        candidates = min((self._all, *itertools.starmap(self._numbers_with, where.items())), key=len)
        objects = map(self._objects.__getitem__, _beyond(candidates, cursor, backwards))
        matches = (obj for obj in objects if self._matches(obj, where, between))
        # One more shows whether others follow, without counting them.
        found = [*itertools.islice(matches, limit + 1)]
        page = found[:limit]
        return PageResult(page[::-1] if backwards else page, len(found) > limit)

    def _matches(self, obj: S, where: Mapping[str, Key], between: Mapping[str, Bounds]) -> bool:
        return all(self._key_of[name](obj) == key for name, key in where.items()) and all(
            (low is None or getattr(obj, name) >= low) and (high is None or getattr(obj, name) < high)
            for name, (low, high) in between.items()
        )


ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_LENGTH = 24
"""Characters of an id after its prefix."""


@attrs.define(eq=False, repr=False)
class IdFactory:
    """Generates the ids of one organization.

    With a seed, an id depends on the seed, the organization, the prefix and the number of ids with that prefix so far:
    two runs of the same calls produce the same ids, and one more patient does not change the ids of appointments.

    Attributes:
        seed: the seed, a whole number of any size; None: ids come from the operating system's random source.
        organization: id of the organization that the ids depend on.
        counts: number of ids with each prefix so far; without a seed, they are not counted.
    """

    seed: Any = attrs.field(validator=validator(optional(integer())))
    organization: str
    counts: dict[str, Annotated[int, Limits(0, LARGEST_INTEGER)]] = attrs.field(factory=dict)

    def copy(self) -> "IdFactory":
        """Return an independent factory, which with a seed generates the same ids from now on."""
        return IdFactory(self.seed, self.organization, self.counts.copy())

    def new(self, prefix: str) -> str:
        """Return a new id: the prefix and 24 base-62 characters."""
        if self.seed is None:
            return prefix + _base62(secrets.randbelow(len(ALPHABET) ** ID_LENGTH))
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        source = f"{self.seed}/{self.organization}/{prefix}/{self.counts[prefix]}"
        return prefix + _base62(int.from_bytes(hashlib.sha256(source.encode()).digest()))


def _base62(number: int) -> str:
    # The lowest 24 digits, which are 143 of the 256 bits of a digest.
    digits = []
    for _ in range(ID_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(digits)
