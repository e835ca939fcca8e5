"""The event loop of an asynchronous clinic, on the clock of the simulation.

Nothing in it depends on how fast the machine is: time passes only when no task can go on, a thread that works for a
task is waited for, and which of several tasks goes on follows from the history.
"""

import asyncio
import contextlib
import inspect
import queue
import random
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from followup._for_mockserver import Time
from followup_mockserver.deliveries.applications import running_loop
from followup_mockserver.lab.simulation.promises import RETURNS, PromiseBroken
from followup_mockserver.lab.simulation.tasks import Callback, Task, WatchedTask, module_of, name_of, place_of

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

_THREADED = ("aiosqlite.core", "sqlalchemy.dialects.sqlite.aiosqlite")
"""Modules whose futures get their results from a thread."""

_CLEANUPS = 5
"""How often a task is cancelled that goes on in spite of it."""


Wait = Callable[[float | None], bool]
"""Lets so many seconds pass, or the time until the next webhook if it is None; returns whether there is one."""


_LATENCIES = (0.0, 0.0, 0.05, 1.0, 10.0)
"""Seconds that a request or a response may be under way, in simulated time."""


_WHAT_IS_SIMULATED = (
    "A simulation controls the tasks of asyncio, the clients that it made, aiosqlite, and the threads of "
    "asyncio.to_thread() and of anyio.to_thread.run_sync(), but no sockets, processes and other threads. "
    "Use SQLite in the simulation, or make the method an ordinary one that calls asyncio.run()."
)


