"""Threads that make delivery attempts, so that a slow receiver does not delay others."""

import queue
import threading
from collections import deque
from collections.abc import Callable

MAX_THREADS = 32
MAX_PER_RECEIVER = 4
"""Threads that one receiver can keep busy when it hangs, however many URLs it has."""

Task = Callable[[], None]


class Workers:
    """Runs tasks on threads that are started as needed, at most ``MAX_PER_RECEIVER`` for one receiver at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: queue.SimpleQueue[tuple[str, Task] | None] = queue.SimpleQueue()
        self._waiting: dict[str, deque[Task]] = {}
        self._running: dict[str, int] = {}
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, receiver: str, task: Task) -> None:
        """Run a task as soon as a thread is free.

        Args:
            receiver: key of the receiver; tasks with the same key share its limit.
            task: the function to run; it must not raise.
        """
        with self._lock:
            if self._running.get(receiver, 0) >= MAX_PER_RECEIVER:
                self._waiting.setdefault(receiver, deque()).append(task)
                return
            self._start(receiver, task)

    def close(self) -> None:
        """Start no further task. Threads that run one end after it."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            for _ in self._threads:
                self._ready.put(None)

    def _start(self, receiver: str, task: Task) -> None:
        self._running[receiver] = self._running.get(receiver, 0) + 1
        self._ready.put((receiver, task))
        if self._idle:
            self._idle -= 1
        elif len(self._threads) < MAX_THREADS and not self._closed:
            thread = threading.Thread(target=self._work, name="followup-mock-delivery", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (item := self._ready.get()) is not None:
            receiver, task = item
            try:
                task()
            finally:
                self._done(receiver)

    def _done(self, receiver: str) -> None:
        with self._lock:
            self._running[receiver] -= 1
            if not self._running[receiver]:
                del self._running[receiver]
            # This thread is free and takes the next task itself, so a waiting task needs no new thread.
            self._idle += 1
            waiting = self._waiting.get(receiver)
            if waiting:
                task = waiting.popleft()
                if not waiting:
                    del self._waiting[receiver]
                self._start(receiver, task)
