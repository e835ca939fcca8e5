"""Pages of a list, which fetch the following pages on demand (specification, section 4).

A page keeps the order of the response, newest first. Iteration moves away from the cursor: by default each item is
older than the one before, with ``ending_before`` each one is newer.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any, Generic, TypeVar

import attrs

from followup._core.call.steps import Call
from followup._core.errors import PaginationError
from followup._core.redaction import redacted
from followup._core.results import Model, ResponseInfo, Result
from followup._core.tracebacks import clears_frames

T = TypeVar("T", bound=Model)


@attrs.define(kw_only=True, eq=False, repr=False)
class Envelope(Result, Generic[T]):
    """The list envelope (specification, section 2)."""

    object: str = "list"
    data: list[T]
    has_more: bool
    url: str = ""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Listing(Generic[T]):
    """A page of a list that has not been fetched yet.

    It finds a circle of cursors of any length without storing all of them (Brent's algorithm).

    Attributes:
        call_from: returns the list call from a cursor.
        cursor: the cursor of this page; None for the first one.
        backwards: whether ``ending_before`` was passed.
        checkpoint: an earlier cursor, replaced after 1, 2, 4, 8, ... pages.
        pages: number of pages before this one.
    """

    call_from: Callable[[str | None], Call[Envelope[T]]]
    operation: str
    cursor: str | None
    backwards: bool
    checkpoint: str | None = None
    pages: int = 0

    @property
    def call(self) -> Call[Envelope[T]]:
        """The call that fetches the page."""
        return self.call_from(self.cursor)

    def after(self, envelope: Envelope[T]) -> "Listing[T] | None":
        """Return the listing of the next page, from the envelope of this one; None after the last page.

        Raises:
            PaginationError: there are more items, but the next cursor cannot be determined.
        """
        # The specification leaves open what has_more means backwards, so an empty page ends that direction (section 4).
        if not envelope.has_more or (self.backwards and not envelope.data):
            return None
        if not envelope.data:
            raise self._error("has_more is true on a page without items, so there is no cursor for the next page")
        cursor = getattr(envelope.data[0 if self.backwards else -1], "id", None)
        if cursor is None or cursor in (self.cursor, self.checkpoint):
            raise self._error("the cursor does not move: the service returned a page that it had returned before")
        is_power_of_2 = self.pages & (self.pages - 1) == 0
        checkpoint = self.cursor if is_power_of_2 else self.checkpoint
        return attrs.evolve(self, cursor=cursor, checkpoint=checkpoint, pages=self.pages + 1)

    def _error(self, problem: str) -> PaginationError:
        return PaginationError(f"{self.operation}: {problem}", operation=self.operation, was_sent="yes", attempts=1)


Fetch = Callable[[Call[Envelope[T]]], Envelope[T]]
AsyncFetch = Callable[[Call[Envelope[T]]], Coroutine[Any, Any, Envelope[T]]]
F = TypeVar("F")


class _Page(Generic[T, F]):
    """The base of the pages of both clients.

    Attributes:
        data: the items of this page, newest first.
        has_more: whether there are more items after this page, in the direction of iteration.
        url: path of the list.
        extra: fields of the envelope that this version of the package does not know, by JSON name.
        last_response: the HTTP response that this page came from: its status, headers and request id.
    """

    # Annotated here, where jedi finds the type of the items.
    data: list[T]

    def __init__(self, listing: Listing[T], envelope: Envelope[T], fetch: F) -> None:
        self._listing = listing
        self._fetch = fetch
        self._envelope = envelope
        self.data = envelope.data
        self.has_more: bool = envelope.has_more
        self.url: str = envelope.url
        self.extra: Mapping[str, Any] = envelope.extra
        self.last_response: ResponseInfo = envelope.last_response
        for item in self.data:
            if isinstance(item, Result):
                item.last_response = self.last_response

    def __repr__(self) -> str:
        # The query of the URL may contain phones and documents.
        path = redacted(self.url.split("?")[0].split("#")[0], max_length=200)
        return f"<{type(self).__name__} of {path}: {len(self.data)} items, has_more={self.has_more}>"

    def first(self) -> T | None:
        """Return the first item of this page in the direction of iteration; None if the page is empty.

        Nothing is fetched, so this is not awaited.
        """
        return next(self._items_in_order(), None)

    def _items_in_order(self) -> Iterator[T]:
        return reversed(self.data) if self._listing.backwards else iter(self.data)


class Page(_Page[T, Fetch[T]]):
    """One page of a list. Iterating over it yields the items of this page and of all following pages."""

    @clears_frames
    def next_page(self) -> "Page[T] | None":
        """Return the page after this one, in the direction of iteration.

        Returns:
            The next page; None after the last one.

        Raises:
            PaginationError: the cursor does not move, or there is none.
            APIStatusError, APIConnectionError, ResponseDecodeError: as in any operation.
        """
        following = self._listing.after(self._envelope)
        return None if following is None else Page(following, self._fetch(following.call), self._fetch)

    def pages(self) -> "Iterator[Page[T]]":
        """Yield this page and all following ones, each fetched on demand.

        Raises:
            PaginationError, APIStatusError, APIConnectionError, ResponseDecodeError: as in ``next_page``.
        """
        page: Page[T] | None = self
        while page is not None:
            yield page
            page = page.next_page()

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page._items_in_order()


class AsyncPage(_Page[T, AsyncFetch[T]]):
    """One page of a list. ``async for`` over it yields the items of this page and of all following pages."""

    @clears_frames
    async def next_page(self) -> "AsyncPage[T] | None":
        """Return the page after this one, in the direction of iteration.

        Returns:
            The next page; None after the last one.

        Raises:
            PaginationError: the cursor does not move, or there is none.
            APIStatusError, APIConnectionError, ResponseDecodeError: as in any operation.
        """
        following = self._listing.after(self._envelope)
        if following is None:
            return None
        return AsyncPage(following, await self._fetch(following.call), self._fetch)

    async def pages(self) -> "AsyncIterator[AsyncPage[T]]":
        """Yield this page and all following ones, each fetched on demand.

        Raises:
            PaginationError, APIStatusError, APIConnectionError, ResponseDecodeError: as in ``next_page``.
        """
        page: AsyncPage[T] | None = self
        while page is not None:
            yield page
            page = await page.next_page()

    def __aiter__(self) -> AsyncIterator[T]:  # not a generator itself, which jedi does not follow
        return self._items()

    async def _items(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page._items_in_order():
                yield item


class AsyncListing(Coroutine[Any, Any, AsyncPage[T]]):
    """The return value of ``list()`` on ``AsyncFollowUp``: await it for the first page, or iterate over all items.

    It is a coroutine, so ``asyncio.create_task`` and a ``TaskGroup`` take it too.
    """

    def __init__(self, listing: Listing[T], fetch: AsyncFetch[T]) -> None:
        self._listing = listing
        self._fetch = fetch
        self._running: Coroutine[Any, Any, AsyncPage[T]] | None = None

    @clears_frames
    async def _first_page(self) -> AsyncPage[T]:
        return AsyncPage(self._listing, await self._fetch(self._listing.call), self._fetch)

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._first_page().__await__()

    # What a task drives. The coroutine is made with the first step: one that is never awaited would cause a warning.

    def send(self, value: Any) -> Any:
        """Run until the next suspension, as a coroutine does."""
        return self._started().send(value)

    def throw(self, *failure: Any) -> Any:
        """Raise an exception where it is suspended, as in a coroutine."""
        return self._started().throw(*failure)

    def close(self) -> None:
        """End it where it is suspended, as a coroutine."""
        if self._running is not None:
            self._running.close()

    def _started(self) -> Coroutine[Any, Any, AsyncPage[T]]:
        if self._running is None:
            self._running = self._first_page()
        return self._running

    async def pages(self) -> AsyncIterator[AsyncPage[T]]:
        """Yield all pages, each fetched on demand.

        Raises:
            PaginationError, APIStatusError, APIConnectionError, ResponseDecodeError: as in ``AsyncPage.next_page``.
        """
        async for page in (await self).pages():
            yield page

    def __aiter__(self) -> AsyncIterator[T]:
        return self._items()

    async def _items(self) -> AsyncIterator[T]:
        async for item in await self:
            yield item
