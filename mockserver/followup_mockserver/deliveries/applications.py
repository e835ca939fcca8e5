"""The mounted ASGI applications that have been started: the lifespan and the event loop of each.

An application runs in one event loop at a time: the one in which its startup ran. If it is called in another one, it is
shut down in the old one and started in the new one, because its objects may belong to the event loop.
"""

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from followup_mockserver.deliveries.mounts import Message, Mount
from followup_mockserver.world.schema.formats import without_query

STARTUP_TIMEOUT = 60.0
"""Seconds for a startup, which may load models or migrate a database; the time of the attempt begins after it."""

_END_TIMEOUT = 0.5
"""Seconds within which an application raises the exception that failed, or ends after its cancellation."""


_running: set[asyncio.Task[None]] = set()
"""The lifespans that have not ended. Event loops refer to tasks weakly, and that of a service that nobody closes would
be freed before its event loop ends and cancels it."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; None if there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Lifespan:
    """The lifespan of one application in one event loop, in which it is created.

    Attributes:
        mount: the ASGI application, and its URL.
        loop: the event loop.
        thread: identity of the thread that runs the event loop.
        state: what the application has put into ``scope["state"]``; each request gets a shallow copy.

    Args:
        timeout: seconds for a shutdown.
    """

    def __init__(self, mount: Mount, timeout: float) -> None:
        self.mount = mount
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.thread: int = threading.get_ident()
        self.state: dict[str, Any] = {}
        self._timeout = timeout
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._started = asyncio.Event()
        self._complete = False
        self._failed = False
        self._error: BaseException | None = None
        self._task = self.loop.create_task(self._run(mount.receiver), name="followup-mock-lifespan")
        _running.add(self._task)
        self._task.add_done_callback(_running.discard)

    @property
    def needs_shutdown(self) -> bool:
        """Whether the application runs, or its event loop ended and cancelled it before its shutdown."""
        return not self._task.done() or (self._complete and isinstance(self._error, asyncio.CancelledError))

    async def startup(self) -> None:
        """Return when the startup is complete, or the application has shown that it does not support lifespan.

        Raises:
            BaseException: the startup failed: the exception of the application, or that it took too long.
        """
        try:
            await asyncio.wait_for(self._started.wait(), STARTUP_TIMEOUT)
        except TimeoutError:
            raise TimeoutError(f"the startup did not complete within {STARTUP_TIMEOUT:g} s") from None
        if self._failed and self._error is not None:
            await asyncio.wait({self._task}, timeout=_END_TIMEOUT)
            raise self._error

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
        return self._error

    async def _run(self, app: Any) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        await self._messages.put({"type": "lifespan.startup"})
        try:
            await app(scope, self._messages.get, self._send)
        except BaseException as error:  # noqa: BLE001 - also one that would end the event loop
            self._error = error
        finally:
            self._started.set()

    async def _send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            self._complete = True
        elif message["type"] in ("lifespan.startup.failed", "lifespan.shutdown.failed"):
            self._failed = True
            reason = str(message.get("message", "")).strip() or "no reason was stated"
            self._error = RuntimeError(f"{message['type']}: {reason}")
        # Also after a message of another kind: an application that does not know lifespans responds to what it gets.
        self._started.set()


logger: logging.Logger = logging.getLogger("followup_mockserver")

_LOOP_TIMEOUT = 1.0
"""Seconds in which an event loop in another thread must react, beyond the timeout of what it has to do."""


class Applications:
    """The ASGI applications of a mock that have been started. Thread-safe.

    Args:
        timeout: seconds for a shutdown.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._started: dict[int, Lifespan] = {}

    async def state_of(self, mount: Mount) -> Mapping[str, Any]:
        """Start an application in the running event loop, unless it runs there already, and return its state.

        Raises:
            BaseException: the exception with which the startup failed.
        """
        # By identity: an application need not be hashable. Its lifespan refers to it, so the identity stays its own.
        key, loop = id(mount.receiver), asyncio.get_running_loop()
        with self._lock:
            lifespan = self._started.get(key)
            elsewhere = None if lifespan is None or lifespan.loop is loop else self._started.pop(key)
        if elsewhere is not None and (error := await asyncio.to_thread(self._shut_down, elsewhere)) is not None:
            raise error
        with self._lock:
            # Looked up again: the lock was free during the shutdown, and another task may have started it.
            lifespan = self._started.get(key) or self._started.setdefault(key, Lifespan(mount, self._timeout))
        try:
            await lifespan.startup()
        except BaseException:
            with self._lock:
                if self._started.get(key) is lifespan:
                    del self._started[key]  # the next attempt tries to start it again
            await lifespan.shutdown()  # a startup that takes too long must not go on beside the next one
            raise
        return lifespan.state

    def url_in_this_loop(self) -> str | None:
        """Return the URL of an application in the event loop that is running in this thread; None if there is none."""
        loop = running_loop()
        with self._lock:
            urls = [each.mount.url for each in self._in_loop(loop) if each.needs_shutdown]
        return without_query(urls[0]) if loop is not None and urls else None

    def stop_all(self) -> list[BaseException]:
        """Shut all applications down, and return the exceptions of the shutdowns that failed."""
        with self._lock:
            stopping, self._started = list(self._started.values()), {}
        return [error for each in stopping if (error := self._shut_down(each)) is not None]

    async def stop_here(self) -> list[BaseException]:
        """Shut the applications in the running event loop down, and return the exceptions as ``stop_all`` does."""
        loop = asyncio.get_running_loop()
        with self._lock:
            here = self._in_loop(loop)
            for each in here:
                del self._started[id(each.mount.receiver)]
        return [error for each in here if (error := await each.shutdown()) is not None]

    def _in_loop(self, loop: asyncio.AbstractEventLoop | None) -> list[Lifespan]:
        return [each for each in self._started.values() if each.loop is loop]

    def _shut_down(self, lifespan: Lifespan) -> BaseException | None:
        if not lifespan.needs_shutdown:
            return None
        in_this_thread = lifespan.thread == threading.get_ident()
        if lifespan.loop.is_running():
            ending = asyncio.run_coroutine_threadsafe(lifespan.shutdown(), lifespan.loop)
            if in_this_thread:
                return None  # it ends when the caller awaits something
            try:
                return ending.result(self._timeout + _LOOP_TIMEOUT)
            except TimeoutError:
                ending.cancel()
        elif in_this_thread and not lifespan.loop.is_closed() and running_loop() is None:
            return lifespan.loop.run_until_complete(lifespan.shutdown())
        logger.warning(
            "the application mounted at %s was dropped without a shutdown, because its event loop does not run any "
            "more; end a test with 'await service.aclose()', or use 'async with MockService()'",
            without_query(lifespan.mount.url),
        )
        return None


