"""Delivery attempts to receivers that are mounted in this process, with the same timeout as over a socket.

A coroutine is cancelled at the timeout. A synchronous receiver cannot be cancelled. In a server, where attempts have
their own threads, it is abandoned in its thread. In process, it runs in the thread that advances the clock, because it
may use objects that belong to that thread, such as a SQLite connection; if it took too long, the attempt fails after it
has returned.
"""

import asyncio
from typing import Any

import httpx

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.state.clock import RealTime
from followup_mockserver.transport import call_wsgi
from followup_mockserver.webhooks.call_threads import CallAbandonedError, CallThreads
from followup_mockserver.webhooks.deliveries import Outcome, PreparedAttempt, timeout_error
from followup_mockserver.webhooks.mounts import Receiver, accepts

_CANCELLATION_TIMEOUT = 0.5
"""Seconds within which a cancelled coroutine must end; otherwise it is abandoned."""

_MAX_IDLE_THREADS = 32


class MountedSender:
    """Passes delivery attempts to mounted receivers. Thread-safe.

    Args:
        in_callers_thread: whether synchronous receivers run in the thread that calls ``send``.
        timeout: seconds after which an attempt has failed.
    """

    def __init__(self, *, in_callers_thread: bool, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._in_callers_thread = in_callers_thread
        self._timeout = timeout
        self._threads = CallThreads(0 if in_callers_thread else _MAX_IDLE_THREADS)

    def send(self, receiver: Receiver, attempt: PreparedAttempt) -> Outcome:
        """Make an attempt, and return its outcome. An exception of the receiver is a failed attempt."""
        began = RealTime.monotonic()
        request = httpx.Request("POST", attempt.url, headers=attempt.headers, content=attempt.body)
        status: int | None = None
        try:
            status, responded = self._call(receiver, request)
            error = None if 200 <= status < 300 else f"HTTP status {status}."
            if responded - began > self._timeout:
                status, error = None, timeout_error(self._timeout)
        except CallAbandonedError:
            error = timeout_error(self._timeout)
        except Exception as problem:  # noqa: BLE001 - any error is a failed attempt
            error = f"The receiver raised {type(problem).__name__}."
        return Outcome(status_code=status, error=error, seconds=RealTime.monotonic() - began)

    def close(self) -> None:
        """Abandon the receivers that are still running."""
        self._threads.close()

    def _call(self, receiver: Receiver, request: httpx.Request) -> tuple[int, float]:
        """Return the status of the response, and the instant at which it began."""
        if accepts(receiver, 3):
            return self._call_asgi(receiver, request)
        if self._in_callers_thread:
            return _call_synchronous(receiver, request)
        return self._threads.call(lambda: _call_synchronous(receiver, request), self._timeout)

    def _call_asgi(self, app: Receiver, request: httpx.Request) -> tuple[int, float]:
        """Call the application in an event loop in another thread, because the caller's may run one already."""
        call = _ASGICall(app)
        try:
            self._threads.call(
                lambda: asyncio.run(call.run(request, self._timeout)), self._timeout + _CANCELLATION_TIMEOUT
            )
        except CallAbandonedError:
            if call.response is None:
                raise
        if call.response is None:
            raise CallAbandonedError
        return call.response


class _ASGICall:
    """One call of an ASGI application.

    Attributes:
        response: status of the response, and the instant at which it began; None before that.
    """

    def __init__(self, app: Receiver) -> None:
        self._app = app
        self.response: tuple[int, float] | None = None

    async def run(self, request: httpx.Request, seconds: float) -> None:
        """Send the request to the application; cancel it if the response has not begun within ``seconds``."""
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._watched)) as client:
            responding = asyncio.ensure_future(client.send(request))
            await asyncio.wait([responding], timeout=seconds)
            if self.response is None and not responding.done():
                responding.cancel()
                await asyncio.gather(responding, return_exceptions=True)
            else:
                await responding  # work after the response, such as a background task, has no timeout

    async def _watched(self, scope: Any, receive: Any, send: Any) -> None:
        async def watched_send(message: Any) -> None:
            if message["type"] == "http.response.start" and self.response is None:
                self.response = (message["status"], RealTime.monotonic())
            await send(message)

        await self._app(scope, receive, watched_send)


def _call_synchronous(receiver: Receiver, request: httpx.Request) -> tuple[int, float]:
    response = call_wsgi(receiver, request) if accepts(receiver, 2) else receiver(request)
    if not isinstance(response, httpx.Response):
        raise TypeError("a mounted function must return an httpx.Response")
    return response.status_code, RealTime.monotonic()
