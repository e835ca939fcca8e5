"""Pages of a list, in both directions, that fetch what follows when it is asked for (specification, section 4).

A page keeps the order of the wire, newest first. Iteration moves steadily away from the cursor: going forward each
item is older than the one before, with ``ending_before`` each one is newer.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any, Generic, TypeVar

import attrs

from followup._call import Call
from followup._codec.decode import decode
from followup._errors import PaginationError
from followup._redaction import redacted
from followup._results import Model, ResponseInfo, Result

T = TypeVar("T", bound=Model)


@attrs.define(kw_only=True)
class Envelope(Result, Generic[T]):
    """The list envelope (specification, section 2)."""

    object: str = "list"
    data: list[T]
    has_more: bool
    url: str = ""


def decode_envelope(item_type: type[T], raw: Any) -> Envelope[T]:
    """Return the envelope of a list response, its items decoded.

    Raises:
        WireError: it is not the list of the contract.
    """
    return decode(Envelope[item_type], raw)  # type: ignore[valid-type]


@attrs.frozen(kw_only=True)
class Travel:
    """Where a walk through a list is: enough to see that it goes in a circle, without keeping every cursor.

    The checkpoint is a cursor met earlier, moved up after 1, 2, 4, 8, ... pages (Brent's cycle detection), so that a
    circle of any length is noticed.
    """

    checkpoint: str | None
    pages: int = 1
    lap: int = 1

    def advance(self, cursor: str) -> "Travel | None":
        """The walk one page further; None when it has been at this cursor before."""
        if cursor == self.checkpoint:
            return None
        if self.pages == self.lap:
            return Travel(checkpoint=cursor, pages=1, lap=self.lap * 2)
        return attrs.evolve(self, pages=self.pages + 1)


@attrs.frozen(kw_only=True)
class Listing(Generic[T]):
    """A list call that can be made again from another cursor."""

    call_from: Callable[[str | None], Call[Envelope[T]]] = attrs.field(repr=False)
    operation: str
    cursor: str | None
    backwards: bool
    travel: Travel

    @classmethod
    def start(
        cls, operation: str, call_from: Callable[[str | None], Call[Envelope[T]]], cursor: str | None, backwards: bool
    ) -> "Listing[T]":
        return cls(
            operation=operation,
            call_from=call_from,
            cursor=cursor,
            backwards=backwards,
            travel=Travel(checkpoint=cursor),
        )

    @property
    def call(self) -> Call[Envelope[T]]:
        return self.call_from(self.cursor)

    def after(self, envelope: Envelope[T]) -> "Listing[T] | None":
        """The listing of the page that follows this one; None after the last.

        Raises:
            PaginationError: the service promises more and gives no way to get it.
        """
        if not envelope.has_more:
            return None
        if not envelope.data:
            if self.backwards:
                return None
            raise PaginationError(
                f"{self.operation}: a page without items says that more follow; there is no cursor to follow",
                operation=self.operation,
                was_sent="yes",
                attempts=1,
            )
        cursor = _id_of(envelope.data[0] if self.backwards else envelope.data[-1])
        travel = None if cursor is None or cursor == self.cursor else self.travel.advance(cursor)
        if travel is None:
            raise PaginationError(
                f"{self.operation}: the cursor does not move: the service sent a page that was there before",
                operation=self.operation,
                was_sent="yes",
                attempts=1,
            )
        return attrs.evolve(self, cursor=cursor, travel=travel)


def _id_of(item: Model) -> str | None:
    return getattr(item, "id", None)


class _Page(Generic[T]):
    """What the pages of both clients share.

    Attributes:
        data: the items of this page, newest first.
        has_more: whether more objects exist after this page, in the direction of travel.
        url: path of the list.
        extra: fields of the envelope that this version of the package does not know.
        last_response: the HTTP response that this page came from.
    """

    def __init__(self, listing: Listing[T], envelope: Envelope[T]) -> None:
        self._listing = listing
        self._envelope = envelope
        self.data: list[T] = envelope.data
        self.has_more: bool = envelope.has_more
        self.url: str = envelope.url
        self.extra = envelope.extra
        self.last_response: ResponseInfo = envelope.last_response
        for item in self.data:
            if isinstance(item, Result):
                item.last_response = self.last_response

    def __repr__(self) -> str:
        # The query of a URL may hold what was searched for: phones, and names.
        path = redacted(self.url.split("?")[0].split("#")[0], max_length=200)
        return f"<{type(self).__name__} of {path}: {len(self.data)} items, has_more={self.has_more}>"

    def _in_direction_of_travel(self) -> Iterator[T]:
        return reversed(self.data) if self._listing.backwards else iter(self.data)


class Page(_Page[T]):
    """One page of a list; iterating over it gives every item of this and of all following pages."""

    def __init__(
        self, listing: Listing[T], envelope: Envelope[T], fetch: Callable[[Call[Envelope[T]]], Envelope[T]]
    ) -> None:
        super().__init__(listing, envelope)
        self._fetch = fetch

    def next_page(self) -> "Page[T] | None":
        """The page that follows in the direction of travel; None after the last.

        Raises:
            FollowUpError: as any call, and PaginationError for a cursor that does not move.
        """
        following = self._listing.after(self._envelope)
        return None if following is None else Page(following, self._fetch(following.call), self._fetch)

    def pages(self) -> "Iterator[Page[T]]":
        """This page and all that follow, each fetched when it is asked for."""
        page: Page[T] | None = self
        while page is not None:
            yield page
            page = page.next_page()

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page._in_direction_of_travel()


AsyncFetch = Callable[[Call[Envelope[T]]], Coroutine[Any, Any, Envelope[T]]]


class AsyncPage(_Page[T]):
    """One page of a list; ``async for`` over it gives every item of this and of all following pages."""

    def __init__(self, listing: Listing[T], envelope: Envelope[T], fetch: AsyncFetch[T]) -> None:
        super().__init__(listing, envelope)
        self._fetch = fetch

    async def next_page(self) -> "AsyncPage[T] | None":
        """The page that follows in the direction of travel; None after the last.

        Raises:
            FollowUpError: as any call, and PaginationError for a cursor that does not move.
        """
        following = self._listing.after(self._envelope)
        if following is None:
            return None
        return AsyncPage(following, await self._fetch(following.call), self._fetch)

    async def pages(self) -> "AsyncIterator[AsyncPage[T]]":
        """This page and all that follow, each fetched when it is asked for."""
        page: AsyncPage[T] | None = self
        while page is not None:
            yield page
            page = await page.next_page()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page._in_direction_of_travel():
                yield item


class AsyncListing(Generic[T]):
    """What ``list()`` of the asynchronous client returns: await it for the first page, or iterate over every item."""

    def __init__(self, listing: Listing[T], fetch: AsyncFetch[T]) -> None:
        self._listing = listing
        self._fetch = fetch

    async def _first_page(self) -> AsyncPage[T]:
        return AsyncPage(self._listing, await self._fetch(self._listing.call), self._fetch)

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._first_page().__await__()

    async def pages(self) -> AsyncIterator[AsyncPage[T]]:
        """Every page, each fetched when it is asked for."""
        async for page in (await self).pages():
            yield page

    async def __aiter__(self) -> AsyncIterator[T]:
        async for item in await self:
            yield item
