"""The mounted ASGI applications that have been started, and the event loop of each.

An application runs in one event loop at a time: the one in which its startup ran. If it is called in another one, it is
shut down in the old one and started in the new one, because its objects may belong to the event loop.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import attrs

from followup_mockserver.schema.formats import without_query
from followup_mockserver.webhooks.lifespan import Lifespan, StartupNotCompleteError
from followup_mockserver.webhooks.receivers import Mount, Receiver

logger = logging.getLogger("followup_mockserver")

_LOOP_TIMEOUT = 1.0
"""Seconds in which an event loop in another thread must react, beyond the timeout of what it has to do."""


@attrs.frozen
class _Started:
    mount: Mount
    lifespan: Lifespan


class Applications:
    """The ASGI applications of a mock that have been started. Thread-safe.

    Args:
        timeout: seconds for a startup, and for a shutdown.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._started: dict[int, _Started] = {}
        self._stopping: list[Future[BaseException | None]] = []

    async def state_of(self, mount: Mount) -> Mapping[str, Any]:
        """Start an application in the running event loop, unless it runs there already, and return its state.

        Raises:
            StartupNotCompleteError: the startup is still in progress after the timeout.
            BaseException: the exception with which the startup failed.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            started = self._started.get(id(mount.receiver))
            elsewhere = started if started is not None and started.lifespan.loop is not loop else None
            if elsewhere is not None:
                del self._started[id(mount.receiver)]
        if elsewhere is not None:
            await self._leave(elsewhere)
        with self._lock:
            started = self._started.get(id(mount.receiver))
            if started is None:
                started = _Started(mount, Lifespan(mount.receiver, self._timeout))
                self._started[id(mount.receiver)] = started
        try:
            await started.lifespan.startup()
        except StartupNotCompleteError:
            raise
        except BaseException:
            with self._lock:
                if self._started.get(id(mount.receiver)) is started:
                    del self._started[id(mount.receiver)]  # the next attempt tries to start it again
            raise
        return started.lifespan.state

    def url_in_this_loop(self) -> str | None:
        """Return the URL of an application in the event loop that is running in this thread; None if there is none."""
        loop = asyncio._get_running_loop()
        with self._lock:
            urls = [each.mount.url for each in self._in_loop(loop) if each.lifespan.needs_shutdown]
        return without_query(urls[0]) if loop is not None and urls else None

    def stop(self, receiver: Receiver) -> BaseException | None:
        """Shut one application down, if it has been started, and return the exception of a shutdown that failed."""
        with self._lock:
            started = self._started.pop(id(receiver), None)
        return None if started is None else self._shut_down(started)

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
            earlier, self._stopping = self._stopping, []
        results = [await each.lifespan.shutdown() for each in here]
        results += [await asyncio.wrap_future(ending) for ending in earlier]
        return [each for each in results if each is not None]

    def _in_loop(self, loop: asyncio.AbstractEventLoop | None) -> list[_Started]:
        return [each for each in self._started.values() if each.lifespan.loop is loop]

    async def _leave(self, started: _Started) -> None:
        if not started.lifespan.needs_shutdown:
            return
        loop = started.lifespan.loop
        if loop.is_running():
            ending = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(started.lifespan.shutdown(), loop))
            done, _ = await asyncio.wait({ending}, timeout=self._timeout + _LOOP_TIMEOUT)
            if done:
                if (error := ending.result()) is not None:
                    raise error
                return
        _log_dropped(started)

    def _shut_down(self, started: _Started) -> BaseException | None:
        lifespan = started.lifespan
        if not lifespan.needs_shutdown:
            return None
        in_this_thread = lifespan.thread == threading.get_ident()
        if lifespan.loop.is_running():
            ending = asyncio.run_coroutine_threadsafe(lifespan.shutdown(), lifespan.loop)
            if in_this_thread:
                self._stopping.append(ending)  # it ends when the caller awaits something
                return None
            try:
                return ending.result(self._timeout + _LOOP_TIMEOUT)
            except TimeoutError:
                ending.cancel()
        elif in_this_thread and not lifespan.loop.is_closed() and asyncio._get_running_loop() is None:
            return lifespan.loop.run_until_complete(lifespan.shutdown())
        _log_dropped(started)
        return None


def _log_dropped(started: _Started) -> None:
    logger.warning(
        "the application mounted at %s was dropped without a shutdown, because its event loop does not run any more; "
        "end a test with 'await service.aclose()', or use 'async with MockService()'",
        without_query(started.mount.url),
    )
