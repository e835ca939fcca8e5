"""A task that holds the lock of a database goes on while others wait for the lock."""

import asyncio
import time
from pathlib import Path
from typing import Any

import aiosqlite
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
