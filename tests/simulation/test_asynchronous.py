"""Asynchronous clinics: one event loop on the simulated clock, whose order is part of the history, and its limits."""

import asyncio
import gc
import math
import time
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import aiosqlite
import anyio
import anyio.to_thread
import pytest
from support.integrations.asynchronous import Awaiting
from support.integrations.catalogue import promise_in
from support.plain_clinic import PlainClinic

from followup_mockserver.lab.simulation.history import (
    Book,
    CrashAtRequest,
    CrashNow,
    PassTime,
    TaskOrder,
    Work,
    seed_of,
)
from followup_mockserver.simulation import Booking, Clinic, simulate


def play(clinic: type[Clinic], *steps: Any) -> None:
    """Play exactly one history."""
    simulate(clinic, examples=1, seed=seed_of(steps))


class Noted(Clinic):
    """Books without the service, and notes what happens in a list of its class."""

    notes: list[Any]
    believed: dict[str, Any]

    def __init_subclass__(cls) -> None:
        cls.notes = []

    async def start(self, client: Any, folder: Path) -> None:
        self.tasks: list[asyncio.Task[Any]] = []

    async def book(self, booking: Booking) -> None:
        raise RuntimeError

    async def reschedule(self, booking: Booking) -> None: ...
    async def cancel(self, booking: Booking) -> None: ...
    async def bookings(self) -> dict[str, Any]:
        return {}


pytestmark = pytest.mark.filterwarnings("ignore:.*never made a booking")


def test_sleeps_and_timeouts_take_simulated_time() -> None:
    class Slow(Noted):
        async def book(self, booking: Booking) -> None:
            before = self.now()
            await asyncio.sleep(3600)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 60)
            self.notes.append((self.now() - before).total_seconds())
            raise RuntimeError

    play(Slow, Book(0, 0))
    assert Slow.notes == [pytest.approx(3660, abs=0.1)]


def test_background_tasks_go_on_while_time_passes_and_not_between_steps() -> None:
    class Background(Noted):
        async def book(self, booking: Booking) -> None:
            self.tasks.append(asyncio.create_task(self.later(booking.external_id)))
            raise RuntimeError

        async def later(self, name: str) -> None:
            await asyncio.sleep(30)
            self.notes.append(name)

    play(Background, Book(0, 0), Book(0, 0), CrashNow(), Book(0, 0), PassTime(1), CrashNow())
    assert Background.notes == ["B3"]


@pytest.mark.parametrize(("orders", "expected"), [([0], {"abc"}), (range(1, 32), {"abc", "bca", "cab", "cba"})])
def test_the_order_of_tasks_is_part_of_the_history(orders: Any, expected: set[str]) -> None:
    class Racing(Noted):
        async def book(self, booking: Booking) -> None:
            async def append(letter: str) -> str:
                await asyncio.sleep(0)
                order.append(letter)
                return letter

            order: list[str] = []
            await asyncio.gather(*map(append, "abc"))
            self.notes.append("".join(order))
            raise RuntimeError

    for order in [*orders, *orders]:
        play(Racing, TaskOrder(order), Book(0, 0))
    assert set(Racing.notes) >= expected
    assert Racing.notes[: len(orders)] == Racing.notes[len(orders) :]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_in_some_orders_the_network_takes_time(order: int) -> None:
    class Calling(Noted):
        async def book(self, booking: Booking) -> None:
            before = self.now()
            await asyncio.gather(*[self.async_client.account.retrieve() for _ in range(4)])
            self.notes.append(self.now() > before)
            raise RuntimeError

    play(Calling, TaskOrder(order), Book(0, 0))
    assert Calling.notes == [order > 0]


