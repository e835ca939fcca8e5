"""The mutex of threads and asyncio tasks: a call that would block the event loop of a task is an error."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from followup_mockserver.state.runs import Turns

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
