"""Many threads and tasks at the same time: locks and turns."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.control.background import Workers
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


def receive(_: httpx.Request) -> httpx.Response:
    return httpx.Response(204)


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


def test_a_task_that_fails_frees_the_slot_of_its_receiver(caplog: pytest.LogCaptureFixture) -> None:
    workers, done = Workers(), threading.Event()
    for _ in range(10):
        workers.submit(URL, sys.exit)
    workers.submit(URL, done.set)
    assert done.wait(60)
    assert "SystemExit" in caplog.text
