"""Threads on which code of somebody else's can be waited for with a limit, and left behind when it exceeds it."""

import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any, TypeVar

T = TypeVar("T")


class LeftBehindError(Exception):
    """A call was not waited for any longer; it goes on in its own thread, and what comes of it is ignored."""


class _Helper:
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="followup-mock-receiver", daemon=True).start()

    def begin(self, function: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._calls.put((function, future))
        return future

    def end(self) -> None:
        """End after the call that is under way."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, future = call
            try:
                _make(function, future)
            except InvalidStateError:
                continue  # it was left behind meanwhile


class Helpers:
    """Makes calls in other threads, in the context of the caller. Safe to use from several threads.

    Args:
        most_kept: threads that are kept for the next call.
    """

    def __init__(self, most_kept: int) -> None:
        self._most_kept = most_kept
        self._lock = threading.Lock()
        self._idle: list[_Helper] = []
        self._waited_for: set[Future[Any]] = set()
        self._closed = False

    def call(self, function: Callable[[], T], seconds: float) -> T:
        """Return what the function returns, and raise what it raises.

        Raises:
            LeftBehindError: it took longer, or the helpers were closed meanwhile.
        """
        helper = self._take()
        future = helper.begin(_in_this_context(function))
        with self._lock:
            self._waited_for.add(future)
            if self._closed:
                future.cancel()
        try:
            error = future.exception(seconds)
        except BaseException as problem:
            helper.end()
            if isinstance(problem, (TimeoutError, CancelledError)):
                raise LeftBehindError from None
            raise
        finally:
            with self._lock:
                self._waited_for.discard(future)
        self._give_back(helper)
        if error is not None:
            raise error
        return future.result()

    def close(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            waited_for = list(self._waited_for)
        for helper in idle:
            helper.end()
        for future in waited_for:
            future.cancel()

    def _take(self) -> _Helper:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Helper()

    def _give_back(self, helper: _Helper) -> None:
        with self._lock:
            if len(self._idle) < self._most_kept and not self._closed:
                self._idle.append(helper)
                return
        helper.end()


def _in_this_context(function: Callable[[], T]) -> Callable[[], T]:
    context = contextvars.copy_context()
    return lambda: context.run(function)


def _make(function: Callable[[], T], future: "Future[T]") -> None:
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        future.set_exception(error)
    else:
        future.set_result(result)
