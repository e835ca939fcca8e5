"""The httpx clients behind a FollowUp client: one per process, or one per running event loop.

A pool of connections must not be shared across a fork, and an asynchronous one belongs to the event loop that opened
it. So pools are opened when they are first needed, where they are needed.
"""

import os
import threading
import warnings
from typing import TYPE_CHECKING, Generic, TypeVar

import httpx

from followup.errors import ConfigurationError

if TYPE_CHECKING:
    import asyncio

C = TypeVar("C", httpx.Client, httpx.AsyncClient)

_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=100)
_CLOSED = "this client has been closed; make a new one"


class _Connections(Generic[C]):
    """What both kinds share: the user's own httpx client, or pools of ours that somebody has to close."""

    def __init__(self, own: C | None) -> None:
        self._own: C | None = own
        self._lock = threading.Lock()
        self._closed = False

    def _has_open_pools(self) -> bool:
        raise NotImplementedError

    def __del__(self) -> None:
        # Nothing can be closed from here in an orderly way: no event loop may be running, or another one.
        if not self._closed and self._has_open_pools():
            warnings.warn("unclosed FollowUp client: call close() or use it in a with block", ResourceWarning, 2)


class Connections(_Connections[httpx.Client]):
    """The connections of a ``FollowUp`` client."""

    def __init__(self, own: httpx.Client | None = None) -> None:
        super().__init__(own)
        self._pool: httpx.Client | None = None
        self._process = os.getpid()

    def client(self) -> httpx.Client:
        """The httpx client of this process."""
        if self._closed:
            raise ConfigurationError(_CLOSED)
        if self._own is not None:
            return self._own
        pool = self._pool
        if pool is not None and self._process == os.getpid():
            return pool
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                self._pool = httpx.Client(limits=_LIMITS)
                self._process = os.getpid()
            return self._pool

    def close(self) -> None:
        self._closed = True
        if self._pool is not None and self._process == os.getpid():
            self._pool.close()

    def _has_open_pools(self) -> bool:
        return self._pool is not None and self._process == os.getpid()


class AsyncConnections(_Connections[httpx.AsyncClient]):
    """The connections of an ``AsyncFollowUp`` client."""

    def __init__(self, own: httpx.AsyncClient | None = None) -> None:
        super().__init__(own)
        # No weak references: they are dead when __del__ wants to know whether anything is open.
        self._pools: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def client(self) -> httpx.AsyncClient:
        """The httpx client of the running event loop."""
        if self._closed:
            raise ConfigurationError(_CLOSED)
        if self._own is not None:
            return self._own
        loop = _running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            with self._lock:
                self._forget_closed_loops()
                pool = httpx.AsyncClient(limits=_LIMITS)
                self._pools[loop] = pool
        return pool

    async def close(self) -> None:
        self._closed = True
        pool = self._pools.pop(_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    def _forget_closed_loops(self) -> None:
        self._pools = {loop: pool for loop, pool in self._pools.items() if not loop.is_closed()}

    def _has_open_pools(self) -> bool:
        return any(not loop.is_closed() for loop in self._pools)


def _running_loop() -> "asyncio.AbstractEventLoop":
    import asyncio  # costs as much as the rest of the package, and synchronous code does not need it

    return asyncio.get_running_loop()
