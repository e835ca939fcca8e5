"""A client that is interrupted at random moments: ``python interrupts.py MODE URL INTERRUPTIONS SEED``.

It makes calls until so many were interrupted, and prints how many it made and how many were interrupted, the slowest
call in seconds, and the number of sockets that are left open.
"""

import asyncio
import faulthandler
import gc
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from followup import AsyncFollowUp, FollowUp
from followup._core.call import retries

DEADLINE = 5
PATIENCE = 60
"""Seconds after which a call that hangs is reported, with the stacks of all threads."""


class SoftTimeLimit(Exception):
    """Raised by the signal handler, as that of a task queue does."""


class Interrupted:
    """Makes calls, with a signal within the usual duration of one."""

    def __init__(self, interrupt: type[BaseException], random: Random, wanted: int) -> None:
        self.interrupt = interrupt
        self.random = random
        self.wanted = wanted
        self.calls = 0
        self.interruptions = 0
        self.slowest = 0.0
        self.within = 0.005
        self.is_calling = False
        self.packages: tuple[str, ...] = ()  # where to interrupt; empty for anywhere
        signal.signal(signal.SIGALRM, self._handle)

    def _handle(self, _: int, frame: Any) -> None:
        if self.packages and frame.f_globals["__name__"].partition(".")[0] not in self.packages:
            if self.is_calling:
                signal.setitimer(signal.ITIMER_REAL, 5e-4)
        else:
            raise self.interrupt

    @property
    def is_done(self) -> bool:
        """Whether enough calls were interrupted. The limit is far off: about half of the calls are interrupted."""
        return self.interruptions >= self.wanted or self.calls >= 50 * self.wanted

    def call(self, make: Callable[[], Any]) -> None:
        self.calls += 1
        began = time.monotonic()
        try:
            try:
                self.is_calling = True
                signal.setitimer(signal.ITIMER_REAL, self.random.uniform(1e-5, self.within))
                make()
            finally:
                self.is_calling = False
                signal.setitimer(signal.ITIMER_REAL, 0)
            self.within *= 0.95
        except self.interrupt:
            self.interruptions += 1
            self.within *= 1.05  # so that about half of the calls are interrupted, however slow the machine is
        self.slowest = max(self.slowest, time.monotonic() - began)


def interrupt_calls(interrupted: Interrupted, client: FollowUp) -> None:
    """Interrupt calls in this thread. Those of two others must all succeed."""
    stopped = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not stopped.wait(0.001):
                client.patients.retrieve("pat_1")
        except BaseException as error:
            failures.append(error)

    others = [threading.Thread(target=work) for _ in range(2)]
    for each in others:
        each.start()
    while not interrupted.is_done:
        with suppress(interrupted.interrupt):  # a signal that is handled late
            interrupted.call(lambda: client.patients.retrieve("pat_1"))
    stopped.set()
    for each in others:
        each.join()
    client.patients.retrieve("pat_1")
    client.close()
    assert not failures, failures


def interrupt_event_loop(interrupted: Interrupted, client: AsyncFollowUp) -> None:
    """Interrupt tasks in an event loop, and use it again. The loop itself does not survive an exception."""
    interrupted.packages = ("followup", "httpx", "httpcore", "h11")
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)

    def call() -> None:
        loop.run_until_complete(client.patients.retrieve("pat_1"))

    while not interrupted.is_done:
        with suppress(Exception):  # anyio puts the interrupt into a group, or raises an error of its own
            interrupted.call(call)
        for each in asyncio.all_tasks(loop):
            each.cancel()
            with suppress(asyncio.CancelledError, interrupted.interrupt):
                loop.run_until_complete(each)
    call()
    loop.run_until_complete(client.close())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()


def main() -> None:
    """Make the calls, and print the figures."""
    mode, url, wanted, seed = sys.argv[1:]
    logging.disable()
    sys.unraisablehook = lambda _: None  # an interrupt within a finalizer
    faulthandler.dump_traceback_later(PATIENCE + float(wanted) / 10, exit=True)
    retries.FIRST_BACKOFF = 0.001
    interrupted = Interrupted(KeyboardInterrupt if mode == "keyboard" else SoftTimeLimit, Random(seed), int(wanted))
    options: dict[str, Any] = {"api_key": "fu_test_x", "base_url": url, "deadline": DEADLINE}
    if mode == "asyncio":
        interrupt_event_loop(interrupted, AsyncFollowUp(**options))
    else:
        interrupt_calls(interrupted, FollowUp(**options, requests_per_minute=1_000_000))
    gc.collect()
    left = [each for each in gc.get_objects() if type(each) is socket.socket and each.fileno() >= 0]
    print(interrupted.calls, interrupted.interruptions, interrupted.slowest, len(left))


if __name__ == "__main__":
    main()
