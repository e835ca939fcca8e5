"""A task gets the result of its thread, however fast the thread is, and whether or not it began."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from support.plain_clinic import PlainClinic

from followup_mockserver.lab.simulation.history import Book, Work, seed_of
from followup_mockserver.simulation import Booking, simulate


class Immediate(Executor):
    """An executor that has done its work before it returns, as a fast thread may."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future


class NeverBegins(Executor):
    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        return Future()


async def in_a_thread(executor: Executor | None) -> None:
    await asyncio.get_running_loop().run_in_executor(executor, lambda: None)


async def cancelled() -> None:
    waiting = asyncio.ensure_future(in_a_thread(NeverBegins()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    with ThreadPoolExecutor(1) as pool:
        await in_a_thread(pool)


async def slow_beside_a_cancelled_timer() -> None:
    asyncio.get_running_loop().call_later(3600, lambda: None).cancel()
    await asyncio.to_thread(time.sleep, 0.5)  # in real time, for which the simulation has to wait


@pytest.mark.parametrize("work", [lambda: in_a_thread(Immediate()), cancelled, slow_beside_a_cancelled_timer])
def test_a_task_goes_on(work: Callable[[], Any]) -> None:
    class Threaded(PlainClinic):
        async def book(self, booking: Booking) -> None:  # type: ignore[override]
            await work()
            super().book(booking)

    simulate(Threaded, examples=1, seed=seed_of((Book(0, 0), Work(), Book(1, 0))))
