"""The event loop of an asynchronous clinic, on the clock of the simulation.

Nothing in it depends on how fast the machine is: time passes only when no task can go on, a thread that works for a
task is waited for, and which of several tasks goes on follows from the history.
"""

import asyncio
import contextlib
import contextvars
import queue
import random
import re
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NoReturn, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

import anyio.to_thread

from followup._for_mockserver import Time
from followup_mockserver.simulation.promises import RETURNS, PromiseBroken

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

_MOST_CALLBACKS = 20_000
"""How many callbacks may run without any time passing."""

_MOST_WAITS = 1_000
"""How often time may pass before a method returns."""

_NEVER = 1e9
"""Seconds; a timer that is due later, such as that of ``anyio.sleep_forever()``, is due never."""

_MICROSECOND = 1e-6

_PATIENCE = 0.2
"""Seconds, in real time, after which a thread is taken to wait for a lock that another task holds."""

_LONGEST_THREAD = 60.0
"""Seconds, in real time, within which a thread must end if nothing else can run."""

_LATENCIES = (0.0, 0.0, 0.05, 1.0, 10.0)
"""Seconds that a request or a response may be under way, in simulated time."""

_THREADED = ("aiosqlite.core", "sqlalchemy.dialects.sqlite.aiosqlite")
"""Modules whose futures get their results from a thread."""

_CHANGE = 0.1
"""The probability that the task that went on is a slow one from now on."""

_CLEANUPS = 5
"""How often a task is cancelled that goes on in spite of it."""


Wait = Callable[[float | None], bool]
"""Lets so many seconds pass, or the time until the next webhook if it is None; returns whether there is one."""


