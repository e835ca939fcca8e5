"""One scenario for both clients: a driver makes the same calls with either."""

import asyncio
from collections.abc import Callable
from typing import Any

from followup import AsyncFollowUp, FollowUp


class SyncDriver:
    """Calls ``FollowUp``."""

    name = "sync"

    def call(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> Any:
        """The result of one call, made with a client that is closed afterwards."""
        with FollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
            return make(client)

    def items(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> list[Any]:
        """Every item of a list."""
        return self.call(base_url, lambda client: list(make(client)), **options)


class AsyncDriver:
    """Calls ``AsyncFollowUp``."""

    name = "async"

    def call(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> Any:
        async def run() -> Any:
            async with AsyncFollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
                return await make(client)

        return asyncio.run(run())

    def items(self, base_url: str, make: Callable[[Any], Any], **options: Any) -> list[Any]:
        async def run() -> list[Any]:
            async with AsyncFollowUp(api_key="fu_secret_key", base_url=base_url, **options) as client:
                return [item async for item in make(client)]

        return asyncio.run(run())


Driver = SyncDriver | AsyncDriver
