"""Splits iterables of any length into batches, each read on demand."""

import itertools
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Return an iterator of lists of this length; the last may be shorter.

    Raises:
        TypeError: the items are not iterable; raised by the call, not by the iteration.
    """
    remaining = iter(items)
    return iter(lambda: list(itertools.islice(remaining, size)), [])


async def batches_async(items: Iterable[T] | AsyncIterable[T], size: int) -> AsyncIterator[list[T]]:
    """Yield the items in lists of this length; the last may be shorter."""
    if not isinstance(items, AsyncIterable):
        for batch in batches(items, size):
            yield batch
        return
    waiting: list[T] = []
    async for item in items:
        waiting.append(item)
        if len(waiting) == size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
