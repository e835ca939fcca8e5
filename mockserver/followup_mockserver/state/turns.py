"""A mutex for threads and for asyncio tasks: whoever waits gets it in the order of asking."""

import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager


class Turns:
    """A mutex that a thread or an asyncio task holds. A task waits for it without blocking its event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()
        self._held = False
        self._thread_of_task: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the mutex in this thread.

        Raises:
            RuntimeError: a task in the event loop of this thread holds it; the thread would wait for itself.
        """
        if self._thread_of_task == threading.get_ident():
            raise RuntimeError(
                "a task of this event loop is advancing the clock, and this call would block it; "
                "use 'await service.advance_async()'"
            )
        turn = self._ask()
        try:
            turn.result()
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
        turn = self._ask()
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            self._give_up(turn)
            raise
        self._thread_of_task = threading.get_ident()
        try:
            yield
        finally:
            self._thread_of_task = None
            self.release()

    def take(self) -> bool:
        """Hold the mutex if it is free, and return whether it was; the caller releases it."""
        with self._lock:
            was_free = not self._held
            self._held = True
            return was_free

    def release(self) -> None:
        """Pass the mutex on to whoever has waited longest."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._held = False

    def _ask(self) -> "Future[None]":
        turn: Future[None] = Future()
        with self._lock:
            if self._held:
                self._waiting.append(turn)
                return turn
            self._held = True
        turn.set_result(None)
        return turn

    def _give_up(self, turn: "Future[None]") -> None:
        with self._lock:
            cancelled = turn.cancel()
        if not cancelled:
            self.release()
