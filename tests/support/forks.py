"""Real forks with a timeout: a child process that hangs is killed, and the test fails."""

import faulthandler
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any


def in_a_child(work: Callable[[], Any], *, seconds: float = 30) -> Any:
    """Call ``work`` in a forked child, and return its result or the exception that it raised.

    Raises:
        TimeoutError: the child did not end in time and was killed.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pre-forking servers, too, fork while threads run
        child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGUSR1, file=sys.__stderr__)
        _report(work, writing)
    os.close(writing)
    try:
        _wait(child, seconds)
        return pickle.loads(_all_of(reading))
    finally:
        os.close(reading)


def _report(work: Callable[[], Any], writing: int) -> None:
    try:
        try:
            outcome = work()
        except BaseException as error:
            outcome = error
        os.write(writing, pickle.dumps(outcome))
    finally:
        os._exit(0)


def _wait(child: int, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > ends:
            os.kill(child, signal.SIGUSR1)  # prints the stack of every thread of the child
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError("the child hangs")
        time.sleep(0.002)


def _all_of(reading: int) -> bytes:
    parts = []
    while part := os.read(reading, 65536):
        parts.append(part)
    return b"".join(parts)
