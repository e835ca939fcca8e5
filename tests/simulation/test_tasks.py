"""Tasks that hold a lock go on, and threads that work for tasks are waited for."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from support.plain_clinic import PlainClinic

from followup_mockserver.lab.simulation.history import Book, Work, seed_of
from followup_mockserver.simulation import Booking, simulate

PATIENCE = 100.0
"""Seconds for which SQLite waits for a lock, far more than a test takes."""


async def write(path: Path) -> None:
    async with aiosqlite.connect(path, timeout=PATIENCE, isolation_level=None) as database:
        await database.execute("BEGIN IMMEDIATE")
        await database.execute("CREATE TABLE IF NOT EXISTS notes (id)")
        await database.execute("COMMIT")


def test_a_task_with_a_lock_goes_on_while_another_one_waits_for_it() -> None:
    class TwoWriters(PlainClinic):
        def start(self, client: Any, folder: Path) -> None:
            super().start(client, folder)
            self.path = folder / "notes.db"

        async def book(self, booking: Booking) -> None:  # type: ignore[override]
            await asyncio.gather(write(self.path), write(self.path))
            super().book(booking)

    before = time.monotonic()
    simulate(TwoWriters, examples=1, seed=seed_of((Book(0, 0), Work())))
    assert time.monotonic() - before < PATIENCE


def test_an_ordinary_work_does_not_begin_while_a_task_that_is_ready_may_hold_a_lock() -> None:
    found: list[bool] = []

    class WritesInTheBackground(PlainClinic):
        is_locked = False

        async def write(self) -> None:
            self.is_locked = True
            for _ in range(50):
                await asyncio.sleep(0)
            self.is_locked = False

        async def book(self, booking: Booking) -> None:  # type: ignore[override]
            super().book(booking)
            self.task = asyncio.create_task(self.write())
            await asyncio.sleep(0)

        def work(self) -> None:
            found.append(self.is_locked)
            super().work()

    simulate(WritesInTheBackground, examples=1, seed=seed_of((Book(0, 0), Work())))
    assert found
    assert not any(found)


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
