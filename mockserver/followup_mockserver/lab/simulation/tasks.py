"""The tasks and callbacks of a simulated event loop, and what messages call them."""

import asyncio
import re
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

Task = asyncio.Task[Any]


def module_of(frame: Any) -> str:
    """Return the name of the module of a frame."""
    return str(frame.f_globals.get("__name__", ""))


def name_of(task: Task) -> str:
    """Return the name that somebody gave to a task; otherwise that of its function: numbers differ in each run."""
    name = task.get_name()
    return str(getattr(task.get_coro(), "__qualname__", name)) if re.fullmatch(r"Task-\d+", name) else name


def place_of(task: Task) -> str:
    """Return the innermost place of the clinic's own code where a task waits."""
    waiting: Any = task.get_coro()
    place = "outside of its own code"
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        if not module_of(frame).startswith("asyncio."):
            place = f"in {waiting.__qualname__}(), {Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        waiting = waiting.cr_await
    return place


class Callback(asyncio.TimerHandle):
    """A callback, which is due at an instant.

    Attributes:
        call: the function, and its arguments.
        task: the task whose next step it is; None if it is something else.
    """

    def __init__(
        self, when: float, function: Any, arguments: Any, loop: asyncio.AbstractEventLoop, context: Context | None
    ) -> None:
        self._context_to_run_in = context or copy_context()
        super().__init__(when, function, arguments, loop, self._context_to_run_in)
        self.call: tuple[Any, Any] = function, arguments
        owner = getattr(function, "__self__", None)
        self.task: Task | None = owner if isinstance(owner, asyncio.Task) else None
        self._owner = loop

    def run(self) -> None:
        """Call the function; the loop handles its exception."""
        # What asyncio.Handle has for this is private.
        function, arguments = self.call
        try:
            self._context_to_run_in.run(function, *arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as event loops do
            self._owner.call_exception_handler({"message": "", "exception": error, "handle": self})


class WatchedTask(asyncio.Task[Any]):
    """A task that knows whether anybody waits, or has waited, for its end."""

    is_watched: bool = False

    def add_done_callback(self, function: Any, /, *, context: Context | None = None) -> None:
        """Note that somebody waits; ``await``, ``gather`` and task groups do it in this way."""
        self.is_watched = True
        super().add_done_callback(function, context=context)
