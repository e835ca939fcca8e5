"""Applications mounted in this process: webhooks to their URLs go to them, and no socket is opened."""

import inspect
import threading
from collections.abc import Callable
from typing import Any

Receiver = Callable[..., Any]
"""A WSGI or ASGI application, or a function that takes an httpx.Request and returns an httpx.Response."""


class Mounts:
    """The mounted applications, by the URLs that they answer for."""

    def __init__(self) -> None:
        self._receivers: dict[str, Receiver] = {}
        self._lock = threading.Lock()

    def add(self, url: str, receiver: Receiver) -> None:
        """Have webhooks whose URL begins with this go to the receiver.

        Raises:
            TypeError: the receiver cannot be called.
        """
        if not callable(receiver):
            raise TypeError("mount() takes a WSGI or ASGI application, or a function")
        with self._lock:
            self._receivers[url.rstrip("/")] = receiver

    def receiver_for(self, url: str) -> Receiver | None:
        """The receiver with the longest URL that this one begins with."""
        with self._lock:
            matching = [each for each in self._receivers if url == each or url.startswith((f"{each}/", f"{each}?"))]
            return self._receivers[max(matching, key=len)] if matching else None


def takes(receiver: Receiver, count: int) -> bool:
    """Whether the receiver can be called with so many arguments: three of ASGI, two of WSGI, one of a function."""
    try:
        inspect.signature(receiver).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # no signature to look at
        return count == 2
    return True
