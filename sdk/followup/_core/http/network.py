"""Connections whose operations all end with the attempt, and the lookup of host names.

httpcore opens its connections through a network backend, and each lane has one of ours. Synchronous operations of
httpcore's own limit each read, not their sum: an attempt would never end if the headers or the body arrived byte by
byte, or if the server sent interim (1xx) responses forever. So each of ours is limited to the time that is left of the
attempt. Asynchronous connections, which a timer of the event loop ends, use asyncio alone: httpcore's own go through
anyio, which takes most of the time of a call.
"""

import asyncio
import ipaddress
import select
import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import httpcore

from followup._core.threads import NoThreadError, addresses_of, is_address, result_within, start_thread
from followup._core.time import REAL_TIME

_PIECE = 16 * 1024
"""Bytes to write at once, so that the time is checked in between; also the largest record of TLS."""

_MOST_UNREAD = 256 * 1024
"""Bytes that an asynchronous connection may have received before they are read. Then the server has to wait."""

_LOOKUP_THREAD: Final = "followup-lookup"
_NO_ADDRESS: Final = "the host has no address"

_SHORTEST_SHARE = 0.001  # 0 would make the socket non-blocking, which fails in another way
"""Seconds for a host's next address, however late it is."""


class Limit:
    """When the attempt that uses a connection has to end.

    Attributes:
        ends: the end, in seconds of ``REAL_TIME``; None for no limit.
        has_sent: whether a part of the request may have been written.
        has_received: whether anything was read.
    """

    def __init__(self) -> None:
        self.start(None)

    def start(self, seconds: float | None) -> None:
        """Begin an attempt that may take this long; None for no limit."""
        self.ends: float | None = None if seconds is None else REAL_TIME.monotonic() + seconds
        self.has_sent = self.has_received = False

    def check_received(self) -> None:
        """Reject a response that was left over from the attempt before, which may be about another patient.

        Raises:
            httpcore.RemoteProtocolError: it is one.
        """
        if not self.has_received:
            raise httpcore.RemoteProtocolError("the response was there before its request")

    def within(self, timeout: float | None, too_late: type[httpcore.TimeoutException]) -> float | None:
        """Return the timeout, but at most the time that is left of the attempt."""
        if self.ends is None:
            return timeout
        left = self.ends - REAL_TIME.monotonic()
        if left <= 0:  # never pass 0 on: it would make the socket non-blocking
            raise too_late("the attempt took too long")
        return left if timeout is None else min(timeout, left)


class Backend(httpcore.NetworkBackend):
    """Opens the connection of one lane of a thread."""

    def __init__(self, handshakes: int) -> None:
        self.limit = Limit()
        self._handshakes = handshakes
        self._sockets = httpcore.SyncBackend()
        self._stream: Stream | None = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        within = self.limit.within(timeout, httpcore.ConnectTimeout)
        ends = None if within is None else REAL_TIME.monotonic() + within
        failure: Exception = httpcore.ConnectError(_NO_ADDRESS)
        # Each address by itself, because socket.create_connection would give the whole time to each of them.
        for address, seconds in _shares([host] if is_address(host) else look_up(host, port, within), ends):
            try:
                opened = self._sockets.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                self._stream = Stream(opened, self.limit, self._handshakes)
                return self._stream
        raise failure

    def close(self) -> None:
        """Close the connection, whatever its state."""
        if self._stream is not None:
            self._stream.close()


