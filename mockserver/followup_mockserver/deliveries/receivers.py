"""The receivers mounted in this process, which receive the webhooks of their URLs without a socket."""

import enum
import inspect
import threading
from collections.abc import Callable
from typing import Any

import attrs

Receiver = Callable[..., Any]
"""An ASGI or WSGI application, or a function or coroutine function that takes an httpx.Request and returns an
httpx.Response."""


class ReceiverKind(enum.Enum):
    """How a receiver is called; the value is the number of its positional arguments."""

    ASGI = 3
    WSGI = 2
    FUNCTION = 1


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Mount:
    """A receiver, and the URL that it is mounted at.

    Attributes:
        url: webhooks whose URL begins with this one go to the receiver.
        receiver: the application or function.
        kind: how the receiver is called.
        raise_exceptions: whether an exception of the receiver is raised out of ``advance`` in process.
    """

    url: str
    receiver: Receiver = attrs.field(repr=False)
    kind: ReceiverKind
    raise_exceptions: bool


def kind_of(receiver: Receiver) -> ReceiverKind:
    """Return the kind of a receiver: ASGI applications require three arguments, WSGI applications two, functions one.

    Optional arguments do not count. Of the callables that require none, such as those that accept any number, coroutine
    functions are taken for ASGI applications, and all others for functions.
    """
    try:
        parameters = inspect.signature(receiver).parameters.values()
    except ValueError:  # a callable without a signature, such as one that is written in C
        return ReceiverKind.WSGI
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = sum(each.default is inspect.Parameter.empty for each in positional)
    if 1 <= required <= 3:
        return ReceiverKind(required)
    call = receiver if inspect.isfunction(receiver) or inspect.ismethod(receiver) else type(receiver).__call__
    return ReceiverKind.ASGI if inspect.iscoroutinefunction(call) else ReceiverKind.FUNCTION


class Mounts:
    """The mounted receivers, by URL. Thread-safe."""

    def __init__(self) -> None:
        self._mounts: dict[str, Mount] = {}
        self._lock = threading.Lock()

    def add(self, url: str, receiver: Receiver, *, raise_exceptions: bool = True) -> None:
        """Mount a receiver for webhooks whose URL is ``url`` or begins with it.

        Raises:
            TypeError: the receiver is not callable.
        """
        if not callable(receiver):
            raise TypeError("mount() requires an ASGI or WSGI application, or a function")
        url = url.rstrip("/")
        mount = Mount(url=url, receiver=receiver, kind=kind_of(receiver), raise_exceptions=raise_exceptions)
        with self._lock:
            self._mounts[url] = mount

    def at(self, url: str) -> Mount | None:
        """Return the mount with the longest URL that ``url`` begins with, or None."""
        with self._lock:
            matching = [each for each in self._mounts if url == each or url.startswith((f"{each}/", f"{each}?"))]
            return self._mounts[max(matching, key=len)] if matching else None

    def urls(self) -> list[str]:
        """Return the mounted URLs, in the order in which they were mounted."""
        with self._lock:
            return list(self._mounts)
