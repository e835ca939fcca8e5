"""Network backends that enforce the time limit of an attempt at each connect, TLS handshake, read and write.

httpx limits each read, not their sum. So an attempt never ends if the headers or the body arrive byte by byte, or if
the server sends interim (1xx) responses forever. httpcore opens its connections through a network backend; the
synchronous one below wraps those of httpcore, and limits each operation to the time that is left of the attempt.
"""

import ipaddress
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from followup._threads import NoThreadError, addresses_of, result_within, run_in_thread
from followup._time import seconds_left

_PIECE = 16 * 1024
"""Bytes to write at once, so that the time is checked in between."""


_LOOKUP_THREAD = "followup-lookup"
_LOOKUP_TOO_LATE = "the DNS lookup of the host took too long"

_SHORTEST = 0.001
"""Minimum timeout in seconds, because a timeout of 0 would make the socket non-blocking."""


class Backend(httpcore.NetworkBackend):
    """Opens connections whose operations all end in time."""

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
        failure: Exception = httpcore.ConnectError("the host has no address")
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
        return look_up(host, port, _at_most(timeout, httpcore.ConnectTimeout))


class _Stream(httpcore.NetworkStream):
    """A connection whose operations all end in time.

    Args:
        stream: the connection of httpcore.
        below: the connection that carries this one, with TLS; it has to live as long.
    """

    def __init__(self, stream: httpcore.NetworkStream, below: "_Stream | None" = None) -> None:
        self._stream = stream
        self._below = below

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _at_most(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], _at_most(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        within = _at_most(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, within), self)

    def close(self) -> None:
        self._stream.close()

    def __del__(self) -> None:
        self._stream.close()  # an interrupt may have come before the connection was in the pool

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """Opens connections that are closed when their TLS handshake is cancelled.

    An event loop ends an attempt by cancelling it. httpcore then closes the connection, except during a TLS handshake.
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
        stream = await self._connected(host, port, timeout, local_address, socket_options)
        shake_hands = stream.start_tls

        async def start_tls(*args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
            try:
                return await shake_hands(*args, **kwargs)
            except BaseException:
                await stream.aclose()
                raise

        # Replaced on the stream itself: a wrapper would cost a coroutine for each read and write.
        stream.start_tls = start_tls  # type: ignore[method-assign]
        return stream

    async def _connected(
        self,
        host: str,
        port: int,
        timeout: float | None,  # noqa: ASYNC109
        *options: Any,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of the host that accepts. They share the time: one may not respond at all."""
        ends = None if timeout is None else time.monotonic() + timeout
        addresses = [host] if _is_address(host) else await _look_up_async(host, port, timeout)
        failure: Exception = httpcore.ConnectError("the host has no address")
        for tried, address in enumerate(addresses):
            within = None
            if ends is not None:
                within = max((ends - time.monotonic()) / (len(addresses) - tried), _SHORTEST)
            try:
                return await self._backend.connect_tcp(address, port, within, *options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


def _at_most(timeout: float | None, too_late: type[httpcore.TimeoutException]) -> float | None:
    """Return the timeout, but at most the time that is left of the attempt."""
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


def is_loopback(host: str) -> bool:
    """Return whether a host is this computer by its address or name."""
    if _is_address(host):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def look_up(host: str, port: int, seconds: float | None) -> list[str]:
    """Return the addresses of a host. The lookup runs in a thread, because it has no timeout of its own.

    Raises:
        httpcore.ConnectError: the host has no address.
        httpcore.ConnectTimeout: the lookup took too long.
    """
    try:
        return result_within(seconds, lambda: addresses_of(host, port), _LOOKUP_THREAD)
    except TimeoutError:
        raise httpcore.ConnectTimeout(_LOOKUP_TOO_LATE) from None
    except (OSError, NoThreadError) as error:
        raise httpcore.ConnectError(str(error)) from None


async def _look_up_async(host: str, port: int, seconds: float | None) -> list[str]:
    """Do the same as ``look_up``. The event loop's own threads are not used: hanging lookups would fill them."""
    import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it
    from concurrent.futures import Future

    found: Future[list[str]] = Future()
    found.set_running_or_notify_cancel()  # from now on, nothing can cancel it

    def work() -> None:
        try:
            found.set_result(addresses_of(host, port))
        except OSError as error:
            found.set_exception(error)

    try:
        run_in_thread(work, _LOOKUP_THREAD)
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(found)
    except TimeoutError:
        raise httpcore.ConnectTimeout(_LOOKUP_TOO_LATE) from None
    except (OSError, NoThreadError) as error:
        raise httpcore.ConnectError(str(error)) from None
