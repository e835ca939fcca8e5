"""One attempt to a receiver that is mounted in this process, with the same limit as over a socket.

A coroutine can be cancelled at the limit. A synchronous receiver cannot be stopped. Where attempts have threads of
their own, in a server, it is left behind in its thread. In process it runs in the thread that moves the clock, because
it may use what belongs to that thread, such as a SQLite connection: it is measured, and fails once it has returned.
"""

import asyncio
from typing import Any

import httpx

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.state.clock import RealTime
from followup_mockserver.transport import call_wsgi
from followup_mockserver.webhooks.deliveries import Outcome, Outgoing, too_late
from followup_mockserver.webhooks.helpers import Helpers, LeftBehindError
from followup_mockserver.webhooks.mounts import Receiver, takes

_TIME_TO_CANCEL = 0.5
"""Seconds that a coroutine has to end after it was cancelled, before it is left behind."""

_MOST_HELPERS_KEPT = 32


class MountedSender:
    """Hands attempts to mounted receivers. Safe to use from several threads.

    Args:
        in_callers_thread: whether synchronous receivers run in the thread that calls ``send``.
        timeout: seconds after which an attempt has failed.
    """

    def __init__(self, *, in_callers_thread: bool, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._in_callers_thread = in_callers_thread
        self._timeout = timeout
        self._helpers = Helpers(0 if in_callers_thread else _MOST_HELPERS_KEPT)

    def send(self, receiver: Receiver, outgoing: Outgoing) -> Outcome:
        """Hand over an attempt; what the receiver raises is a failed attempt."""
        began = RealTime.monotonic()
        request = httpx.Request("POST", outgoing.url, headers=outgoing.headers, content=outgoing.body)
        status: int | None = None
        try:
            status, responded = self._call(receiver, request)
            error = None if 200 <= status < 300 else f"HTTP status {status}."
            if responded - began > self._timeout:
                status, error = None, too_late(self._timeout)
        except LeftBehindError:
            error = too_late(self._timeout)
        except Exception as problem:  # noqa: BLE001 - an attempt fails, the mock does not
            error = f"The receiver raised {type(problem).__name__}."
        return Outcome(status_code=status, error=error, seconds=RealTime.monotonic() - began)

    def close(self) -> None:
        """Wait for no receiver any more."""
        self._helpers.close()

    def _call(self, receiver: Receiver, request: httpx.Request) -> tuple[int, float]:
        """The status of the response, and the instant of it."""
        if takes(receiver, 3):
            return self._call_asgi(receiver, request)
        if self._in_callers_thread:
            return _call_synchronous(receiver, request)
        return self._helpers.call(lambda: _call_synchronous(receiver, request), self._timeout)

    def _call_asgi(self, app: Receiver, request: httpx.Request) -> tuple[int, float]:
        """Call the application in an event loop of its own: the caller may be inside one already."""
        call = _ASGICall(app)
        try:
            self._helpers.call(lambda: asyncio.run(call.run(request, self._timeout)), self._timeout + _TIME_TO_CANCEL)
        except LeftBehindError:
            if call.response is None:
                raise
        if call.response is None:
            raise LeftBehindError
        return call.response


class _ASGICall:
    """One call of an ASGI application.

    Attributes:
        response: status and instant of the response; None before it has begun.
    """

    def __init__(self, app: Receiver) -> None:
        self._app = app
        self.response: tuple[int, float] | None = None

    async def run(self, request: httpx.Request, seconds: float) -> None:
        """Have the application respond to the request; cancel it if it has not begun to in time."""
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._watched)) as client:
            responding = asyncio.ensure_future(client.send(request))
            await asyncio.wait([responding], timeout=seconds)
            if self.response is None and not responding.done():
                responding.cancel()
                await asyncio.gather(responding, return_exceptions=True)
            else:
                await responding  # work after the response, such as a background task, has no limit

    async def _watched(self, scope: Any, receive: Any, send: Any) -> None:
        async def watched_send(message: Any) -> None:
            if message["type"] == "http.response.start" and self.response is None:
                self.response = (message["status"], RealTime.monotonic())
            await send(message)

        await self._app(scope, receive, watched_send)


def _call_synchronous(receiver: Receiver, request: httpx.Request) -> tuple[int, float]:
    response = call_wsgi(receiver, request) if takes(receiver, 2) else receiver(request)
    if not isinstance(response, httpx.Response):
        raise TypeError("a mounted function returns an httpx.Response")
    return response.status_code, RealTime.monotonic()