class NotSimulated(RuntimeError):
    """The clinic uses something that a simulation cannot control."""


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(self: "SimulatedLoop", *_: Any, **__: Any) -> Any:
        caller = inspect.currentframe()
        while caller is not None and module_of(caller).startswith(("asyncio.", __name__)):
            caller = caller.f_back
        raise self.refusal(f"{module_of(caller)} called {name}() on the event loop.")

    return refuse


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop that runs only while the simulation lets it, in the thread that created it, without sockets.

    Args:
        time: the simulated time.
        wait: lets time pass.
        check: raises an exception if the process that the loop belongs to is over.
    """

    _depth = 0  # the base class asks whether it runs before it is initialized

    def __init__(self, time: Time, wait: Wait, check: Callable[[], None]) -> None:
        super().__init__()
        # asyncio calls add_done_callback() only of a subclass of its tasks; that of its own class is bypassed in C.
        self.set_task_factory(lambda loop, coroutine, **options: WatchedTask(coroutine, loop=loop, **options))
        self._clock = time
        self._wait = wait
        self._check = check
        self._thread = threading.get_ident()

        # It is raised by _step(), too: the code that called what is not simulated may have caught it.
        self._refused: NotSimulated | None = None
        self._handles: list[Callback] = []
        self._repeated: list[tuple[Any, Any]] = []
        self._timers: list[Callback] = []
        # Those that have not ended, in the order in which they began: asyncio.all_tasks() has another one in each run.
        self._tasks: dict[Task, None] = {}
        self.set_order(0)
        self._errors: list[tuple[str, BaseException]] = []
        self._posts: queue.SimpleQueue[tuple[str, Callback, tuple[Any, ...]]] = queue.SimpleQueue()
        # The futures whose results come from threads, in the order of the work, each with its result once it is there.
        self._owed: dict[object, Callback | None] = {}
        # The connections of aiosqlite that are open, each with a thread that ends only when the connection is closed.
        self._connections: dict[int, Any] = {}
        self._is_submitting = False
        self._threads: Executor | None = None

    def refusal(self, detail: str) -> NotSimulated:
        """Return the exception for the use of something that a simulation cannot control; the first one is raised."""
        self._refused = self._refused or NotSimulated(f"{detail} {_WHAT_IS_SIMULATED}")
        return self._refused

    # --- what the simulation does ------------------------------------------------------------------------------------

    def set_order(self, number: int) -> None:
        """Choose in which order ready tasks go on.

        Args:
            number: 0 is the order in which they became ready, with a network without latency; any other number is a
                random order, with random latencies.
        """
        self._order = number
        self._random = random.Random(number)  # noqa: S311 - it is reproducible on purpose

    def latency(self) -> float:
        """Return for how many seconds a request or a response is under way."""
        return self._random.choice(_LATENCIES) if self._order else 0.0

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
                self._never_rest(f"{name} does not return, {place_of(task)}. ")
            if not self._wait(self.seconds_to_timer()):
                break
            self._check()
        raise PromiseBroken(RETURNS, f"{name} waits for something that never happens, {place_of(task)}.")

    def settle(self) -> None:
        """Run what is ready, until all tasks wait for time to pass or for something from outside."""
        for _ in range(_MOST_CALLBACKS):
            if not self._step():
                return
        self._never_rest()

    def _never_rest(self, what: str = "") -> NoReturn:
        names = ", ".join(map(name_of, self._tasks)) or "callbacks of the event loop"
        raise PromiseBroken(RETURNS, f"{what}Without waiting, these go on for ever: {names}.")

    def seconds_to_timer(self) -> float | None:
        """Return in how many seconds the next timer is due; None if there is none."""
        self._timers = [each for each in self._timers if not each.cancelled()]
        next_at = min((each.when() for each in self._timers), default=None)
        seconds = None if next_at is None else max(0.0, next_at - self.time())
        return None if seconds is None or seconds > _NEVER else seconds

    def lost_errors(self) -> Iterator[tuple[str, BaseException]]:
        """Yield the exceptions that nobody has retrieved so far, with what raised them."""
        errors, self._errors = self._errors, []
        yield from errors

    def end(self) -> None:
        """Cancel all tasks, let them and their threads end without any more time, and close the loop."""
        self._check = lambda: None  # so that the tasks can run their ``finally``
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
        self.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    # --- one callback ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        # It can be nested: while a method waits, a webhook may arrive whose receiver runs in this loop, too.
        # The hooks of asynchronous generators belong to the thread, not to the loop.
        outer, hooks = running_loop(), sys.get_asyncgen_hooks()
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
            # First, so that what can go on does not depend on how fast a thread was.
            self._collect()
            if (position := self._choice()) is None:
                self._take_timers()
                position = self._choice()
            if position is None:
                self._repeated.clear()
                return False
            handle = self._handles.pop(position)
            task = handle.task
            if task is None:
                self._repeated.append(handle.call)
            else:
                self._repeated.clear()
            if not handle.cancelled():
                handle.run()
            if task is not None and task.done():
                self._take_leave(task)
        if self._refused is not None:
            raise self._refused
        self._check()
        return True

    def _take_leave(self, task: Task) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            with contextlib.suppress(asyncio.CancelledError):
                # A task in Python 3.11 keeps its CancelledError, and what its frames hold, until it is retrieved.
                task.exception()
        elif not getattr(task, "is_watched", True) and isinstance(error := task.exception(), Exception):
            self._errors.append((f"A background task ({name_of(task)})", error))

    def _take_timers(self) -> None:
        # Only those that come first: a task that they wake may cancel the later ones, also if all of them are due.
        seconds = self.seconds_to_timer()
        if seconds is not None and seconds <= _MICROSECOND:
            due = min(each.when() for each in self._timers)
            self._handles += [each for each in self._timers if each.when() == due]
            self._timers = [each for each in self._timers if each.when() != due]

    def _choice(self) -> int | None:
        """Return the position of the callback that runs next; None if there is none."""
        # One that belongs to no task does not wait for tasks, unless it has run since a task went on: anyio cancels a
        # task by a callback that schedules itself again and again until the task has ended.
        ready = []
        for position, handle in enumerate(self._handles):
            if handle.task is not None:
                ready.append(position)
            elif handle.call not in self._repeated:
                return position
        return (self._random.choice(ready) if self._order else ready[0]) if ready else None

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
                raise self.refusal(f"The thread {thread} called call_soon_threadsafe() on the event loop.")
            self._owed[future] = handle
        for owed, answer in list(self._owed.items()):
            if answer is not None:
                del self._owed[owed]
                self._handles.append(answer)
        if is_owed and not can_go_on and not self._handles:
            raise self.refusal(f"A thread that a task waits for has not ended within {_LONGEST_THREAD:g} s.")

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
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Add a callback that is ready."""
        handle = Callback(0.0, callback, args, self, context)
        # After a crash, finalizers of the process still call this; asyncio would raise an exception in them.
        if not self.is_closed():
            self._handles.append(handle)
            if handle.task is not None:
                self._tasks.setdefault(handle.task)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Add a timer."""
        handle = Callback(when, callback, args, self, context)
        self._timers.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Take a callback from a thread that works for a task."""
        if threading.get_ident() == self._thread and not self._is_submitting:
            return self.call_soon(callback, *args, context=context)
        handle = Callback(0.0, callback, args, self, context)
        # It waits for its turn: the order of callbacks must not depend on which thread was faster.
        if not self.is_closed():
            self._posts.put((threading.current_thread().name, handle, args))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        """Make a future; the result of one that aiosqlite makes comes from a thread."""
        future = super().create_future()
        # aiosqlite has no hook: it calls this, and passes the result on from its own thread by call_soon_threadsafe().
        frame = inspect.currentframe()
        caller = frame and frame.f_back
        if caller is not None and module_of(caller) in _THREADED:
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
        if executor is None:
            executor = self._threads = self._threads or ThreadPoolExecutor()
        # A fast thread has passed its result on before this returns. If the loop were running meanwhile, Python 3.14
        # would set that result at once.
        self._is_submitting = True
        running = running_loop()
        asyncio._set_running_loop(None)
        try:
            work = executor.submit(func, *args)
            future = asyncio.wrap_future(work, loop=self)
        finally:
            asyncio._set_running_loop(running)
            self._is_submitting = False
        self._owed[future] = None

        def forget(work: "Future[_T]") -> None:
            # No thread has begun the work then, and from Python 3.14 on, nothing else says so.
            if work.cancelled() and threading.get_ident() == self._thread:
                self._owed.pop(future, None)

        work.add_done_callback(forget)
        return future

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the exception of a callback, or that of a task that is freed before anybody has retrieved it."""
        error, task = context.get("exception"), context.get("future")
        if isinstance(error, Exception) and isinstance(task, asyncio.Task):
            self._errors.append((f"A background task ({name_of(task)})", error))
        elif isinstance(error, Exception) and "handle" in context:
            self._errors.append(("A callback of the event loop", error))


for _name in (
    *("add_reader", "add_writer", "add_signal_handler", "getaddrinfo", "sock_connect", "connect_read_pipe"),
    *("create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection"),
    *("create_unix_server", "subprocess_exec", "subprocess_shell", "connect_write_pipe"),
):
    setattr(SimulatedLoop, _name, _refuse(_name))
