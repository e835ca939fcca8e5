"""Many threads and tasks at the same time: locks and turns."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.control.engine.jobs import MAX_THREADS, Workers
from followup_mockserver.deliveries.applications import EventLoopThread
from followup_mockserver.deliveries.receivers import Mounts
from followup_mockserver.gateway.pipeline import match_fault
from followup_mockserver.world.state.runs import Turns

MANY = 16
FAULTS = 5_000
URL = "https://clinic.example/hooks"


@pytest.fixture(autouse=True)
def threads_take_turns_all_the_time() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def together(*functions: Callable[[], object]) -> None:
    """Call functions in a thread each, which begin at the same time, and raise the first exception."""
    barrier, errors = threading.Barrier(len(functions)), []

    def run(function: Callable[[], object]) -> None:
        barrier.wait(60)
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in functions]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    if errors:
        raise errors[0]


def test_each_fault_applies_to_one_of_many_calls() -> None:
    service = MockService()
    for _ in range(FAULTS):
        service.add_fault(operation="account.retrieve", kind="delay", seconds=1)
    call: Any = SimpleNamespace(operation=SimpleNamespace(name="account.retrieve"))
    found: list[str] = []
    tenant = access_to(service).tenant

    def match() -> None:
        exchange: Any = SimpleNamespace(tenant=tenant, request=call, fault=None)
        while tenant.faults.pending:
            match_fault(exchange)
            found.extend([] if exchange.fault is None else [exchange.fault.id])
            exchange.fault = None

    together(*[match] * MANY)
    assert len(found) == len(set(found)) == FAULTS


def test_a_snapshot_while_keys_are_added() -> None:
    service = MockService()
    together(
        *[lambda: [service.add_api_key() for _ in range(100)]] * (MANY // 2),
        *[lambda: [access_to(service).registry.copy() for _ in range(10)]] * (MANY // 2),
    )
    assert len(service.save()["organizations"][0]["apiKeys"]) == 1 + 100 * MANY // 2


def test_coroutines_of_many_threads_share_one_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, found = EventLoopThread(), []
    make = asyncio.new_event_loop
    # Slowly, so that the other threads arrive meanwhile.
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: (time.sleep(0.1), make())[1])

    async def where() -> int:
        return threading.get_ident()

    together(*[lambda: found.append(loop.submit(where).result(60))] * MANY)
    loop.close()
    assert len(found) == MANY
    assert len(set(found)) == 1


def receive(_: httpx.Request) -> httpx.Response:
    return httpx.Response(204)


def test_receivers_are_found_while_others_are_mounted() -> None:
    mounts = Mounts()

    def mount(thread: int) -> None:
        for number in range(100):
            mounts.add(f"{URL}/{thread}/{number}", receive)

    def find() -> None:
        for _ in range(100):
            mounts.at(f"{URL}/0/0/0")

    together(*[lambda thread=thread: mount(thread) for thread in range(MANY // 2)], *[find] * (MANY // 2))
    assert len(mounts.urls()) == 100 * MANY // 2


TIMEOUT = 10.0


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread, so that a deadlock fails the test."""
    ended: Future[None] = Future()

    def work() -> None:
        try:
            ended.set_result(asyncio.run(main))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    ended.result(TIMEOUT)


async def hold(turns: Turns) -> None:
    async with turns.held_by_task():
        await asyncio.sleep(0)


def expect_error(turns: Turns) -> None:
    with pytest.raises(RuntimeError, match="this call would block it"), turns.held():
        pass


@pytest.mark.parametrize("steps", range(6))
def test_a_task_that_has_asked_is_not_blocked_at_any_step(steps: int) -> None:
    async def main() -> None:
        turns = Turns()
        task = asyncio.create_task(hold(turns))
        await asyncio.sleep(0)  # it has asked
        for _ in range(steps):
            await asyncio.sleep(0)
        if not task.done():
            expect_error(turns)
        await task
        with turns.held():
            assert not turns.take()
        assert turns.take()

    run(main())


def test_a_task_that_waits_for_a_thread_is_not_blocked() -> None:
    async def main() -> None:
        turns, may_end = Turns(), threading.Event()

        def hold_in_thread(holds: Future[None]) -> None:
            with turns.held():
                holds.set_result(None)
                assert may_end.wait(TIMEOUT)

        holds: Future[None] = Future()
        thread = threading.Thread(target=hold_in_thread, args=(holds,), daemon=True)
        thread.start()
        await asyncio.wrap_future(holds)
        task = asyncio.create_task(hold(turns))
        await asyncio.sleep(0)
        expect_error(turns)
        may_end.set()
        thread.join(TIMEOUT)
        expect_error(turns)  # the turn is that of the task now, which has not continued yet
        await task
        assert turns.take()

    run(main())


def test_a_cancelled_task_does_not_keep_its_turn() -> None:
    async def main() -> None:
        turns = Turns()
        first, second = asyncio.create_task(hold(turns)), asyncio.create_task(hold(turns))
        await asyncio.sleep(0)
        second.cancel()
        await first
        await asyncio.gather(second, return_exceptions=True)
        assert second.cancelled()
        with turns.held():
            pass
        assert turns.take()

    run(main())


def test_receivers_that_hang_share_a_limited_number_of_threads() -> None:
    workers, released = Workers(), threading.Event()
    began, ended = threading.Semaphore(0), threading.Semaphore(0)

    def hang() -> None:
        began.release()
        released.wait(60)
        ended.release()

    for number in range(100):
        workers.submit(f"https://{number}.example", hang)
    assert all(began.acquire(timeout=60) for _ in range(MAX_THREADS))
    assert not began.acquire(timeout=0.1)
    released.set()
    assert all(ended.acquire(timeout=60) for _ in range(100))


def test_a_task_waits_while_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, done = Workers(), threading.Semaphore(0)

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        for _ in range(10):
            workers.submit(URL, done.release)
    workers.submit("https://other.example", done.release)
    assert all(done.acquire(timeout=60) for _ in range(11))


def test_a_task_that_fails_frees_the_slot_of_its_receiver(caplog: pytest.LogCaptureFixture) -> None:
    workers, done = Workers(), threading.Event()
    for _ in range(10):
        workers.submit(URL, sys.exit)
    workers.submit(URL, done.set)
    assert done.wait(60)
    assert "SystemExit" in caplog.text
