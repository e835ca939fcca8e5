"""A mutex for threads and for asyncio tasks: whoever waits gets it in the order of asking."""

import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager

from followup_mockserver.state.interrupts import wait_for


class _Turn(Future[None]):
    """A turn of a thread or a task, which is done when it may begin.

    Attributes:
        loop_thread: identity of the thread whose event loop runs the task; None for the turn of a thread.
    """

    def __init__(self, loop_thread: int | None = None) -> None:
        super().__init__()
        self.loop_thread = loop_thread


class Turns:
    """A mutex that a thread or an asyncio task holds. A task waits for it without blocking its event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Turn] = deque()
        self._current: _Turn | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the mutex in this thread.

        Raises:
            RuntimeError: a task in the event loop of this thread holds it or has asked for it before; the thread would
                wait for itself.
        """
        turn = _Turn()
        self._ask(turn, blocked=threading.get_ident())
        try:
            wait_for(turn)
        except BaseException:
            self._give_up(turn)
            raise
        try:
            yield
        finally:
            self.release()

    @asynccontextmanager
    async def held_by_task(self) -> AsyncIterator[None]:
        """Hold the mutex in this task.

        Raises:
            RuntimeError: there is no running asyncio event loop.
        """
        import asyncio  # late, because a mock of its own process does not need it

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("this method needs an asyncio event loop; trio is not supported") from None
        turn = _Turn(threading.get_ident())
        self._ask(turn)
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            self._give_up(turn)
            raise
        try:
            yield
        finally:
            self.release()

    def take(self) -> bool:
        """Hold the mutex if it is free, and return whether it was; the caller releases it."""
        with self._lock:
            was_free = self._current is None
            if was_free:
                self._current = _Turn()
            return was_free

    def release(self) -> None:
        """Pass the mutex on to whoever has waited longest."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    self._current = turn
                    turn.set_result(None)
                    return
            self._current = None

    def _ask(self, turn: _Turn, blocked: int | None = None) -> None:
        """Let a turn begin as soon as those before it have ended.

        Args:
            turn: the turn.
            blocked: identity of the thread that waits for the turn, and whose event loop runs no task meanwhile.
        """
        with self._lock:
            before = [] if self._current is None else [self._current, *self._waiting]
            if blocked is not None and any(each.loop_thread == blocked and not each.cancelled() for each in before):
                raise RuntimeError(
                    "a task of this event loop is advancing the clock, and this call would block it; "
                    "use 'await service.advance_async()'"
                )
            if before:
                self._waiting.append(turn)
                return
            self._current = turn
        turn.set_result(None)

    def _give_up(self, turn: _Turn) -> None:
        with self._lock:
            cancelled = turn.cancel()
        if not cancelled:
            self.release()