class NotSimulated(RuntimeError):
    """The clinic uses something that a simulation cannot control."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop that runs only while the simulation lets it, in the thread that created it.

    Attributes:
        refused: the first use of something that a simulation cannot control; None if there was none.

    Args:
        time: the simulated time.
        wait: lets time pass.
        check: raises an exception if the process that the loop belongs to is over.
    """

    _depth = 0  # the base class asks whether it runs before it is initialized

    def __init__(self, time: Time, wait: Wait, check: Callable[[], None]) -> None:
        super().__init__()
        self.refused: NotSimulated | None = None
        self._clock = time
        self._wait = wait
        self._check = check
        self._thread = threading.get_ident()

        self._handles: list[asyncio.Handle] = []
        self._repeated: list[asyncio.Handle] = []
        self._timers: list[asyncio.TimerHandle] = []
        self._tasks: dict[asyncio.Task[Any], float] = {}
        self._latencies: WeakKeyDictionary[asyncio.Task[Any], float] = WeakKeyDictionary()
        self._failed: list[asyncio.Task[Any]] = []
        self._errors: list[tuple[str, BaseException]] = []
        self._posts: queue.SimpleQueue[tuple[str, asyncio.Handle, tuple[Any, ...]]] = queue.SimpleQueue()
        self._owed: dict[object, asyncio.Handle | None] = {}
        self._connections: dict[int, Any] = {}
        self._is_submitting = False
        self.set_order(0)

    # --- what the simulation does ------------------------------------------------------------------------------------

    def set_order(self, order: int) -> None:
        """Choose the order in which ready tasks go on: 0 is the one in which they became ready, any other is random.

        With an odd number a task that is slow stays slow, and so does its network; with an even one, each choice is
        independent.
        """
        self._order = order
        self._random = random.Random(order)  # noqa: S311 - it is reproducible on purpose
        self._tasks = dict.fromkeys(self._tasks, -1.0)
        self._latencies.clear()

    def latency(self) -> float:
        """Return for how many seconds a request or a response of the current task is under way."""
        latency = self._random.choice(_LATENCIES) if self._order else 0.0
        task = asyncio.current_task(self)
        return latency if task is None or self._order % 2 == 0 else self._latencies.setdefault(task, latency)

    def run(self, coroutine: Any, name: str) -> Any:
        """Run a coroutine to its end, and other tasks meanwhile; return its result.

        Raises:
            PromiseBroken: it waits for something that never happens.
            NotSimulated: a thread did not end.
            BaseException: what it raised.
        """
        with self._running():
            task = self.create_task(coroutine, name=name)
        for _ in range(_MOST_WAITS):
            for _ in range(_MOST_CALLBACKS):
                if task.done():
                    return task.result()
                if not self._step():
                    break
            else:
                self._never_rest(f"{name} does not return, {_place_of(task)}. ")
            if not self._wait(self.seconds_to_timer()):
                break
            self._check()
        raise PromiseBroken(RETURNS, f"{name} waits for something that never happens, {_place_of(task)}.")

    def settle(self) -> None:
        """Run what is ready, until all tasks wait for time to pass or for something from outside."""
        for _ in range(_MOST_CALLBACKS):
            if not self._step():
                return
        self._never_rest()

    def _never_rest(self, what: str = "") -> NoReturn:
        names = ", ".join(map(_name_of, self._tasks)) or "callbacks of the event loop"
        raise PromiseBroken(RETURNS, f"{what}Without waiting, these go on for ever: {names}.")

    def seconds_to_timer(self) -> float | None:
        """Return in how many seconds the next timer is due; None if there is none."""
        self._timers = [each for each in self._timers if not each.cancelled()]
        next_at = min((each.when() for each in self._timers), default=None)
        seconds = None if next_at is None else max(0.0, next_at - self.time())
        return None if seconds is None or seconds > _NEVER else seconds

    def lost_errors(self) -> Iterator[tuple[str, BaseException]]:
        """Yield the exceptions of background tasks that nobody has retrieved so far, with the names of the tasks."""
        failed, self._failed = self._failed, []
        errors, self._errors = self._errors, []
        for task in failed:
            if getattr(task, "_log_traceback", True) and isinstance(error := task.exception(), Exception):
                yield f"A background task ({_name_of(task)})", error
        yield from errors

    def end(self) -> None:
        """Cancel all tasks, let them and their threads end without any more time, and close the loop."""
        self._check = lambda: None
        self.set_order(0)
        for _ in range(_CLEANUPS):
            with self._running():
                for task in [*self._tasks, *(asyncio.all_tasks(self) - self._tasks.keys())]:
                    task.cancel()
            self._timers.clear()
            with contextlib.suppress(NotSimulated):
                for _ in range(_MOST_CALLBACKS // 20):
                    if not self._step():
                        break
        with self._running(), contextlib.suppress(NotSimulated):
            for connection in list(self._connections.values()):
                connection.stop()
            self._collect()
        self._handles.clear()
        self._failed.clear()
        self.close()

    # --- one callback ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        outer, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(None, self._finalize)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outer)

    def _step(self) -> bool:
        """Run one callback, and return whether there was one."""
        with self._running():
            self._collect()
            if (position := self._choice()) is None:
                self._take_timers()
                position = self._choice()
            if position is None:
                self._repeated.clear()
                return False
            handle = self._handles.pop(position)
            task = _task_of(handle)
            if task is None:
                self._repeated.append(handle)
            else:
                self._repeated.clear()
            if not handle.cancelled():
                handle._run()
            if task is not None and task.done():
                self._take_leave(task)
        if self.refused is not None:
            raise self.refused
        self._check()
        return True

    def _take_leave(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled():
            if getattr(task, "_log_traceback", True):
                self._failed.append(task)
            return
        with contextlib.suppress(asyncio.CancelledError):
            task.exception()  # a task in Python 3.11 keeps its CancelledError, and all that its frames hold, for ever

    def _take_timers(self) -> None:
        """Take those of the timers that are due that come first."""
        seconds = self.seconds_to_timer()
        if seconds is not None and seconds <= _MICROSECOND:
            due = min(each.when() for each in self._timers)
            self._handles += [each for each in self._timers if each.when() == due]
            self._timers = [each for each in self._timers if each.when() != due]

    def _choice(self) -> int | None:
        """Return the position of the callback that runs next; None if there is none.

        One that belongs to no task does not wait for tasks, unless it has run since a task went on: anyio cancels a
        task by a callback that schedules itself again and again until the task has ended.
        """
        tasks: dict[int, asyncio.Task[Any]] = {}
        for position, handle in enumerate(self._handles):
            task = _task_of(handle)
            if task is not None:
                tasks[position] = task
            elif not any(_is_same(handle, each) for each in self._repeated):
                return position
        positions = list(tasks)
        if not self._order or len(tasks) < 2:
            return positions[0] if positions else None
        if self._order % 2 == 0:
            return positions[self._random.randrange(len(tasks))]
        for task in tasks.values():
            if self._tasks.get(task, -1.0) < 0:
                self._tasks[task] = self._random.random()
        first = max(positions, key=lambda position: self._tasks[tasks[position]])
        if self._random.random() < _CHANGE:
            self._tasks[tasks[first]] = -1.0
        return first

    def _collect(self) -> None:
        """Wait for the threads that work for tasks, and take what they passed on, in the order of the work."""
        while True:
            is_owed = None in self._owed.values()
            can_go_on = bool(self._handles) or self.seconds_to_timer() is not None or any(self._owed.values())
            try:
                post = self._posts.get(is_owed, _PATIENCE if can_go_on else _LONGEST_THREAD)
            except queue.Empty:
                break
            thread, handle, arguments = post
            future = next((each for each in arguments if isinstance(each, asyncio.Future) and each in self._owed), None)
            if future is None:
                raise self._refusal(f"The thread {thread} called call_soon_threadsafe() on the event loop.")
            self._owed[future] = handle
        for owed, answer in list(self._owed.items()):
            if answer is not None:
                del self._owed[owed]
                self._handles.append(answer)
        if is_owed and not can_go_on and not self._handles:
            raise self._refusal(f"A thread that a task waits for has not ended within {_LONGEST_THREAD:g} s.")

    def _refusal(self, detail: str) -> NotSimulated:
        self.refused = self.refused or NotSimulated(f"{detail} {_WHAT_IS_SIMULATED}")
        return self.refused

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self.is_closed() and threading.get_ident() == self._thread:
            self.call_soon(self.create_task, generator.aclose())

    # --- what asyncio calls ------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds of the simulated time."""
        return self._clock.monotonic()

    def is_running(self) -> bool:
        """Return whether a callback is running."""
        return self._depth > 0

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Add a callback that is ready."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self.is_closed():
            self._handles.append(handle)
            if (task := _task_of(handle)) is not None:
                self._tasks.setdefault(task, -1.0)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Add a timer."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Take a callback from a thread that works for a task."""
        if threading.get_ident() == self._thread and not self._is_submitting:
            for each in args:
                if isinstance(each, asyncio.Future):
                    self._owed.pop(each, None)  # it was cancelled before a thread began its work
            return self.call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        if not self.is_closed():
            self._posts.put((threading.current_thread().name, handle, args))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        """Make a future; the result of one that aiosqlite makes comes from a thread."""
        future = super().create_future()
        caller = sys._getframe(1)
        if _module_of(caller) in _THREADED:
            self._owed[future] = None
            connection = caller.f_locals.get("self")
            if caller.f_code.co_name == "stop":
                self._connections.pop(id(connection), None)
            elif hasattr(connection, "stop"):
                self._connections[id(connection)] = connection
        return future

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Ts], _T], *args: *_Ts
    ) -> "asyncio.Future[_T]":
        """Call a function in a thread."""
        self._is_submitting = True  # a fast thread has passed its result on before this returns
        try:
            future = super().run_in_executor(executor, func, *args)
        finally:
            self._is_submitting = False
        self._owed[future] = None
        return future

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the exception of a callback; those of tasks are found when they end."""
        error = context.get("exception")
        if isinstance(error, Exception) and "handle" in context:
            self._errors.append(("A callback of the event loop", error))


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(self: SimulatedLoop, *_: Any, **__: Any) -> Any:
        caller = sys._getframe(1)
        while caller.f_back is not None and _module_of(caller).startswith("asyncio."):
            caller = caller.f_back
        raise self._refusal(f"{_module_of(caller)} called {name}() on the event loop.")

    return refuse


for _name in (
    *("add_reader", "add_writer", "add_signal_handler", "getaddrinfo", "sock_connect", "connect_read_pipe"),
    *("create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection"),
    *("create_unix_server", "subprocess_exec", "subprocess_shell", "connect_write_pipe"),
):
    setattr(SimulatedLoop, _name, _refuse(_name))

_WHAT_IS_SIMULATED = (
    "A simulation controls the tasks of asyncio, the clients that it made, aiosqlite, and the threads of "
    "asyncio.to_thread() and of anyio.to_thread.run_sync(), but no sockets, processes and other threads. "
    "Use SQLite in the simulation, or make the method an ordinary one that calls asyncio.run()."
)


@contextlib.contextmanager
def threads_of_anyio() -> Iterator[None]:
    """Let the threads that anyio starts for a simulated loop be those that the loop knows, until the block ends."""
    original = anyio.to_thread.run_sync

    async def run_sync(func: Any, *args: Any, **options: Any) -> Any:
        loop = asyncio._get_running_loop()  # None in an event loop of trio
        if not isinstance(loop, SimulatedLoop):
            return await original(func, *args, **options)
        async with options.get("limiter") or anyio.to_thread.current_default_thread_limiter():
            with anyio.CancelScope(shield=not options.get("abandon_on_cancel")):
                run: Any = contextvars.copy_context().run
                return await loop.run_in_executor(None, run, func, *args)

    anyio.to_thread.run_sync = run_sync  # type: ignore[assignment]
    try:
        yield
    finally:
        anyio.to_thread.run_sync = original


@contextlib.contextmanager
def outside_of_the_running_loop() -> Iterator[None]:
    """Hide the event loop that runs in this thread, such as that of a test, from the code within this block."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


def _task_of(handle: asyncio.Handle) -> "asyncio.Task[Any] | None":
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None


def _is_same(one: asyncio.Handle, other: asyncio.Handle) -> bool:
    """Return whether two handles call the same function with the same arguments."""
    (function, args), (other_function, others) = ((each._callback, each._args) for each in (one, other))  # type: ignore[attr-defined]
    return bool(function == other_function) and [*map(id, args or ())] == [*map(id, others or ())]


def _module_of(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _name_of(task: "asyncio.Task[Any]") -> str:
    """Return the name that somebody gave to a task; otherwise that of its function: numbers differ in each run."""
    name = task.get_name()
    return str(getattr(task.get_coro(), "__qualname__", name)) if re.fullmatch(r"Task-\d+", name) else name


def _place_of(task: "asyncio.Task[Any]") -> str:
    """Return the innermost place of the clinic's own code where a task waits."""
    waiting: Any = task.get_coro()
    place = "outside of its own code"
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        if not _module_of(frame).startswith("asyncio."):
            place = f"in {waiting.__qualname__}(), {Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        waiting = waiting.cr_await
    return place
