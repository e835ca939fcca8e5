"""Drivers: run one test against both clients, the synchronous and the asynchronous one."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from followup import AsyncFollowUp, FollowUp


class SyncSession:
    """Makes several calls with one ``FollowUp``."""

    def __init__(self, client: FollowUp) -> None:
        self._client = client

    def call(self, make: Callable[[Any], Any]) -> Any:
        """Make one call, and return the result."""
        return make(self._client)

    def at_once(self, make: Callable[[Any], Any], count: int) -> list[Any]:
        """Make so many calls at the same time, and return the result or the error of each."""
        with ThreadPoolExecutor(count) as pool:
            made = [pool.submit(make, self._client) for _ in range(count)]
        return [each.exception() or each.result() for each in made]


class AsyncSession:
    """Makes several calls with one ``AsyncFollowUp``, in one event loop."""

    def __init__(self, client: AsyncFollowUp, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def call(self, make: Callable[[Any], Any]) -> Any:
        """Make one call, and return the result."""

        async def run() -> Any:
            return await make(self._client)

        return self._runner.run(run())

    def at_once(self, make: Callable[[Any], Any], count: int) -> list[Any]:
        """Make so many calls at the same time, and return the result or the error of each."""

        async def run() -> list[Any]:
            return await asyncio.gather(*(make(self._client) for _ in range(count)), return_exceptions=True)

        return self._runner.run(run())


class SyncDriver:
    """Makes calls with ``FollowUp``."""

    name = "sync"

    @contextmanager
    def session(self, base_url: str, **options: Any) -> Iterator[SyncSession]:
        """Make several calls with one client."""
        with FollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
            yield SyncSession(client)

    def call(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> Any:
        """Make one call with a client of its own, and return the result."""
        with self.session(base_url, **options) as session:
            return session.call(make)

    def items(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> list[Any]:
        """Iterate over a list with a client of its own, and return all of its items."""
        return self.call(base_url, lambda client: list(make(client)), **options)


class AsyncDriver:
    """Makes calls with ``AsyncFollowUp``."""

    name = "async"

    @contextmanager
    def session(self, base_url: str, **options: Any) -> Iterator[AsyncSession]:
        """Make several calls with one client."""
        with asyncio.Runner() as runner:
            client = AsyncFollowUp(api_key="fu_secret_key", base_url=base_url, **options)
            yield AsyncSession(client, runner)
            runner.run(client.close())

    def call(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> Any:
        """Make one call with a client of its own, and return the result."""

        async def run() -> Any:
            async with AsyncFollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
                return await make(client)

        return asyncio.run(run())

    def items(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> list[Any]:
        """Iterate over a list with a client of its own, and return all of its items."""

        async def collected(client: Any) -> list[Any]:
            return [item async for item in make(client)]

        return self.call(base_url, collected, **options)


Driver = SyncDriver | AsyncDriver
