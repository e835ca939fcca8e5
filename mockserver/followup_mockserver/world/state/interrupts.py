"""Interrupts, such as Ctrl-C or the alarm of a time limit, wait while the main thread changes the state of a mock.

A signal handler may raise an exception between any two instructions of the main thread. An exception within a change of
the state would lose a job, or leave behind a lock or a turn that is never released. While interrupts are deferred, the
handlers are called later: at the end, or at a point that the code chooses because nothing is half done there.
"""

import signal
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_TICK = 0.05
"""Seconds after which a wait checks whether there was an interrupt."""

_NAMES = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2"]
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class _State:
    """Whether the main thread defers interrupts now, and the handlers that have not been called yet."""

    deferring = False
    pending: "list[Callable[[], object]]" = []  # noqa: RUF012 - there is one main thread


class _Deferring:
    """A signal handler that calls another one, now or later."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _State.deferring:
            _State.pending.append(lambda: self.handler(number, frame))
        else:
            self.handler(number, frame)


class deferred_interrupts:  # noqa: N801 - a context manager, used like a function; faster than a generator
    """Defer interrupts of the main thread until the end of the block. Without effect in other threads."""

    def __enter__(self) -> None:
        """Replace the signal handlers."""
        self._installed: list[tuple[int, _Deferring]] = []
        self._before: bool | None = None
        if not _in_main_thread():
            return
        try:
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler) and not isinstance(handler, _Deferring):
                    deferring = _Deferring(handler)
                    self._installed.append((number, deferring))
                    signal.signal(number, deferring)
            self._before, _State.deferring = _State.deferring, True
        except ValueError:  # the main thread of an interpreter that is not the main one, which no signal reaches
            return
        except BaseException:
            self._restore()
            raise

    def __exit__(self, *_: object) -> None:
        """Restore the handlers, and call those of the signals that have arrived."""
        if self._before is None:
            return
        try:
            self._restore()
        finally:
            _State.deferring = self._before
            if not self._before:
                call_deferred()

    def _restore(self) -> None:
        """Restore the handlers, also if one that has been restored already raises."""
        while self._installed:
            try:
                number, installed = self._installed[-1]
                current = signal.getsignal(number)
                if isinstance(current, _Deferring) and current is installed:
                    signal.signal(number, current.handler)
                self._installed.pop()
            finally:
                self._restore()


def call_deferred() -> None:
    """Call the handlers of the signals that have arrived while interrupts were deferred; they may raise."""
    if _State.pending and _in_main_thread():
        handler = _State.pending.pop(0)
        try:
            handler()
        finally:
            call_deferred()


def interruptible(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that interrupts may end at any time, even if they are deferred otherwise."""
    if not _is_deferring():
        return function(*args, **kwargs)
    try:
        _State.deferring = False
        call_deferred()
        return function(*args, **kwargs)
    finally:
        _State.deferring = True


def wait_for(future: Future[T], seconds: float | None = None) -> bool:
    """Wait until a future is done, and return whether it is; an interrupt ends the wait.

    Args:
        future: the future.
        seconds: maximum number of seconds; None to wait without limit.
    """
    if not _is_deferring():
        futures.wait([future], seconds)
        return future.done()
    while not future.done() and (seconds is None or seconds > 0):
        futures.wait([future], _TICK if seconds is None else min(seconds, _TICK))
        seconds = None if seconds is None else seconds - _TICK
        call_deferred()
    return future.done()


def wait_on(condition: threading.Condition, seconds: float | None = None) -> None:
    """Wait for a notification, which may be a wrong one; an interrupt ends the wait. The caller holds the lock."""
    if _is_deferring():
        seconds = _TICK if seconds is None else min(seconds, _TICK)
    condition.wait(seconds)
    call_deferred()


def _is_deferring() -> bool:
    return _State.deferring and _in_main_thread()


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident
