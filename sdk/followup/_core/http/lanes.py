"""The connections of one client to the service, at most 100: lanes, of which each serves one attempt at a time.

An attempt takes a lane, and nobody else knows it until it is given back. So an attempt that any exception ends, at any
moment, costs at most its own lane: ``KeyboardInterrupt``, a signal handler, a cancelled task, a killed greenlet. Lanes
in use are counted by weak references, because such an exception may come where no ``finally`` is entered yet.
"""

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import httpcore

from followup._core.http import network, network_async
from followup._core.http.connections import CLOSED
from followup._core.results.errors import ConfigurationError
from followup._core.threads import unforked
from followup._core.time import REAL_TIME

MOST_LANES = 100
"""Connections of a client, for each process and event loop."""

_LONGEST_REST = 5.0
"""Seconds after which an idle connection is closed, as with httpx: servers close theirs, too."""

_POLL = 1.0
"""Seconds after which a waiting thread looks for a lane by itself: an interrupted one may not have woken it."""

B = TypeVar("B", bound="network.Backend | network_async.Backend")


class Lane(Generic[B]):
    """One connection.

    Attributes:
        backend: opens and closes the connection, and limits the attempt.
        connection: the connection of httpcore.
        handle: sends a request on it, and returns the response.
        is_reusable: whether the last attempt on it has ended as it should.
    """

    def __init__(self, backend: B, connection: Any, handle: Callable[[httpcore.Request], Any]) -> None:
        self.backend = backend
        self.connection = connection
        self.handle = handle
        self.is_reusable = False
        self.is_closed = False
        self.rests_since = 0.0

    def close(self) -> None:
        """Close the connection, so that the lane no longer counts."""
        self.is_closed = True
        self.backend.close()


class _Turn(Protocol):
    """What a caller waits on for its turn."""

    def set(self) -> None: ...


class _Lanes(Generic[B]):
    """The lanes of a process or of an event loop: idle ones on a stack, and the queue of those who wait."""

    def __init__(self, make: Callable[[], Lane[B]]) -> None:
        self._make = make
        self._idle: list[Lane[B]] = []
        self._all: list[weakref.ref[Lane[B]]] = []
        self._turns: deque[weakref.ref[Any]] = deque()
        self._is_closed = False

    def _next(self, turn: _Turn | None) -> Lane[B] | None:
        """Return a lane if there is one, and nobody waits longer than the owner of the turn."""
        if self._is_closed:
            raise ConfigurationError(CLOSED)
        if (first := self._first()) is not None and first is not turn:
            return None
        now = REAL_TIME.monotonic()
        while self._idle and now - self._idle[0].rests_since > _LONGEST_REST:
            self._idle.pop(0).close()
        while self._idle:
            lane = self._idle.pop()
            if lane.connection.is_available() and not lane.connection.has_expired():
                lane.is_reusable = False
                return lane
            lane.close()
        if len(self._all) >= MOST_LANES:
            self._all = [each for each in self._all if _is_open(each())]
            if len(self._all) >= MOST_LANES:
                return None
        lane = self._make()
        self._all.append(weakref.ref(lane))
        return lane

    def _first(self) -> _Turn | None:
        """Return the turn of whoever waits longest."""
        while self._turns:
            turn: _Turn | None = self._turns[0]()
            if turn is not None:
                return turn
            self._turns.popleft()
        return None

    def _wake(self) -> None:
        if (first := self._first()) is not None:
            first.set()

    def _leave(self, turn: _Turn) -> None:
        for each in self._turns:
            if each() is turn:
                self._turns.remove(each)
                break
        if self._idle:
            self._wake()

    def give_back(self, lane: Lane[B]) -> None:
        """Let another attempt have the lane."""
        if lane.is_reusable and not self._is_closed and lane.connection.is_available():
            lane.rests_since = REAL_TIME.monotonic()
            self._idle.append(lane)
        else:
            lane.close()
        self._wake()

    def close(self) -> None:
        """Close the idle lanes now, and those in use when they are given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        for each in tuple(self._turns):
            if (turn := each()) is not None:
                turn.set()

    def has_any(self) -> bool:
        """Return whether a lane is open. A finalizer may ask, when weak references are dead already."""
        return bool(self._idle) or any(_is_open(each()) for each in self._all)


def _is_open(lane: Lane[Any] | None) -> bool:
    return lane is not None and not lane.is_closed


class _ThreadTurn:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        if self._lock.locked():
            self._lock.release()

    def wait(self, seconds: float) -> None:
        self._lock.acquire(timeout=seconds)


class Lanes(_Lanes[network.Backend]):
    """The lanes of a process."""

    def take(self, seconds: float | None) -> Lane[network.Backend]:
        """Return a lane, after those who wait already.

        Raises:
            httpcore.PoolTimeout: none is free in time.
            ConfigurationError: the client has been closed.
        """
        with unforked():
            lane = self._next(None)
            if lane is not None:
                return lane
        return self._wait(None if seconds is None else REAL_TIME.monotonic() + seconds)

    def _wait(self, ends: float | None) -> Lane[network.Backend]:
        turn = _ThreadTurn()
        try:
            with unforked():
                self._turns.append(weakref.ref(turn))
            while True:
                with unforked():
                    lane = self._next(turn)
                if lane is not None:
                    return lane
                left = _POLL if ends is None else min(_POLL, ends - REAL_TIME.monotonic())
                if left <= 0:
                    raise httpcore.PoolTimeout("no connection was free in time")
                turn.wait(left)
        finally:
            with unforked():
                self._leave(turn)

    def give_back(self, lane: Lane[network.Backend]) -> None:
        with unforked():
            super().give_back(lane)

    def close(self) -> None:
        with unforked():
            super().close()


class AsyncLanes(_Lanes[network_async.Backend]):
    """The lanes of an event loop."""

    async def take(self, seconds: float | None) -> Lane[network_async.Backend]:
        """Do the same as that of ``Lanes``."""
        lane = self._next(None)
        if lane is not None:
            return lane
        turn = asyncio.Event()
        self._turns.append(weakref.ref(turn))
        try:
            async with asyncio.timeout(seconds):
                while (lane := self._next(turn)) is None:
                    await turn.wait()
                    turn.clear()
        except TimeoutError:
            raise httpcore.PoolTimeout("no connection was free in time") from None
        else:
            return lane
        finally:
            self._leave(turn)
