"""The time limit of an attempt, enforced where httpx does not: at each connect, TLS handshake, read and write.

httpx bounds each read and not their sum, so a response that drips a byte at a time never ends; neither do headers
that drip, nor interim (1xx) responses without end. httpcore takes all of its connections from a network backend. The
one below hands out httpcore's own, and gives each of their operations no more than what is left of the attempt.
"""

import ipaddress
import queue
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import httpcore

from followup._threads import NoThreadError, run_aside
from followup._time_limit import seconds_left

_PIECE = 16 * 1024
"""Bytes that a socket takes in one go once it is writable, so that the clock is read between any two of them."""


_Found = list[str] | Exception
_LOOK_UP_TOO_LATE = "the look-up of the host took too long"

_SHORTEST = 0.001
"""Seconds of a timeout that is all but used up."""


class Backend(httpcore.NetworkBackend):
    """Opens connections whose every operation ends in time."""

    def __init__(self) -> None:
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError("no address")
        for address in self._addresses(host, port, timeout):
            within = _at_most(timeout, httpcore.ConnectTimeout)
            try:
                return _Stream(self._sockets.connect_tcp(address, port, within, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def _addresses(self, host: str, port: int, timeout: float | None) -> list[str]:
        if seconds_left() is None or _is_address(host):
            return [host]
        return _look_up(host, port, _at_most(timeout, httpcore.ConnectTimeout))


class _Stream(httpcore.NetworkStream):
    """A connection whose every operation ends in time."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _at_most(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], _at_most(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        within = _at_most(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, within))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """Opens connections that a cancelled TLS handshake does not leave open, as those of httpcore are.

    An event loop ends an attempt by cancelling it, wherever it is; all other places close what they opened.
    """

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        address = host
        if not _is_address(host):
            started = time.monotonic()
            found = await _look_up_async(host, port, timeout)
            if len(found) == 1:
                address = found[0]
            # Several are raced by the backend, which looks them up once more: by now an answer is at hand.
            if timeout is not None:
                timeout = max(timeout - (time.monotonic() - started), _SHORTEST)
        stream = await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
        shake_hands = stream.start_tls

        async def start_tls(*args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
            try:
                return await shake_hands(*args, **kwargs)
            except BaseException:
                await stream.aclose()
                raise

        # On the stream itself: one around it would cost a coroutine for each read and write.
        stream.start_tls = start_tls  # type: ignore[method-assign]
        return stream


def _at_most(timeout: float | None, too_late: type[httpcore.TimeoutException]) -> float | None:
    """The timeout, or what is left of the attempt if that is less."""
    left = seconds_left()
    if left is None:
        return timeout
    if left <= 0:
        raise too_late("the attempt took too long")
    return left if timeout is None else min(timeout, left)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _look_up(host: str, port: int, seconds: float | None) -> list[str]:
    """The addresses of a host. In a thread, because nothing can bound a look-up but to stop waiting for it."""
    done: queue.SimpleQueue[_Found] = queue.SimpleQueue()
    _look_up_aside(host, port, done.put)
    try:
        return _addresses(done.get(timeout=seconds))
    except queue.Empty:
        raise httpcore.ConnectTimeout(_LOOK_UP_TOO_LATE) from None


async def _look_up_async(host: str, port: int, seconds: float | None) -> list[str]:
    """The same for a task. Not in the threads of the event loop: look-ups that hang would take them all."""
    import asyncio  # costs as much as the rest of the package, and synchronous code does not need it

    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Found] = loop.create_future()

    def finish(found: _Found) -> None:
        if not done.done():
            done.set_result(found)

    def report(found: _Found) -> None:
        with suppress(RuntimeError):  # the event loop has ended meanwhile
            loop.call_soon_threadsafe(finish, found)

    _look_up_aside(host, port, report)
    await asyncio.wait([done], timeout=seconds)
    if not done.done():
        raise httpcore.ConnectTimeout(_LOOK_UP_TOO_LATE)
    return _addresses(done.result())


def _look_up_aside(host: str, port: int, report: Callable[[_Found], object]) -> None:
    def look_up() -> None:
        try:
            report([str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, UnicodeError) as error:  # the latter for a label of more than 63 characters
            report(error)

    try:
        run_aside(look_up, "followup-lookup")
    except NoThreadError as error:
        raise httpcore.ConnectError(str(error)) from None


def _addresses(found: _Found) -> list[str]:
    if isinstance(found, Exception):
        raise httpcore.ConnectError(str(found))
    return found