def test_a_crash_cancels_all_tasks_which_can_send_nothing_any_more() -> None:
    class Crashing(Noted):
        async def start(self, client: Any, folder: Path) -> None:
            await super().start(client, folder)
            self.tasks.append(asyncio.create_task(self.wait_for_ever()))

        async def wait_for_ever(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                self.notes.append("cancelled")
                await self.async_client.account.retrieve()
                self.notes.append("sent")

        async def book(self, booking: Booking) -> None:
            await asyncio.sleep(0)
            await self.async_client.account.retrieve()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(Crashing, CrashAtRequest(0, 1), Book(0, 0))
    assert Crashing.notes == ["cancelled", "cancelled"]


def test_ordinary_methods_run_outside_of_the_loop_and_threads_are_waited_for() -> None:
    class Mixed(Noted):
        def reschedule(self, booking: Booking) -> None: ...

        def book(self, booking: Booking) -> None:  # type: ignore[override]
            asyncio.run(asyncio.sleep(0))
            self.notes.append("book")
            raise RuntimeError

        async def work(self) -> None:
            assert await asyncio.to_thread(lambda: 1) + await anyio.to_thread.run_sync(lambda: 2) == 3
            self.notes.append("work")

    original = anyio.to_thread.run_sync
    play(Mixed, Book(0, 0))
    assert Mixed.notes[:2] == ["book", "work"]
    assert anyio.to_thread.run_sync is original


def test_the_exception_of_a_background_task_is_named() -> None:
    class Losing(Noted):
        async def book(self, booking: Booking) -> None:
            self.tasks.append(asyncio.create_task(self.fail(), name="sender"))

        async def fail(self) -> None:
            raise LookupError

    with pytest.raises(AssertionError, match=r"A background task \(sender\) raised LookupError\."):
        play(Losing, Book(0, 0), PassTime(1))


async def spin() -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def spin_beside_a_timer() -> None:
    timer = asyncio.create_task(asyncio.sleep(60), name="timer")
    await spin()
    await timer


@pytest.mark.parametrize(
    "wait",
    [lambda: asyncio.Event().wait(), lambda: asyncio.sleep(math.inf), anyio.sleep_forever, spin, spin_beside_a_timer],
)
def test_a_method_that_never_returns_is_a_violation(wait: Any) -> None:
    class Stuck(Noted):
        async def book(self, booking: Booking) -> None:
            await wait()

    with pytest.raises(AssertionError, match=r"book\(\) .*in .*\(\), .*\.py, line") as found:
        play(Stuck, Book(0, 0))
    assert promise_in(found.value) == "Every method of the clinic returns in the end."


def test_a_background_task_that_sleeps_for_ever_is_no_violation() -> None:
    class Sleeping(Noted):
        async def start(self, client: Any, folder: Path) -> None:
            self.sleeper = asyncio.create_task(anyio.sleep_forever())

    play(Sleeping, Book(0, 0), PassTime(6))


def test_anyio_cancels_tasks() -> None:
    class Cancelling(Noted):
        async def work(self) -> None:
            before = self.now()
            with anyio.move_on_after(2) as scope:
                try:
                    await anyio.sleep(100)
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.sleep(3)
            assert scope.cancelled_caught
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep_forever)
                tasks.cancel_scope.cancel()
            self.notes.append(round((self.now() - before).total_seconds()))

    for order in range(4):
        play(Cancelling, TaskOrder(order), Book(0, 0))
    assert set(Cancelling.notes) == {5}


def test_in_an_event_loop_ordinary_methods_are_outside_of_it() -> None:
    class Running(Noted):
        def work(self) -> None:  # type: ignore[override]
            asyncio.run(asyncio.sleep(0))
            self.notes.append("work")

    async def simulates() -> bool:
        loop = asyncio.get_running_loop()
        play(Running, Book(0, 0))
        await asyncio.sleep(0)
        return asyncio.get_running_loop() is loop

    assert asyncio.run(simulates())
    assert Running.notes


def test_nothing_of_a_history_lives_after_it() -> None:
    class Counted(Awaiting):
        instances: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

        async def start(self, client: Any, folder: Path) -> None:
            self.instances.add(self)
            await super().start(client, folder)

    play(Counted, Book(0, 0), CrashNow(), Book(1, 0))
    gc.collect()
    assert list(Counted.instances) == []


async def connect(_: Any) -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def call_from_a_thread(clinic: Any) -> None:
    import threading

    loop = asyncio.get_running_loop()
    thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(print), name="their own")
    thread.start()
    thread.join()
    await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (connect, r"test_asynchronous called create_connection\(\) on the event loop"),
        (call_from_a_thread, r"The thread their own called call_soon_threadsafe\(\)"),
    ],
)
def test_what_cannot_be_simulated_is_an_error_that_names_it(use: Any, message: str) -> None:
    class Uncontrolled(Noted):
        async def book(self, booking: Booking) -> None:
            await use(self)

    with pytest.raises(RuntimeError, match=message):
        play(Uncontrolled, Book(0, 0))


# --- threads and locks -----------------------------------------------------------------------------------------------

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
    play(TwoWriters, Book(0, 0), Work())
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

    play(WritesInTheBackground, Book(0, 0), Work())
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

    play(Threaded, Book(0, 0), Work(), Book(1, 0))
