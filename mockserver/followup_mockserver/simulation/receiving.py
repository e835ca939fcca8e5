"""Calls the receiver of a process of the clinic, whatever kind of application it is."""

import inspect
import json
from collections.abc import Coroutine, Mapping
from concurrent import futures
from typing import Any

import httpx

from followup._for_mockserver import ATTEMPT_HEADER, SIGNATURE_HEADER, WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.simulation.process import Process
from followup_mockserver.transport import call_wsgi
from followup_mockserver.webhooks.applications import Applications
from followup_mockserver.webhooks.asgi import call_asgi
from followup_mockserver.webhooks.event_loop import EventLoopThread
from followup_mockserver.webhooks.framework_exceptions import caught
from followup_mockserver.webhooks.receivers import Kind, Mount, kind_of


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

    An asynchronous one runs in an event loop of its own. The lifespan of an ASGI application begins before its first
    request; a crash does not shut the application down.

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
        self._loop = EventLoopThread()

    def call(self, request: httpx.Request) -> httpx.Response:
        """Pass a request to the receiver, and return its response.

        Raises:
            Crash: the process crashed meanwhile, whatever the receiver made of it.
            ReceiverFailed: the receiver raised an exception.
        """
        self._process.check()
        response: httpx.Response | None = None
        problem: Exception | None = None
        with caught(request.headers[SIGNATURE_HEADER]) as exceptions:
            try:
                response = self._response(request)
            except Exception as error:  # noqa: BLE001 - the cause of the exception that is raised below
                problem = error
            except BaseException:
                self._process.check()  # a group of exceptions may contain the crash
                raise
        self._process.check()
        if problem is None and response is not None and not response.is_success and exceptions:
            found = exceptions[-1]
            problem = found if isinstance(found, Exception) else None
        if problem is not None:
            raise ReceiverFailed(response) from problem
        assert response is not None
        return response

    def close(self) -> None:
        """Stop the event loop, and with it whatever still runs in it."""
        self._loop.close()

    def _response(self, request: httpx.Request) -> httpx.Response:
        if self._mount.kind is Kind.WSGI:
            return call_wsgi(self._mount.receiver, request)
        if self._mount.kind is Kind.ASGI:
            return httpx.Response(self._run(self._asgi(request)))
        returned = self._mount.receiver(request)
        if inspect.isawaitable(returned):

            async def wait() -> Any:
                return await returned

            returned = self._run(wait())
        if not isinstance(returned, httpx.Response):
            raise TypeError(f"a receiver function must return an httpx.Response, not {type(returned).__name__}")
        return returned

    async def _asgi(self, request: httpx.Request) -> int:
        statuses: list[int] = []
        state = await self._applications.state_of(self._mount)

        def respond(status: int, _: object) -> None:
            statuses.append(status)

        await call_asgi(self._mount.receiver, request, state, respond, lambda _, __: None)
        return statuses[0]

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        running = self._loop.submit(lambda: coroutine)
        try:
            return running.result(WEBHOOK_ATTEMPT_TIMEOUT)
        except futures.TimeoutError:
            running.cancel()
            raise TimeoutError(f"no response within {WEBHOOK_ATTEMPT_TIMEOUT:g} s") from None


def body_of(request: httpx.Request) -> Mapping[str, Any]:
    """Return the JSON object in the body of a webhook."""
    body: Mapping[str, Any] = json.loads(request.content)
    return body


def attempt_number(request: httpx.Request) -> int:
    """Return the number of a delivery attempt."""
    return int(request.headers[ATTEMPT_HEADER])
