"""One run of the clinic's process, from a start to its end by a crash."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import httpx

from followup import AsyncFollowUp, FollowUp
from followup._for_mockserver import Time, use_virtual_time
from followup_mockserver.simulation.clinic import Clinic, Crash

if TYPE_CHECKING:
    from followup_mockserver.simulation.receiving import Receiving

Carry = Callable[["Process", httpx.Request], httpx.Response]
"""Carries a request of a process to the service, and returns the response."""


class Process:
    """A process of the clinic: an instance of the user's class, and the clients that belong to it.

    Attributes:
        clinic: the instance.
        client: the client that ``start`` gets.
        receiving: calls its receiver of webhooks; None if there is none.
        has_crashed: whether the process is over.

    Args:
        clinic: creates the instance.
        base_url: base URL of the service.
        api_key: the API key.
        time: the time of the service's clock.
        carry: carries the requests.
    """

    def __init__(self, clinic: Callable[[], Clinic], *, base_url: str, api_key: str, time: Time, carry: Carry) -> None:
        self.has_crashed = False
        self.receiving: Receiving | None = None
        own_time = _ProcessTime(self, time)
        transport = _Transport(self, carry)
        http_client, async_http_client = httpx.Client(transport=transport), httpx.AsyncClient(transport=transport)
        self.client = FollowUp(base_url=base_url, api_key=api_key, http_client=http_client)
        asynchronous = AsyncFollowUp(base_url=base_url, api_key=api_key, http_client=async_http_client)
        for client in (self.client, asynchronous):
            use_virtual_time(client, lambda _: own_time, transport_enforces_limits=True)
        self.clinic = clinic()
        self.clinic.async_client = asynchronous
        self.clinic._clock = own_time.now

    def crash(self) -> Crash:
        """End the process, and return the exception to raise."""
        self.has_crashed = True
        return Crash("the clinic crashed")

    def end(self) -> None:
        """Let nothing of the process go on."""
        self.has_crashed = True
        if self.receiving is not None:
            self.receiving.close()

    def check(self) -> None:
        """Raise ``Crash`` if the process is over: code of a dead process must not act any more."""
        if self.has_crashed:
            raise self.crash()


class _ProcessTime:
    """The time of the clients of a process. Waiting in a process that is over raises ``Crash``."""

    def __init__(self, process: Process, time: Time) -> None:
        self._process = process
        self._time = time

    def monotonic(self) -> float:
        return self._time.monotonic()

    def now(self) -> datetime:
        return self._time.now()

    def sleep(self, seconds: float) -> None:
        self._process.check()
        self._time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        self._process.check()
        await self._time.sleep_async(seconds)


class _Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    def __init__(self, process: Process, carry: Carry) -> None:
        self._process = process
        self._carry = carry

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._carry(self._process, request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        await asyncio.sleep(0)  # a request over a network lets other tasks run
        return self._carry(self._process, request)
