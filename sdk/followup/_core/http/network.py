"""Sockets of synchronous connections whose operations all end with the attempt, and the lookup of host names.

httpcore limits each read, not their sum. So an attempt would never end if the headers or the body arrived byte by byte,
or if the server sent interim (1xx) responses forever. httpcore opens its connections through a network backend; that of
a lane wraps httpcore's own, and limits each operation to the time that is left of the attempt.
"""

import ipaddress
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import httpcore

from followup._core.threads import NoThreadError, addresses_of, result_within
from followup._core.time import REAL_TIME

T = TypeVar("T")

_PIECE = 16 * 1024
"""Bytes to write at once, so that the time is checked in between; also the largest record of TLS."""

LOOKUP_THREAD: Final = "followup-lookup"
LOOKUP_TOO_LATE: Final = "the DNS lookup of the host took too long"
NO_ADDRESS: Final = "the host has no address"

_SHORTEST_SHARE = 0.001
"""Seconds for a host's next address, however late it is."""


class Limit:
    """When the attempt that uses a connection has to end.

    Attributes:
        ends: the end, in seconds of ``REAL_TIME``; None for no limit.
        has_sent: whether a part of the request may have been written.
        has_received: whether anything was read.
    """

    def __init__(self) -> None:
        self.ends: float | None = None
        self.has_sent = self.has_received = False

    def start(self, seconds: float | None) -> None:
        """Begin an attempt that may take this long; None for no limit."""
        self.ends = None if seconds is None else REAL_TIME.monotonic() + seconds
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


def share_of(ends: float | None, addresses: int) -> float | None:
    """Return the seconds to connect to the next of so many addresses. They share the time: one may not respond."""
    return None if ends is None else max((ends - REAL_TIME.monotonic()) / addresses, _SHORTEST_SHARE)


class Backend(httpcore.NetworkBackend):
    """Opens the connection of one lane."""

    def __init__(self, handshakes: int = 0) -> None:
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
        addresses = [host] if self.limit.ends is None or is_address(host) else look_up(host, port, within)
        failure: Exception = httpcore.ConnectError(NO_ADDRESS)
        for tried, address in enumerate(addresses):
            share = share_of(ends, len(addresses) - tried)
            try:
                opened = self._sockets.connect_tcp(address, port, share, local_address, socket_options)
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
        self._limit.has_received = True
        return self._stream.read(max_bytes, self._limit.within(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._limit.has_sent |= self._handshakes == 0
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], self._limit.within(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        within = self._limit.within(timeout, httpcore.ConnectTimeout)
        if self._stream.get_extra_info("ssl_object") is None:
            self._stream = self._stream.start_tls(ssl_context, server_hostname, within)
        else:
            below = Stream(self._stream, self._limit, self._handshakes)
            self._stream = _TLSWithinTLS(below, ssl_context, server_hostname, within)
        self._handshakes -= 1
        return self

    def close(self) -> None:
        self._stream.close()

    def __del__(self) -> None:
        if "_stream" in vars(self):  # the constructor may have been interrupted
            self._stream.close()  # an interrupt may have come before anything else knew the connection

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _TLSWithinTLS(httpcore.NetworkStream):
    """TLS through a proxy that is reached with TLS itself.

    httpcore's own has one timeout for each read of the socket, of which an operation may need any number.
    """

    def __init__(
        self, below: Stream, context: ssl.SSLContext, server_hostname: str | None, timeout: float | None
    ) -> None:
        self._below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        try:
            self._run(self._tls.do_handshake, timeout)
        except (httpcore.ReadTimeout, httpcore.WriteTimeout) as error:
            raise httpcore.ConnectTimeout(str(error)) from None
        except (OSError, httpcore.NetworkError) as error:
            raise httpcore.ConnectError(str(error)) from None

    def _run(self, operation: Callable[[], T], timeout: float | None) -> T:
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                self._flush(timeout)
                if received := self._below.read(_PIECE, timeout):
                    self._incoming.write(received)
                else:
                    self._incoming.write_eof()
            else:
                self._flush(timeout)
                return result

    def _flush(self, timeout: float | None) -> None:
        while written := self._outgoing.read(_PIECE):
            self._below.write(written, timeout)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return self._run(lambda: self._tls.read(max_bytes), timeout)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except OSError as error:
            raise httpcore.ReadError(str(error)) from None

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self._run(lambda: self._tls.write(buffer), timeout)
        except OSError as error:
            raise httpcore.WriteError(str(error)) from None

    def close(self) -> None:
        self._below.close()

    def get_extra_info(self, info: str) -> Any:
        return self._tls if info == "ssl_object" else self._below.get_extra_info(info)


def is_address(host: str) -> bool:
    """Return whether a host is an IP address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


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
        return result_within(seconds, lambda: addresses_of(host, port), LOOKUP_THREAD)
    except TimeoutError:
        raise httpcore.ConnectTimeout(LOOKUP_TOO_LATE) from None
    except (OSError, NoThreadError) as error:
        raise httpcore.ConnectError(str(error)) from None
