"""Applications mounted in this process: webhooks to their URLs go to them, and no socket is opened."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

import httpx

from followup_mockserver.clock import RealTime
from followup_mockserver.rules.deliveries import Outcome, Outgoing
from followup_mockserver.transport import call_wsgi

Receiver = Callable[..., Any]
"""A WSGI or ASGI application, or a function that takes an httpx.Request and returns an httpx.Response."""


class Mounts:
    """The mounted applications, by the URLs that they answer for."""

    def __init__(self) -> None:
        self._receivers: dict[str, Receiver] = {}
        self._lock = threading.Lock()

    def add(self, url: str, receiver: Receiver) -> None:
        """Have webhooks whose URL begins with this go to the receiver."""
        if not callable(receiver):
            raise TypeError("mount() takes a WSGI or ASGI application, or a function")
        with self._lock:
            self._receivers[url.rstrip("/")] = receiver

    def clear(self) -> None:
        with self._lock:
            self._receivers.clear()

    def receiver_for(self, url: str) -> Receiver | None:
        """The receiver with the longest URL that this one begins with."""
        with self._lock:
            matching = [each for each in self._receivers if url == each or url.startswith((f"{each}/", f"{each}?"))]
            return self._receivers[max(matching, key=len)] if matching else None


def deliver(receiver: Receiver, outgoing: Outgoing) -> Outcome:
    """Hand an attempt to a mounted receiver; what it raises is a failed attempt."""
    started = RealTime.monotonic()
    request = httpx.Request("POST", outgoing.url, headers=outgoing.headers, content=outgoing.body)
    status: int | None = None
    try:
        status = _answer(receiver, request).status_code
        error = None if 200 <= status < 300 else f"HTTP status {status}."
    except Exception as problem:  # noqa: BLE001 - an attempt fails, the mock does not
        error = f"The receiver raised {type(problem).__name__}."
    return Outcome(status_code=status, error=error, seconds=RealTime.monotonic() - started)


def _answer(receiver: Receiver, request: httpx.Request) -> httpx.Response:
    if _takes(receiver, 3):
        return _call_asgi(receiver, request)
    if _takes(receiver, 2):
        return call_wsgi(receiver, request)
    answer = receiver(request)
    if not isinstance(answer, httpx.Response):
        raise TypeError("a mounted function returns an httpx.Response")
    return answer


def _takes(receiver: Receiver, count: int) -> bool:
    """Whether the receiver can be called with so many arguments."""
    try:
        inspect.signature(receiver).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # no signature to look at
        return count == 2
    return True


def _call_asgi(app: Receiver, request: httpx.Request) -> httpx.Response:
    """Call the application in an event loop of its own: the caller may be inside one already."""
    result: list[httpx.Response | BaseException] = []

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            return await client.send(request)

    def run() -> None:
        try:
            result.append(asyncio.run(send()))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            result.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name="followup-mock-asgi")
    thread.start()
    thread.join()
    (outcome,) = result
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
