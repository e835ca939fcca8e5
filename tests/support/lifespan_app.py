"""A FastAPI application with a lifespan, for tests of receivers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import fastapi


class App:
    """A FastAPI application that records what happens to it, and in which event loop.

    Attributes:
        log: ``startup``, ``request`` and ``shutdown``, in order.
        loops: the event loop of each entry.
    """

    def __init__(self, fail_startups: int = 0, fail_shutdown: bool = False) -> None:
        self.log: list[str] = []
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.states: list[Any] = []
        self._fail_startups = fail_startups
        self._fail_shutdown = fail_shutdown
        self.asgi = fastapi.FastAPI(lifespan=self._lifespan)
        self.asgi.post("/hooks", status_code=204)(self._hook)

    @asynccontextmanager
    async def _lifespan(self, app: fastapi.FastAPI) -> AsyncIterator[dict[str, Any]]:
        self._record("startup")
        if self._fail_startups:
            self._fail_startups -= 1
            raise LookupError("no database")
        self.lock = asyncio.Lock()
        yield {"requests": self.log, "count": 0}
        self._record("shutdown")
        if self._fail_shutdown:
            raise LookupError("no goodbye")

    async def _hook(self, request: fastapi.Request) -> None:
        async with self.lock:  # belongs to the event loop of the startup
            self._record("request")
        self.states.append((request.state.requests, request.state.count))
        request.state.count += 1

    def _record(self, what: str) -> None:
        self.log.append(what)
        self.loops.append(asyncio.get_running_loop())