class Stream(httpcore.NetworkStream):
    """A connection whose operations all end in time.

    Before the last of its TLS handshakes, nothing of a request is written: only what a proxy gets to open a tunnel.
    """

    def __init__(self, stream: httpcore.NetworkStream, limit: Limit, handshakes: int) -> None:
        self._stream = stream
        self._limit = limit
        self._handshakes = handshakes

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._limit.has_received = True  # httpcore reads only when a response is due
        return self._stream.read(max_bytes, self._limit.within(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._limit.has_sent |= self._handshakes == 0  # before the bytes: they may arrive although writing fails
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], self._limit.within(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        within = self._limit.within(timeout, httpcore.ConnectTimeout)
        self._stream = self._stream.start_tls(ssl_context, server_hostname, within)
        self._handshakes -= 1
        return self  # httpcore goes on with what this returns, which has to know the time limit

    def close(self) -> None:
        self._stream.close()

    def __del__(self) -> None:
        if "_stream" in vars(self):  # the constructor may have been interrupted
            self._stream.close()  # an interrupt may have come before anything else knew the connection

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """Opens the connection of one lane of an event loop."""

    def __init__(self, handshakes: int) -> None:
        self.limit = Limit()
        self._handshakes = handshakes
        self._stream: AsyncStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        ends = None if timeout is None else REAL_TIME.monotonic() + timeout
        failure: Exception = httpcore.ConnectError(_NO_ADDRESS)
        # One address after the other, because uvloop does not take ``happy_eyeballs_delay``.
        stream = self._stream = AsyncStream(self.limit, self._handshakes)
        loop = asyncio.get_running_loop()
        for address, seconds in _shares([host] if is_address(host) else await _look_up(host, port, timeout), ends):
            try:
                async with asyncio.timeout(seconds):
                    await loop.create_connection(lambda: stream, address, port)
            except OSError as error:  # TimeoutError is one, too
                failure = _connect_failure(error)
            else:
                return stream
        raise failure

    def close(self) -> None:
        """Close the connection, whatever its state. Nothing is awaited, so that it works where a task is cancelled."""
        if self._stream is not None:
            self._stream.abort()


class AsyncStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """A connection: what asyncio calls when something happens to it, and what httpcore calls to use it.

    Before the last of its TLS handshakes, nothing of a request is written, as in ``Stream``.
    """

    def __init__(self, limit: Limit, handshakes: int) -> None:
        self._limit = limit
        self._handshakes = handshakes
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._has_ended = False
        self._is_full = False  # the transport does not accept more to write for now
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _MOST_UNREAD and self._transport is not None:
            self._transport.pause_reading()
        self._changed.set()

    def eof_received(self) -> None:  # None lets asyncio close the connection; what has arrived is still read
        self._has_ended = True
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended, self._failure = True, exc
        self._transport = None  # asyncio's would fail if it was closed again
        self._changed.set()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._changed.set()

    async def _wait_while(
        self, condition: Callable[[], bool], seconds: float | None, too_late: type[Exception]
    ) -> None:
        try:
            async with asyncio.timeout(seconds):
                # The end also ends a wait to write: a server may reject a large body and close before it has read it.
                while condition() and not self._has_ended:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise too_late("the server did not go on in time") from None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await self._wait_while(lambda: not self._received, timeout, httpcore.ReadTimeout)
        self._limit.has_received = True
        received = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if not received and self._failure is not None:
            raise httpcore.ReadError(type(self._failure).__name__)
        if self._transport is not None and not self._has_ended and len(self._received) <= _MOST_UNREAD:
            self._transport.resume_reading()  # which does nothing where reading is not paused
        return received

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        # asyncio would drop the bytes without a word, and httpcore goes on to read a response after this error.
        if self._transport is None or self._has_ended:
            raise httpcore.WriteError("the connection is closed")
        self._limit.has_sent |= self._handshakes == 0
        self._transport.write(buffer)
        await self._wait_while(lambda: self._is_full, timeout, httpcore.WriteTimeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                if self._transport is not None:
                    self._transport = await loop.start_tls(
                        self._transport, self, ssl_context, server_hostname=server_hostname
                    )
        except OSError as error:  # also those of ssl
            raise _connect_failure(error) from None
        if self._transport is None:
            raise httpcore.ConnectError("the connection was closed during the TLS handshake")
        self._handshakes -= 1
        return self

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()  # `close` would go on sending what is buffered

    async def aclose(self) -> None:
        self.abort()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # an idle connection that is readable has been closed by the server
            return self._has_ended or bool(self._received) or _is_readable(self.get_extra_info("socket"))
        return None if self._transport is None else self._transport.get_extra_info(info)


def _is_readable(connection: Any) -> bool:
    """Return whether something has arrived, which the event loop may not have noticed yet."""
    # `select` fails for descriptors from 1024 on, which servers with many connections have.
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    arrived = select.poll()
    arrived.register(connection, select.POLLIN)
    return bool(arrived.poll(0))


def is_loopback(host: str) -> bool:
    """Return whether a host is this computer by its address or name."""
    if is_address(host):
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
    except (OSError, NoThreadError) as error:
        raise _connect_failure(error) from None


async def _look_up(host: str, port: int, seconds: float | None) -> list[str]:
    """Do the same as ``look_up``. The event loop's own threads are not used: hanging lookups would fill them."""
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(start_thread(lambda: addresses_of(host, port), _LOOKUP_THREAD))
    except (OSError, NoThreadError) as error:
        raise _connect_failure(error) from None


def _shares(addresses: list[str], ends: float | None) -> Iterator[tuple[str, float | None]]:
    """Yield each address with the seconds to connect to it. They share the time: one may not respond."""
    for tried, address in enumerate(addresses):
        if ends is None:
            yield address, None
        else:
            yield address, max((ends - REAL_TIME.monotonic()) / (len(addresses) - tried), _SHORTEST_SHARE)


def _connect_failure(error: Exception) -> Exception:
    if isinstance(error, TimeoutError):
        return httpcore.ConnectTimeout("the host did not respond in time")
    return httpcore.ConnectError(str(error))
