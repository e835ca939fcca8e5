"""Carries out the steps of calls: ``drive`` in a thread, ``drive_async`` in a task; the contract is in ``_call``.

They sleep in the time of the client, which is virtual in a test with the mock.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from followup._core.call.steps import Outcome, Send, Steps, Wait
from followup._core.time import Time

R = TypeVar("R")


def drive(steps: Steps[R], send: Callable[[Send], Outcome], time: Time) -> R:
    """Carry out the steps in this thread, and return their result."""
    outcome: Outcome | None = None
    try:
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return cast("R", done.value)
            outcome = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            else:
                outcome = send(step)
    finally:
        steps.close()


async def drive_async(steps: Steps[R], send: Callable[[Send], Awaitable[Outcome]], time: Time) -> R:
    """Carry out the steps in this task, and return their result."""
    outcome: Outcome | None = None
    try:
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return cast("R", done.value)
            outcome = None
            if isinstance(step, Wait):
                await time.sleep_async(step.seconds)
            else:
                outcome = await send(step)
    finally:
        steps.close()
