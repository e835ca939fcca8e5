"""The lifespan of an ASGI application: its startup before the first request, and its shutdown."""

import asyncio
import os
import threading
from collections.abc import MutableMapping
from typing import Any

from followup_mockserver.webhooks.asgi import Message, lifespan_scope

_FIRST_RECEIVE = 1.0
"""Seconds within which an application that supports lifespan asks for the first message."""

_END_TIMEOUT = 0.5
"""Seconds within which an application raises the exception that failed, or ends after its cancellation."""


class StartupNotCompleteError(Exception):
    """Raised if a startup is still in progress after its timeout. It continues."""


class Lifespan:
    """The lifespan of one application in one event loop, in which it is created.

    Attributes:
        loop: the event loop.
        thread: identity of the thread that runs the event loop.
        state: what the application has put into ``scope["state"]``; each request gets a shallow copy.

    Args:
        app: the ASGI application.
        timeout: seconds for a startup, and for a shutdown.
    """

    def __init__(self, app: Any, timeout: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self._process = os.getpid()
        self.state: dict[str, Any] = {}
        self._timeout = timeout
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._received = asyncio.Event()
        self._started = asyncio.Event()
        self._complete = False
        self._cancelled = False
        self._failure: str | None = None
        self._error: BaseException | None = None
        self._task = self.loop.create_task(self._run(app), name="followup-mock-lifespan")
        task: Any = self._task
        task._log_destroy_pending = False  # a service that nobody closes is collected together with this task

    @property
    def needs_shutdown(self) -> bool:
        """Whether the application runs, or its event loop ended and cancelled it before its shutdown.

        In a process that was forked since then it does not run: the fork has no thread of its event loop.
        """
        if self._process != os.getpid():
            return False
        return not self._task.done() or (self._complete and self._cancelled)

    async def startup(self) -> None:
        """Return when the startup is complete, or the application has shown that it does not support lifespan.

        Raises:
            StartupNotCompleteError: it took longer than the timeout, and continues.
            BaseException: the startup failed: the exception of the application.
        """
        if not await _within(self._received.wait(), min(_FIRST_RECEIVE, self._timeout / 3)):
            self._task.cancel()  # the application ignores the type of the scope
            await asyncio.wait({self._task}, timeout=_END_TIMEOUT)
            return
        if not await _within(self._started.wait(), self._timeout):
            raise StartupNotCompleteError
        if self._failure is not None:
            await asyncio.wait({self._task}, timeout=_END_TIMEOUT)
            raise self._error or RuntimeError(f"the startup of the application failed: {self._failure}")

    async def shutdown(self) -> BaseException | None:
        """Shut the application down, unless its startup is not complete.

        Returns:
            The exception of the application if the shutdown failed.
        """
        if self._task.done():
            return None
        if self._complete:
            await self._messages.put({"type": "lifespan.shutdown"})
            await asyncio.wait({self._task}, timeout=self._timeout)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_END_TIMEOUT)
            return None
        if self._error is None and self._failure is not None:
            return RuntimeError(f"the shutdown of the application failed: {self._failure}")
        return self._error

    async def _run(self, app: Any) -> None:
        await self._messages.put({"type": "lifespan.startup"})
        try:
            await app(lifespan_scope(self.state), self._receive, self._send)
        except BaseException as error:  # noqa: BLE001 - also one that would end the event loop
            self._error = error
            self._cancelled = isinstance(error, asyncio.CancelledError)
        finally:
            self._received.set()
            self._started.set()

    async def _receive(self) -> Message:
        self._received.set()
        return await self._messages.get()

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        match message["type"]:
            case "lifespan.startup.complete":
                self._complete = True
            case "lifespan.startup.failed" | "lifespan.shutdown.failed":
                self._failure = str(message.get("message", "")).strip() or "no reason was stated"
            case "lifespan.shutdown.complete":
                pass
            case other:
                raise RuntimeError(f"a lifespan has no message {other}")
        self._started.set()


async def _within(waiting: Any, seconds: float) -> bool:
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        return False
    return True
