"""The transport of the SDK: attempts over connections of its own, with public names of httpcore alone.

It has at most 100 connections to the service: lanes, of which each serves one attempt at a time. An attempt takes a
lane, and nobody else knows it until it is given back. So an attempt that any exception ends, at any moment, costs at
most its own lane: ``KeyboardInterrupt``, a signal handler, a cancelled task, a killed greenlet. Lanes in use are
counted by weak references, because such an exception may come where no ``finally`` is entered yet.

Requests do not pass ``httpx.Client.send``, so that nothing that watches httpx sees our URLs, which contain phones and
documents, or adds headers. Test tools that respond to requests themselves get them all the same (``_is_replaced``).
"""

import asyncio
import inspect
import queue
import sys
import weakref
from collections import deque
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import httpcore

from followup._core.call.steps import NotSent, Outcome, Send
from followup._core.errors import ConfigurationError
from followup._core.http import CLOSED
from followup._core.http.network import AsyncBackend, Backend
from followup._core.http.outcomes import headers_of, outcome_of, read, read_async
from followup._core.http.proxies import Route
from followup._core.threads import unforked
from followup._core.time import REAL_TIME

# As many as httpx opens by default.
MOST_LANES = 100
"""Connections of a client, for each process and event loop."""

_LONGEST_REST = 5.0
"""Seconds after which an idle connection is closed, as with httpx: servers close theirs, too."""

_POLL = 1.0
"""Seconds after which a waiting thread looks for a lane by itself: an interrupted one may not have woken it."""

_NO_LANE = NotSent("PoolTimeout", timed_out=True)

B = TypeVar("B", Backend, AsyncBackend)


class Lane(Generic[B]):
    """One connection.

    Attributes:
        backend: opens and closes the connection, and limits the attempt.
        connection: the connection of httpcore.
        handle: sends a request on it, and returns the response.
        is_reusable: whether the last attempt on it has ended as it should.
    """

    def __init__(self, prefix: str, method: str, route: Route, backend: B) -> None:
        self.backend: B = backend
        self.connection = route.connection(prefix, backend)
        # Unwrapped, and found on the class: Elastic APM wraps the method, and would export URLs with phones.
        self.handle: Any = inspect.unwrap(getattr(type(self.connection), method)).__get__(self.connection)
        self.is_reusable = False
        self.is_closed = False
        self.rests_since = 0.0

    def close(self) -> None:
        """Close the connection, so that the lane no longer counts."""
        self.is_closed = True
        self.backend.close()


class _Transport(Generic[B]):
    """The lanes of a process or of an event loop: idle ones on a stack, and the queue of those who wait for one."""

    _prefix: ClassVar[str]
    """What httpcore and httpx put before the names of their classes."""

    _method: ClassVar[str]
    _backend: type[B]

    def __init__(self, route: Route) -> None:
        self._route = route
        self._idle: list[Lane[B]] = []
        self._all: list[weakref.ref[Lane[B]]] = []
        self._turns: deque[weakref.ref[Any]] = deque()  # a queue of each caller that waits, which wakes it
        self._is_closed = False

    def _is_intercepted(self) -> bool:
        """Return whether a test tool responds to requests. It gets them through a transport of httpx."""
        # respx replaces methods of httpcore's classes, pytest-httpx and VCR.py those of httpx's transports. They may do
        # so at any time, so each attempt looks again. Who has not imported httpx has not replaced anything there.
        found = [getattr(httpcore, self._prefix + name) for name in ("ConnectionPool", "HTTPConnection")]
        if (httpx := sys.modules.get("httpx")) is not None:
            found.append(getattr(httpx, f"{self._prefix}HTTPTransport"))
        return any(_is_replaced(getattr(each, self._method)) for each in found)

    def _next(self, turn: object) -> Lane[B] | None:
        """Return a lane if there is one, and nobody waits longer than the owner of the turn."""
        if self._is_closed:
            raise ConfigurationError(CLOSED)
        # Who comes later does not overtake those who wait, or under load some would wait until their deadline.
        if (first := self._first()) is not None and first is not turn:
            return None
        # The one at the bottom of the stack has rested longest.
        now = REAL_TIME.monotonic()
        while self._idle and now - self._idle[0].rests_since > _LONGEST_REST:
            self._idle.pop(0).close()
        # The one that was used last is the least likely to have been closed by the server or by a firewall.
        while self._idle:
            lane = self._idle.pop()
            # httpcore looks at the socket: what is readable before a request is an end, or somebody else's response.
            if lane.connection.is_available() and not lane.connection.has_expired():
                lane.is_reusable = False
                return lane
            lane.close()
        # Closed and lost lanes are looked for only here, where they would matter: most clients use a few lanes.
        if len(self._all) >= MOST_LANES:
            self._all = [each for each in self._all if (found := each()) is not None and not found.is_closed]
            if len(self._all) >= MOST_LANES:
                return None
        lane = Lane(self._prefix, self._method, self._route, self._backend(self._route.handshakes))
        self._all.append(weakref.ref(lane))
        return lane

    def _first(self) -> Any:
        """Return the turn of whoever waits longest."""
        while self._turns:
            if (turn := self._turns[0]()) is not None:
                return turn
            self._turns.popleft()
        return None

    def _wake(self) -> None:
        if (first := self._first()) is not None:
            first.put_nowait(None)

    def _leave(self, turn: object) -> None:
        with suppress(ValueError):  # an interrupt may have come before it was in the queue
            self._turns.remove(weakref.ref(turn))
        # The one that leaves may have been woken for this lane, and its deadline has passed, or it was interrupted.
        if self._idle:
            self._wake()

    def _give_back(self, lane: Lane[B]) -> None:
        """Let another attempt have the lane."""
        # It is not available after "Connection: close", or where the body was not read to its end.
        if lane.is_reusable and not self._is_closed and lane.connection.is_available():
            lane.rests_since = REAL_TIME.monotonic()
            self._idle.append(lane)
        else:
            lane.close()
        self._wake()

    def close(self) -> None:
        """Close the idle lanes now, and those in use when they are given back."""
        with unforked():
            self._is_closed = True
            while self._idle:
                self._idle.pop().close()
            # Those who wait learn that the client is closed.
            for each in tuple(self._turns):
                if (turn := each()) is not None:
                    turn.put_nowait(None)


