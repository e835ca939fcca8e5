"""One run of the clinic's process, from a start to its end by a crash: its instance, its clients and its receiver."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import httpx

from followup import FollowUp
from followup._for_mockserver import SIGNATURE_HEADER, WEBHOOK_ATTEMPT_TIMEOUT, Time
from followup_mockserver.deliveries.applications import Applications
from followup_mockserver.deliveries.mounts import Mount, ReceiverKind, call_asgi, call_wsgi, caught, kind_of
from followup_mockserver.lab.simulation.clinic import Clinic, Crash
from followup_mockserver.lab.simulation.loop import SimulatedLoop, Wait
from followup_mockserver.service import MockService

Carry = Callable[["Process", httpx.Request], httpx.Response]
"""Carries a request of a process to the service, and returns the response."""


class Process:
    """A process of the clinic: an instance of the user's class, and the clients that belong to it.

    Attributes:
        clinic: the instance.
        client: the client that ``start`` gets.
        receiving: calls its receiver of webhooks; None if there is none.
        has_crashed: whether the process is over.
        is_starting: whether ``start`` has not returned yet.
        loop: the event loop of its asynchronous code.

    Args:
        clinic: creates the instance.
        service: the service.
        time: the time of its clients.
        wait: lets time pass when the tasks of the clinic wait; see ``SimulatedLoop``.
        carry: carries the requests.
    """

    def __init__(
        self, clinic: Callable[[], Clinic], service: MockService, time: Time, wait: Wait, carry: Carry
    ) -> None:
        self.has_crashed: bool = False
        self.is_starting = True
        self.receiving: Receiving | None = None
        self.loop: SimulatedLoop = SimulatedLoop(time, wait, self.check)
        transport = _Transport(self, carry)
        self.client: FollowUp = service.client()
        asynchronous = service.async_client()
        # They belong to one process: its time, and a network that can fail.
        for client in (self.client, asynchronous):
            client._live_in(lambda _: time, transport)
        self.clinic: Clinic = clinic()
        self.clinic.async_client, self.clinic._client = asynchronous, self.client
        self.clinic._clock = time.now
        self.clinic._call = self.call

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the clinic, in the event loop if it is a coroutine function, and return its result."""
        result = getattr(self.clinic, method)(*arguments)
        return self.loop.run(_result_of(result), f"{method}()") if inspect.isawaitable(result) else result

    def crash(self) -> Crash:
        """End the process, and return the exception to raise."""
        self.has_crashed = True
        return Crash("the clinic crashed")

    def end(self) -> None:
        """Let nothing of the process go on."""
        self.has_crashed = True
        self.loop.end()

    def check(self) -> None:
        """Raise ``Crash`` if the process is over: code of a dead process must not act any more."""
        if self.has_crashed:
            raise self.crash()


class _Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    def __init__(self, process: Process, carry: Carry) -> None:
        self._process = process
        self._carry = carry

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._carry(self._process, request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        loop = self._process.loop
        # A request over a network lets other tasks run, even if it takes no time.
        await asyncio.sleep(loop.latency())
        response = self._carry(self._process, request)
        await asyncio.sleep(loop.latency())
        return response


class ReceiverFailed(Exception):
    """The receiver raised the exception that is the cause of this one, or a framework turned it into a response.

    Attributes:
        response: the response of the framework; None if there is none.
    """

    def __init__(self, response: httpx.Response | None = None) -> None:
        super().__init__("the receiver failed")
        self.response = response


class Receiving:
    """Calls the receiver of a process, of any kind, in the way of synchronous code.

    An asynchronous one runs in the event loop of the process. The lifespan of an ASGI application begins before its
    first request; a crash does not shut the application down.

    Args:
        process: the process.
        url: URL of the webhook endpoint.
        receiver: what ``receiver()`` returned.

    Raises:
        TypeError: the receiver cannot be called.
    """

    def __init__(self, process: Process, url: str, receiver: Any) -> None:
        if not callable(receiver):
            raise TypeError(
                f"receiver() must return a WSGI or ASGI application or a function, not {type(receiver).__name__}; "
                "without a receiver, set receiver_url to None"
            )
        self._process = process
        self._mount = Mount(url=url, receiver=receiver, kind=kind_of(receiver), raise_exceptions=False)
        self._applications = Applications(WEBHOOK_ATTEMPT_TIMEOUT)

    def call(self, request: httpx.Request) -> httpx.Response:
        """Pass a request to the receiver, and return its response.

        Raises:
            Crash: the process crashed meanwhile, whatever the receiver made of it.
            ReceiverFailed: the receiver raised an exception.
        """
        self._process.check()
        response: httpx.Response | None = None
        problem: Exception | None = None
        with caught(request.headers.get(SIGNATURE_HEADER)) as exceptions:
            try:
                response = self._response(request)
            except Exception as error:  # noqa: BLE001 - the cause of the exception that is raised below
                problem = error
            except BaseException:
                # A group of exceptions may contain the crash.
                self._process.check()
                raise
        self._process.check()
        if problem is None and response is not None and not response.is_success and exceptions:
            found = exceptions[-1]
            problem = found if isinstance(found, Exception) else None
        if problem is not None:
            raise ReceiverFailed(response) from problem
        assert response is not None
        return response

    def _response(self, request: httpx.Request) -> httpx.Response:
        if self._mount.kind is ReceiverKind.WSGI:
            return call_wsgi(self._mount.receiver, request)
        if self._mount.kind is ReceiverKind.ASGI:
            return httpx.Response(self._run(self._asgi(request)))
        returned = self._mount.receiver(request)
        if inspect.isawaitable(returned):
            returned = self._run(_result_of(returned))
        if not isinstance(returned, httpx.Response):
            raise TypeError(f"a receiver function must return an httpx.Response, not {type(returned).__name__}")
        return returned

    async def _asgi(self, request: httpx.Request) -> int:
        statuses: list[int] = []
        responded = asyncio.Event()
        state = await self._applications.state_of(self._mount)
        running = asyncio.create_task(
            call_asgi(
                self._mount.receiver,
                request,
                state,
                lambda status, _: statuses.append(status),
                lambda _, is_last: responded.set() if is_last else None,
            ),
            name="receiver",
        )
        await asyncio.wait({running, asyncio.create_task(responded.wait())}, return_when=asyncio.FIRST_COMPLETED)
        # What an application does after its response is a background task, which a crash may cut off.
        if running.done() or not httpx.codes.is_success(statuses[0]):
            await running  # raises what a framework turned into a response
        return statuses[0]

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(WEBHOOK_ATTEMPT_TIMEOUT):
                return await coroutine

        try:
            return self._process.loop.run(limited(), "The receiver")
        except TimeoutError:
            raise TimeoutError(f"no response within {WEBHOOK_ATTEMPT_TIMEOUT:g} s") from None


async def _result_of(waiting: Awaitable[Any]) -> Any:
    return await waiting
