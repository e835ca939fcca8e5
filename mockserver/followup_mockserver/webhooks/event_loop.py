"""An event loop in a thread, for coroutines that synchronous code waits for."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_JOIN_TIMEOUT = 1.0
"""Seconds that ``close`` waits for the thread. A coroutine that blocks it longer is left behind."""


class EventLoopThread:
    """An event loop in a thread of its own, which starts with the first coroutine. Thread-safe.

    Objects that belong to an event loop, such as a database connection, survive from one coroutine to the next. A
    process that was forked has no thread, and starts another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pending: set[Future[Any]] = set()
        self._process = os.getpid()
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
            if self._process != os.getpid():
                self._loop, self._pending, self._process = None, set(), os.getpid()
            future = asyncio.run_coroutine_threadsafe(function(), self._loop or self._start())
            self._pending.add(future)
        future.add_done_callback(self._forget)
        return future

    def close(self) -> None:
        """Stop the loop and its thread. Coroutines that are still running are cancelled."""
        with self._lock:
            self._closed = True
            loop, thread, pending = self._loop, self._thread, list(self._pending)
        for future in pending:
            future.cancel()
        if loop is not None and thread is not None:
            _stop(loop)
            if thread is not threading.current_thread():
                thread.join(_JOIN_TIMEOUT)

    def _forget(self, future: "Future[Any]") -> None:
        self._pending.discard(future)  # without the lock, because submit may hold it in this thread

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(loop,), name="followup-mock-event-loop", daemon=True)
        self._thread.start()
        weakref.finalize(self, _stop, loop)  # a service that is never closed must not leave the thread behind
        self._loop = loop
        return loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
