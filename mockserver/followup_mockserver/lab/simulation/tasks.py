"""The tasks of a simulated event loop: the order in which they go on, and what reports call them."""

import asyncio
import inspect
import random
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

Task = asyncio.Task[Any]

UNDECIDED = -1.0
"""The priority of a task for which none has been drawn."""

_LATENCIES = (0.0, 0.0, 0.05, 1.0, 10.0)
"""Seconds that a request or a response may be under way, in simulated time."""

_CHANGE = 0.1
"""The probability that the task that went on is a slow one from now on."""


class TaskOrder:
    """The order in which ready tasks go on.

    Attributes:
        tasks: the tasks that have not ended, with their priorities.

    Args:
        number: 0 is the order in which they became ready, any other number a random one. With an odd number a task that
            is slow stays slow, and so does its network; with an even one, each choice is independent.
        tasks: the tasks that there are already.
    """

    def __init__(self, number: int = 0, tasks: Iterable[Task] = ()) -> None:
        self.tasks: dict[Task, float] = dict.fromkeys(tasks, UNDECIDED)
        self._number = number
        self._random = random.Random(number)  # noqa: S311 - it is reproducible on purpose
        self._latencies: WeakKeyDictionary[Task, float] = WeakKeyDictionary()

    def latency(self, task: Task | None) -> float:
        """Return for how many seconds a request or a response of a task is under way."""
        latency = self._random.choice(_LATENCIES) if self._number else 0.0
        return latency if task is None or self._number % 2 == 0 else self._latencies.setdefault(task, latency)

    def choice(self, ready: Mapping[int, Task]) -> int:
        """Return the key of the task that goes on."""
        keys = list(ready)
        if not self._number or len(keys) < 2:
            return keys[0]
        if self._number % 2 == 0:
            return keys[self._random.randrange(len(keys))]
        for task in ready.values():
            if self.tasks.get(task, UNDECIDED) < 0:
                self.tasks[task] = self._random.random()
        first = max(keys, key=lambda key: self.tasks[ready[key]])
        if self._random.random() < _CHANGE:
            self.tasks[ready[first]] = UNDECIDED
        return first


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


_WHAT_IS_SIMULATED = (
    "A simulation controls the tasks of asyncio, the clients that it made, aiosqlite, and the threads of "
    "asyncio.to_thread() and of anyio.to_thread.run_sync(), but no sockets, processes and other threads. "
    "Use SQLite in the simulation, or make the method an ordinary one that calls asyncio.run()."
)


class NotSimulated(RuntimeError):
    """The clinic uses something that a simulation cannot control."""


class UnconnectedLoop(asyncio.BaseEventLoop):
    """An event loop without sockets and processes.

    Attributes:
        refused: the first use of something that a simulation cannot control; None if there was none.
    """

    refused: NotSimulated | None = None

    def refusal(self, detail: str) -> NotSimulated:
        """Return the exception for the use of something that a simulation cannot control."""
        self.refused = self.refused or NotSimulated(f"{detail} {_WHAT_IS_SIMULATED}")
        return self.refused


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(self: UnconnectedLoop, *_: Any, **__: Any) -> Any:
        caller = inspect.currentframe()
        while caller is not None and module_of(caller).startswith(("asyncio.", __name__)):
            caller = caller.f_back
        raise self.refusal(f"{module_of(caller)} called {name}() on the event loop.")

    return refuse


for _name in (
    *("add_reader", "add_writer", "add_signal_handler", "getaddrinfo", "sock_connect", "connect_read_pipe"),
    *("create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection"),
    *("create_unix_server", "subprocess_exec", "subprocess_shell", "connect_write_pipe"),
):
    setattr(UnconnectedLoop, _name, _refuse(_name))