def _is_replaced(method: Any) -> bool:
    """Return whether a test tool has replaced a method of httpx or httpcore.

    A tool that only watches wraps the method in a proxy of wrapt, which has the globals of the method.
    """
    module: str = getattr(method, "__globals__", {}).get("__name__", "")
    return module.partition(".")[0] not in ("httpx", "httpcore")


class Transport(_Transport[Backend]):
    """Makes the attempts of a process."""

    _prefix, _method, _backend = "", "handle_request", Backend

    def send(self, step: Send) -> Outcome:
        """Make one attempt in this thread.

        Raises:
            ConfigurationError: the client has been closed.
        """
        if self._is_intercepted():
            from followup._core.http import through_httpx

            return through_httpx.send(self._route, step)
        # The wait for a lane counts towards the deadline of the call, but not towards the timeout of the attempt.
        began = REAL_TIME.monotonic()
        try:
            lane = self._take(step.limit_of_wait())
        except httpcore.PoolTimeout:
            return self._route.with_note(_NO_LANE)
        try:
            lane.backend.limit.start(step.limit(REAL_TIME.monotonic() - began))
            return self._route.with_note(self._exchange(lane, step))
        finally:
            with unforked():
                self._give_back(lane)

    def _exchange(self, lane: Lane[Backend], step: Send) -> Outcome:
        limit = lane.backend.limit
        try:
            response = lane.handle(self._route.request(step))
            limit.check_received()
            try:  # `close` also runs after an interrupt, but only a response that was read leaves the lane reusable
                outcome = read(response.status, headers_of(response.headers), response.iter_stream())
                lane.is_reusable = True
            finally:
                response.close()
        except Exception as failure:  # noqa: BLE001 - `outcome_of` raises those of no HTTP library
            return outcome_of(failure, has_sent=limit.has_sent)
        return outcome

    def _take(self, seconds: float | None) -> Lane[Backend]:
        """Return a lane, after those who wait already.

        Raises:
            httpcore.PoolTimeout: none is free in time.
            ConfigurationError: the client has been closed.
        """
        with unforked():
            if (lane := self._next(None)) is not None:
                return lane
        ends = None if seconds is None else REAL_TIME.monotonic() + seconds
        # A SimpleQueue, because its `put` may interrupt itself: a finalizer or signal handler may give a lane back.
        turn: queue.SimpleQueue[None] = queue.SimpleQueue()
        try:
            with unforked():
                self._turns.append(weakref.ref(turn))
            while True:
                with unforked():
                    if (lane := self._next(turn)) is not None:
                        return lane
                left = _POLL if ends is None else min(_POLL, ends - REAL_TIME.monotonic())
                if left <= 0:
                    raise httpcore.PoolTimeout
                with suppress(queue.Empty):
                    turn.get(timeout=left)
        finally:
            with unforked():
                self._leave(turn)


class AsyncTransport(_Transport[AsyncBackend]):
    """Makes the attempts of an event loop."""

    _prefix, _method, _backend = "Async", "handle_async_request", AsyncBackend

    async def send(self, step: Send) -> Outcome:
        """Make one attempt in this task.

        Raises:
            ConfigurationError: the client has been closed.
        """
        if self._is_intercepted():
            from followup._core.http import through_httpx

            return await through_httpx.send_async(self._route, step)
        began = REAL_TIME.monotonic()
        try:
            lane = await self._take(step.limit_of_wait())
        except TimeoutError:
            return self._route.with_note(_NO_LANE)
        try:
            lane.backend.limit.start(None)  # the timer below limits the whole of it
            return self._route.with_note(await self._exchange(lane, step, step.limit(REAL_TIME.monotonic() - began)))
        finally:
            self._give_back(lane)  # no lock: all of a transport runs in one event loop, and this awaits nothing

    async def _exchange(self, lane: Lane[AsyncBackend], step: Send, seconds: float | None) -> Outcome:
        limit, timer = lane.backend.limit, asyncio.timeout(seconds)
        try:
            async with timer:
                response = await lane.handle(self._route.request(step))
                limit.check_received()
                try:
                    outcome = await read_async(response.status, headers_of(response.headers), response.aiter_stream())
                    lane.is_reusable = True
                finally:
                    await response.aclose()
        except Exception as failure:  # noqa: BLE001 - `outcome_of` raises those of no HTTP library
            return outcome_of(failure, has_sent=limit.has_sent, timer=timer)
        return outcome

    async def _take(self, seconds: float | None) -> Lane[AsyncBackend]:
        await self._hear()
        if (lane := self._next(None)) is not None:
            return lane
        turn: asyncio.Queue[None] = asyncio.Queue()
        self._turns.append(weakref.ref(turn))
        try:
            async with asyncio.timeout(seconds):
                while (lane := self._next(turn)) is None:
                    await turn.get()
                    await self._hear()
                return lane
        finally:
            self._leave(turn)

    async def _hear(self) -> None:
        """Let the event loop of Windows pass on what has arrived: it reads ahead, so that no socket looks readable."""
        if self._idle and hasattr(asyncio, "ProactorEventLoop"):
            for _ in range(2):  # in the first round, it takes the bytes from the system; before the second, we get them
                await asyncio.sleep(0)