T = TypeVar("T")

_JOIN_TIMEOUT = 1.0
"""Seconds that ``close`` waits for the thread. A coroutine that blocks it longer is left behind."""


class EventLoopThread:
    """An event loop in a thread of its own, which starts with the first coroutine. Thread-safe.

    Objects that belong to an event loop, such as a database connection, survive from one coroutine to the next.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, function: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Call a coroutine function in the loop, in the context of the caller.

        Returns:
            The result to come. Cancelling it cancels the coroutine; ``close`` cancels it too.
        """
        with self._lock:
            if self._closed:
                cancelled: Future[T] = Future()
                cancelled.cancel()
                return cancelled
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="followup-mock-event-loop", daemon=True
                )
                self._thread.start()
                weakref.finalize(self, _stop_loop, self._loop)  # of a service that is never closed
            # asyncio copies the context of this thread, so the coroutine has entered the same runs and ``caught``.
            return asyncio.run_coroutine_threadsafe(function(), self._loop)

    def close(self) -> None:
        """Stop the loop and its thread. Coroutines that are still running are cancelled."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            _stop_loop(loop)
            if thread is not threading.current_thread():
                thread.join(_JOIN_TIMEOUT)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop):  # which cancels what is left, and closes the loop
        loop.run_forever()


def _stop_loop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
