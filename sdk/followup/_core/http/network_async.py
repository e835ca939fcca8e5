"""Connections of the event loop of asyncio, as httpcore's network streams.

They use asyncio alone: httpcore's own go through anyio, which takes most of the time of a call.
"""

import asyncio
import select
import ssl
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import httpcore

from followup._core.http.network import LOOKUP_THREAD, LOOKUP_TOO_LATE, NO_ADDRESS, Limit, is_address, share_of
from followup._core.threads import NoThreadError, addresses_of, run_in_thread
from followup._core.time import REAL_TIME

_MOST_UNREAD = 256 * 1024
"""Bytes that a connection may have received before they are read. Then the server has to wait."""


class Backend(httpcore.AsyncNetworkBackend):
    """Opens the connection of one lane."""

    def __init__(self, handshakes: int = 0) -> None:
        self.limit = Limit()
        self._handshakes = handshakes
        self._stream: Stream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of the host that accepts."""
        ends = None if timeout is None else REAL_TIME.monotonic() + timeout
        addresses = [host] if is_address(host) else await _look_up(host, port, timeout)
        failure: Exception = httpcore.ConnectError(NO_ADDRESS)
        stream = self._stream = Stream(self.limit, self._handshakes)
        for tried, address in enumerate(addresses):
            try:
                async with asyncio.timeout(share_of(ends, len(addresses) - tried)):
                    await asyncio.get_running_loop().create_connection(lambda: stream, address, port)
            except TimeoutError:
                failure = httpcore.ConnectTimeout("the host did not accept the connection in time")
            except OSError as error:
                failure = httpcore.ConnectError(str(error))
            else:
                return stream
        raise failure

    def close(self) -> None:
        """Close the connection, whatever its state. Nothing is awaited, so that it works where a task is cancelled."""
        if self._stream is not None:
            self._stream.abort()


class Stream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """A connection: what asyncio calls when something happens to it, and what httpcore calls to use it.

    Before the last of its TLS handshakes, nothing of a request is written, as in ``network``.
    """

    def __init__(self, limit: Limit, handshakes: int) -> None:
        self._limit = limit
        self._handshakes = handshakes
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._has_ended = False
        self._is_full = False  # the transport does not accept more to write for now
        self._failure: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _MOST_UNREAD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._has_ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended, self._failure = True, exc
        self._transport = None  # asyncio's would fail if it was closed again
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _happens(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        try:
            async with _at_most(timeout):
                while not self._received and not self._has_ended:
                    await self._happens()
        except TimeoutError:
            raise httpcore.ReadTimeout("nothing was received in time") from None
        self._limit.has_received = True
        received = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if not received and self._failure is not None:
            raise httpcore.ReadError(type(self._failure).__name__)
        if self._transport is not None and not self._has_ended and len(self._received) <= _MOST_UNREAD:
            self._transport.resume_reading()
        return received

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if self._transport is None or self._has_ended:
            raise httpcore.WriteError("the connection is closed")
        self._limit.has_sent |= self._handshakes == 0
        self._transport.write(buffer)
        try:
            async with _at_most(timeout):
                while self._is_full and not self._has_ended:
                    await self._happens()
        except TimeoutError:
            raise httpcore.WriteTimeout("the server did not read in time") from None

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            if self._transport is None:
                raise ConnectionError("the connection was closed")
            async with asyncio.timeout(timeout):
                self._transport = await loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError:
            raise httpcore.ConnectTimeout("the TLS handshake took too long") from None
        except OSError as error:  # also those of ssl
            raise httpcore.ConnectError(str(error)) from None
        if self._transport is None:
            raise httpcore.ConnectError("the connection was closed during the TLS handshake")
        self._handshakes -= 1
        return self

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def aclose(self) -> None:
        self.abort()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # an idle connection that is readable has been closed by the server
            return self._has_ended or bool(self._received) or _is_readable(self.get_extra_info("socket"))
        if self._transport is None:
            return None
        return self._transport.get_extra_info({"client_addr": "sockname", "server_addr": "peername"}.get(info, info))


def _is_readable(connection: Any) -> bool:
    """Return whether something has arrived, which the event loop may not have noticed yet."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connection], [], [], 0)[0])
    arrived = select.poll()
    arrived.register(connection, select.POLLIN)
    return bool(arrived.poll(0))


def _at_most(seconds: float | None) -> AbstractAsyncContextManager[Any]:
    return nullcontext() if seconds is None else asyncio.timeout(seconds)


async def _look_up(host: str, port: int, seconds: float | None) -> list[str]:
    """Do the same as ``look_up``. The event loop's own threads are not used: hanging lookups would fill them."""
    found: Future[list[str]] = Future()
    found.set_running_or_notify_cancel()  # from now on, nothing can cancel it

    def work() -> None:
        try:
            found.set_result(addresses_of(host, port))
        except OSError as error:
            found.set_exception(error)

    try:
        run_in_thread(work, LOOKUP_THREAD)
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(found)
    except TimeoutError:
        raise httpcore.ConnectTimeout(LOOKUP_TOO_LATE) from None
    except (OSError, NoThreadError) as error:
        raise httpcore.ConnectError(str(error)) from None
