"""Threads for work that has no timeout of its own, and a lock that forks wait for, so that it is free in the child.

A caller can stop waiting for work in such a thread. A child process inherits the memory and only the thread that
forked. A lock that another thread held at that moment is never released in the child: neither a lock of ours nor
OpenSSL's while certificates are loaded. So such work is done under ``unforked``, and a fork waits until it is finished.
"""

import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TypeVar

# Re-entrant, because a finalizer or signal handler that forks may run in the thread that holds it.
_lock = threading.RLock()


def unforked() -> AbstractContextManager[object]:
    """Let forks, and other threads that enter such a block, wait until this with block ends.

    This is the lock itself and no generator: it is written in C, so that the exception of a signal handler is never
    raised between its acquisition and the block, which would leave it taken for ever.
    """
    return _lock


def _renew() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_renew)


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
    # A daemon, because an abandoned lookup may hang for minutes, and the process must be able to end.
    thread = threading.Thread(target=run, args=(work,), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        # Only the message shows the shutdown: ``sys.is_finalizing`` is still false in an ``atexit`` handler.
        if "shutdown" not in str(error):
            raise NoThreadError("no more threads can be started") from None
        work()


def start_thread(work: Callable[[], R], name: str) -> Future[R]:
    """Run work as ``run_in_thread`` does, and return the future of its result, which cannot be cancelled."""
    result: Future[R] = Future()
    result.set_running_or_notify_cancel()  # else asyncio.wrap_future would cancel it with its task

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the caller raises it in its own thread
            result.set_exception(error)

    run_in_thread(run, name)
    return result


def result_within(seconds: float | None, work: Callable[[], R], name: str = "followup") -> R:
    """Return the result of work that does not limit its time itself. Its thread is abandoned at the time limit.

    Raises:
        TimeoutError: there is no result in time.
    """
    return start_thread(work, name).result(seconds)


def stop_signals() -> list[int]:
    """Return the signals that ask this process to end. On Windows, Ctrl-Break is one, which process managers send.

    A signal that is ignored asks for nothing: a shell ignores Ctrl-C for what a script starts in the background.
    """
    import signal  # imported late: only programs that run until they are stopped need it

    found = (getattr(signal, name, None) for name in ("SIGTERM", "SIGINT", "SIGBREAK"))
    return [each for each in found if each is not None and signal.getsignal(each) != signal.SIG_IGN]


def is_address(host: str) -> bool:
    """Return whether a host is an IP address and no name."""
    import ipaddress  # imported late, as socket below

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def addresses_of(host: str, port: int) -> list[str]:
    """Look up the addresses of a host, which may take any time: call it in one of the threads above.

    Raises:
        OSError: the host has no address.
    """
    import socket  # imported late: a client that makes no call does not need it

    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except UnicodeError as error:  # a label of more than 63 characters
        raise OSError(str(error)) from None
