"""Drivers: run one test against both clients, the synchronous and the asynchronous one."""

import asyncio
from collections.abc import Callable
from typing import Any

from followup import AsyncFollowUp, FollowUp


class SyncDriver:
    """Makes calls with ``FollowUp``."""

    name = "sync"

    def call(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> Any:
        """Make one call with a client of its own, and return the result."""
        with FollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
            return make(client)

    def items(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> list[Any]:
        """Iterate over a list with a client of its own, and return all of its items."""
        return self.call(base_url, lambda client: list(make(client)), **options)


class AsyncDriver:
    """Makes calls with ``AsyncFollowUp``."""

    name = "async"

    def call(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> Any:
        """Make one call with a client of its own, and return the result."""

        async def run() -> Any:
            async with AsyncFollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
                return await make(client)

        return asyncio.run(run())

    def items(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> list[Any]:
        """Iterate over a list with a client of its own, and return all of its items."""

        async def run() -> list[Any]:
            async with AsyncFollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
                return [item async for item in make(client)]

        return asyncio.run(run())


Driver = SyncDriver | AsyncDriver
