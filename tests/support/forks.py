"""Work in a forked child: a child that hangs is killed, and the test fails."""

import faulthandler
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest


def forking() -> Any:
    """Return what starts forked processes; skip the test where there are none."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    return multiprocessing.get_context("fork")


def in_a_child(work: Callable[[], Any]) -> Any:
    """Call ``work`` in a forked child, and return its result or the exception that it raised.

    Raises:
        TimeoutError: the child did not end in time and was killed.
    """
    fork = forking()
    reading, writing = fork.Pipe(duplex=False)

    def report() -> None:
        faulthandler.register(signal.SIGUSR1, file=sys.__stderr__)
        try:
            outcome = work()
        except BaseException as error:
            outcome = error
        try:
            writing.send(outcome)
        finally:
            os._exit(0)

    child = fork.Process(target=report)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pre-forking servers, too, fork while threads run
        child.start()
    writing.close()
    try:
        if not reading.poll(60):
            os.kill(child.pid or 0, signal.SIGUSR1)  # prints the stack of every thread of the child
            time.sleep(1)
            raise TimeoutError("the child hangs")
        return reading.recv()
    finally:
        reading.close()
        child.kill()
        child.join()
