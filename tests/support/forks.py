"""Real forks, watched: a child that hangs is killed, and the test fails."""

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
    """What ``work`` returns, or the exception that it raises, in a child of this process.

    Raises:
        TimeoutError: the child did not end in time. It was killed.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, as pre-forking servers do
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
            os.kill(child, signal.SIGUSR1)  # to have it print where it hangs
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
