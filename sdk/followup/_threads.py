"""Threads for work that has no timeout of its own: its caller can stop waiting for it."""

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Final, TypeVar

ATTEMPT_THREAD: Final = "followup-attempt"
"""Name of the threads that make an attempt. Their exceptions are raised in the thread of the caller."""


R = TypeVar("R")


class NoThreadError(Exception):
    """The process cannot start any more threads."""


def run_in_thread(work: Callable[[], None], name: str) -> None:
    """Run work in a daemon thread, with a copy of the caller's context.

    During shutdown the interpreter starts no threads. Then the work runs in this thread: without a time limit, but so
    that an ``atexit`` handler can still send the last events.

    Args:
        work: the function to run.
        name: name of the thread.

    Raises:
        NoThreadError: the process has reached its limit of threads. The work was not run.
    """
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=(work,), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        # Only the message shows the shutdown: ``sys.is_finalizing`` is still false in an ``atexit`` handler.
        if "shutdown" not in str(error):
            raise NoThreadError("no more threads can be started") from None
        work()
    except KeyError as error:
        # The clean-up of ``start`` fails if an exception of a signal handler came while the thread was starting.
        raise error.__context__ or error from None


def result_in_thread(work: Callable[[], R], name: str) -> "queue.SimpleQueue[R | BaseException]":
    """Run work as ``run_in_thread`` does, and return the queue that gets its result, or the exception it raised."""
    done: queue.SimpleQueue[R | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(work())
        except BaseException as error:  # noqa: BLE001 - the caller raises it in its own thread
            done.put(error)

    run_in_thread(run, name)
    return done


def result_within(seconds: float, work: Callable[[], R]) -> R:
    """Return the result of a request that limits each of its reads only. Its thread is abandoned at the time limit.

    Raises:
        TimeoutError: there is no result in time.
    """
    try:
        result = result_in_thread(work, ATTEMPT_THREAD).get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, BaseException):
        raise result
    return result
