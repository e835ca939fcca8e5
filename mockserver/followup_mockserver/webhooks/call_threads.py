"""Calls with a timeout: a receiver's code runs in another thread, which is abandoned when it takes too long."""

import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any, TypeVar

T = TypeVar("T")


class CallAbandonedError(Exception):
    """Raised for a call that timed out. It continues in its own thread, and its result is ignored."""


class _CallThread:
    """A thread that makes one call after another."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="followup-mock-receiver", daemon=True).start()

    def begin(self, function: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._calls.put((function, future))
        return future

    def end(self) -> None:
        """End the thread after the call in progress."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, future = call
            try:
                _make(function, future)
            except InvalidStateError:
                continue  # the call was abandoned meanwhile


class CallThreads:
    """Makes calls in other threads, in the context of the caller. Thread-safe.

    Args:
        max_idle: idle threads that are kept for further calls.
    """

    def __init__(self, max_idle: int) -> None:
        self._max_idle = max_idle
        self._lock = threading.Lock()
        self._idle: list[_CallThread] = []
        self._pending: set[Future[Any]] = set()
        self._closed = False

    def call(self, function: Callable[[], T], seconds: float) -> T:
        """Call the function in another thread, in the context of the caller; return its result, or raise its error.

        Args:
            function: the function to call.
            seconds: timeout, in real time.

        Raises:
            CallAbandonedError: the call timed out, or ``close`` was called meanwhile.
        """
        thread = self._take()
        future = thread.begin(_in_this_context(function))
        with self._lock:
            self._pending.add(future)
            if self._closed:
                future.cancel()
        try:
            error = future.exception(seconds)
        except BaseException as problem:
            thread.end()
            if isinstance(problem, (TimeoutError, CancelledError)):
                raise CallAbandonedError from None
            raise
        finally:
            with self._lock:
                self._pending.discard(future)
        self._give_back(thread)
        if error is not None:
            raise error
        return future.result()

    def close(self) -> None:
        """Abandon the calls in progress, and end the idle threads."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            pending = list(self._pending)
        for thread in idle:
            thread.end()
        for future in pending:
            future.cancel()

    def _take(self) -> _CallThread:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _CallThread()

    def _give_back(self, thread: _CallThread) -> None:
        with self._lock:
            if len(self._idle) < self._max_idle and not self._closed:
                self._idle.append(thread)
                return
        thread.end()


def _in_this_context(function: Callable[[], T]) -> Callable[[], T]:
    context = contextvars.copy_context()
    return lambda: context.run(function)


def _make(function: Callable[[], T], future: "Future[T]") -> None:
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
        future.set_exception(error)
    else:
        future.set_result(result)
