"""Runs the clinic: starts it, calls its methods, and discards it after a crash."""

import asyncio
import gc
import inspect
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import attrs

from followup import FollowUpError
from followup._for_mockserver import Time, clear_frames
from followup_mockserver.lab.simulation.clinic import Clinic, Crash
from followup_mockserver.lab.simulation.commits import Commits, OpenDatabases, databases_of_thread, leave_thread
from followup_mockserver.lab.simulation.loop import NotSimulated, SimulatedLoop, Wait
from followup_mockserver.lab.simulation.network import Network
from followup_mockserver.lab.simulation.process import Process, Receiving
from followup_mockserver.lab.simulation.promises import STARTS, PromiseBroken, Story
from followup_mockserver.service import MockService

CallOutcome = Literal["returned", "raised", "crashed"]

_EXITS = (KeyboardInterrupt, SystemExit)
_SECONDS_BETWEEN_STARTS = 10.0
_LONGEST_TEXT = 500
"""Characters of an exception's text in the message of a violation."""
_PATIENCE = 0.005
"""Seconds, in real time, for which a wait of another thread lets the simulation move the clock by itself."""


@attrs.define(eq=False)
class Runner:
    """The clinic's process, or its absence.

    Attributes:
        process: the process that runs; None while the clinic is down.
        problem: the latest exception of the user's code that no fault explains; None if there is none.
        order: the number of the order in which tasks go on; 0: in that in which they are ready.
        unprovoked: the latest exception that a method raised before any fault occurred, as text; None if there is none.

    Args:
        clinic: the user's class.
        service: the service.
        time: the time of its clients.
        network: carries the requests.
        commits: its commits.
        story: learns what happens.
        folder: what survives a crash.
        secret: signing secret of the webhook endpoint.
        wait: lets time pass when the tasks of the clinic wait.
    """

    _clinic: type[Clinic]
    _service: MockService
    time: Time
    _network: Network
    _commits: Commits
    _story: Story
    _folder: Path
    _secret: str
    _wait: Wait
    process: Process | None = attrs.field(default=None, init=False)
    problem: Exception | None = attrs.field(default=None, init=False)
    unprovoked: str | None = attrs.field(default=None, init=False)
    _databases: OpenDatabases | None = attrs.field(default=None, init=False)
    order: int = attrs.field(default=0, init=False)
    _starts: int = attrs.field(default=0, init=False)

    @property
    def is_down(self) -> bool:
        """Whether no process runs."""
        return self.process is None or self.process.has_crashed

    def up(self) -> Process:
        """Return the process that runs; start one if the clinic is down.

        Raises:
            PromiseBroken: ``start`` or ``receiver`` raised an exception although no fault affected it.
            TypeError: ``receiver`` returned no receiver.
        """
        # In a loop, because start() can crash, too.
        while self.is_down:
            self.discard()
            self._start()
        assert self.process is not None
        return self.process

    def call(self, method: str, *arguments: Any) -> CallOutcome:
        """Call a method of the clinic, and return how the call ended."""
        process = self.up()
        if method == "work" and not inspect.iscoroutinefunction(process.clinic.work):
            # No task can go on during the call, so none may hold a lock of a database that the call waits for.
            self.settle()
            process = self.up()
        _, error = self._result_of(process, method, *arguments)
        if process.has_crashed:
            # What refers to it keeps its connections, and their locks, from being released by the collection.
            del process
            self.discard()
            return "crashed"
        self._report_tasks(process)
        if error is None:
            return "returned"
        self._story.add(f"{method}() raised {type(error).__name__}.")
        self.note(error)
        if self._network.faults == 0:
            self.unprovoked = f"{method}() raised {type(error).__name__}: {error}"
        return "raised"

    def discard(self) -> None:
        """Drop a process that has crashed, with everything that it held, such as the locks of its databases."""
        process, self.process = self.process, None
        if process is None:
            return
        self._report_tasks(process)
        with warnings.catch_warnings():
            # A process that crashes closes nothing, of which its objects warn when they are freed.
            warnings.simplefilter("ignore")
            process.end()
            if self._databases is not None:
                self._databases.close()
                self._databases = None
                leave_thread()
            # A process that ends loses its connections, also those in reference cycles.
            del process
            gc.collect()

    def settle(self) -> None:
        """Let the tasks of the clinic go on until all of them wait for time to pass, or for something from outside."""
        process = self.process
        if process is None:
            return
        with suppress(Crash):
            process.loop.settle()
        self._report_tasks(process)
        if process.has_crashed:
            del process
            self.discard()

    def set_order(self, order: int) -> None:
        """Choose the order of tasks, which lasts over restarts."""
        self.order = order
        if self.process is not None:
            self.process.loop.set_order(order)

    def _report_tasks(self, process: Process) -> None:
        for who, error in process.loop.lost_errors():
            self._story.add(f"{who} raised {type(error).__name__}.")
            self.note(error)

    def note(self, error: BaseException | None) -> None:
        """Remember an exception of the user's code, unless it is the consequence of a fault."""
        if error is None:
            return
        clear_frames(error)
        # A fault of the service ends as a FollowUpError, so any other exception is more likely to be the bug.
        if isinstance(error, Exception) and not isinstance(error, FollowUpError):
            self.problem = error

    def _start(self) -> None:
        if self._starts:
            self._story.add("The clinic restarted.")
        self._starts += 1
        faults, url = self._network.faults, self._clinic.receiver_url
        process = Process(self._clinic, self._service, self.time, self._wait, self._network.carry)
        process.clinic.secret, process.clinic._commits = self._secret, self._commits
        self.process = process
        self._databases = OpenDatabases(process, self._commits)
        self._databases.belong_to_thread()
        process.loop.set_order(self.order)
        receiver = None
        for method, arguments in {"start": (process.client, self._folder), "receiver": ()}.items():
            if method == "receiver" and url is None:
                continue
            receiver, error = self._result_of(process, method, *arguments)
            if error is not None:
                problem = f"{method}() raised {self._text_of(error)}"
                if self._network.faults == faults:
                    self._story.add(problem)
                    raise PromiseBroken(STARTS, problem) from error
                self._story.add(f"The clinic did not start: {problem}")
                # As systemd or a container does: the fault that prevented the start may be over then.
                self.time.sleep(_SECONDS_BETWEEN_STARTS)
                process.has_crashed = True
            if process.has_crashed:
                return
            process.is_starting = False
        if url is not None:
            process.receiving = Receiving(process, url, receiver)

    def _result_of(self, process: Process, method: str, *arguments: Any) -> tuple[Any, Exception | None]:
        """Call a method of the clinic; return its result, and the exception that it raised unless it crashed."""
        try:
            result = process.call(method, *arguments)
            process.check()
        except (*_EXITS, PromiseBroken, NotSimulated):
            raise
        except BaseException as error:
            if process.has_crashed:
                return None, None
            if not isinstance(error, Exception):
                raise
            clear_frames(error)
            return None, error
        return result, None

    def _text_of(self, error: Exception) -> str:
        first_line = str(error).strip().partition("\n")[0]
        # The folder is another one in each run. In a repr, as that of an OSError, Windows doubles its separators.
        for path in (str(self._folder), repr(str(self._folder))[1:-1]):
            first_line = first_line.replace(path, "folder")
        text = first_line[:_LONGEST_TEXT]
        return f"{type(error).__name__}: {text}" if text else f"{type(error).__name__}."


class ClinicTime:
    """The time of every client, Outbox and Inbox in a simulation. Waiting in a process that is over raises ``Crash``.

    While the simulating thread is busy, a wait of another thread ends when that one has moved the clock far enough, or
    after some milliseconds.

    Args:
        time: the time of the service's clock.
    """

    def __init__(self, time: Time) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        self.now: Callable[[], datetime] = time.now
        self._time = time
        self._simulating = threading.get_ident()
        self._real_wait = threading.Event()

    def sleep(self, seconds: float) -> None:
        """Let the time of the service pass."""
        if threading.get_ident() != self._simulating:
            ends = self._time.monotonic() + seconds
            self._real_wait.wait(_PATIENCE)
            seconds = ends - self._time.monotonic()
        if (databases := databases_of_thread()) is not None:
            databases.process.check()
        if seconds > 0:
            self._time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        """Let the time of the event loop pass."""
        if isinstance(asyncio.get_running_loop(), SimulatedLoop):
            await asyncio.sleep(seconds)
        else:
            await self._time.sleep_async(seconds)
