"""Applications mounted in this process, which receive the webhooks of their URLs without a socket."""

import inspect
import threading
from collections.abc import Callable
from typing import Any

Receiver = Callable[..., Any]
"""A WSGI or ASGI application, or a function that takes an httpx.Request and returns an httpx.Response."""


class Mounts:
    """The mounted applications, by URL. Thread-safe."""

    def __init__(self) -> None:
        self._receivers: dict[str, Receiver] = {}
        self._lock = threading.Lock()

    def add(self, url: str, receiver: Receiver) -> None:
        """Mount a receiver for webhooks whose URL is ``url`` or begins with it.

        Raises:
            TypeError: the receiver is not callable.
        """
        if not callable(receiver):
            raise TypeError("mount() requires a WSGI or ASGI application, or a function")
        with self._lock:
            self._receivers[url.rstrip("/")] = receiver

    def receiver_for(self, url: str) -> Receiver | None:
        """Return the receiver with the longest mounted URL that ``url`` begins with, or None."""
        with self._lock:
            matching = [each for each in self._receivers if url == each or url.startswith((f"{each}/", f"{each}?"))]
            return self._receivers[max(matching, key=len)] if matching else None

    def urls(self) -> list[str]:
        """Return the mounted URLs, in the order in which they were mounted."""
        with self._lock:
            return list(self._receivers)


def accepts(receiver: Receiver, count: int) -> bool:
    """Return whether a receiver accepts this many arguments: ASGI apps take three, WSGI apps two, functions one."""
    try:
        inspect.signature(receiver).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a callable without a signature
        return count == 2
    return True
