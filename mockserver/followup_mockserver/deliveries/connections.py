"""Connections to webhook receivers, on which each request has one time limit as a whole.

They use the standard library instead of httpx, because tests patch httpx and httpcore for the whole process and must
not intercept the mock's own webhooks. For the same reason they ignore the proxy variables of the environment.

An attempt has one time limit for all of its operations together, from lookup to response. The timeout of a socket
applies to each read: a peer that sends a byte now and then, or one interim response after another, never exceeds it, so
the timeout is set to the remaining time before each operation. Lookups of the operating system can take minutes and
cannot be interrupted: each has a thread of its own, which its attempt abandons.
"""

import contextlib
import http.client
import ipaddress
import math
import selectors
import socket
import ssl
import threading
import weakref
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any

from followup._for_mockserver import addresses_of, result_within
from followup_mockserver.world.schema.formats import WebhookUrl, is_loopback_address
from followup_mockserver.world.state.clock import RealTime


class NotALoopbackAddressError(OSError):
    """Raised for a host of an http URL that is not this machine: only those may receive webhooks in clear text."""


def addresses(host: str, port: int, ends: float) -> list[str]:
    """Return the addresses of a host, in the order in which they should be tried.

    Raises:
        OSError, NoThreadError: the host does not exist, or cannot be looked up now.
        TimeoutError: the lookup has not ended at the instant ``ends`` of ``RealTime.monotonic``.
    """
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    return result_within(time_left(ends), lambda: addresses_of(host, port), "followup-mock-lookup")


class TimedSocket(socket.socket):
    """A socket whose operations raise ``TimeoutError`` after a fixed instant.

    Attributes:
        ends: that instant, of ``RealTime.monotonic``.
        has_received: whether any byte of the response to the current request has arrived.
    """

    ends: float = math.inf
    has_received: bool = False

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Receive, within the time limit."""
        self.settimeout(time_left(self.ends))
        received = super().recv_into(*args, **kwargs)
        self.has_received |= received > 0
        return received

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        """Send, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().sendall(*args, **kwargs)


class TimedTLSSocket(TimedSocket, ssl.SSLSocket):
    """The same with TLS."""


def time_left(ends: float) -> float:
    """Return the seconds until an instant of ``RealTime.monotonic``.

    Raises:
        TimeoutError: the instant has passed.
    """
    left = ends - RealTime.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(url: WebhookUrl, found: list[str], ends: float) -> socket.socket:
    """Connect to the first address of a URL's host that accepts the connection.

    Args:
        url: the URL; the host of an http URL must be this machine.
        found: the addresses of the host.
        ends: the instant of ``RealTime.monotonic`` at which the attempt to connect has timed out.

    Raises:
        OSError: the host is not this machine although it must be; the error of the last address.
        TimeoutError: the last address did not respond in time.
    """
    allowed = [each for each in found if url.scheme == "https" or is_loopback_address(each)]
    for position, address in enumerate(allowed):
        # Each address gets its share of the remaining time, so that one that hangs leaves time for the others.
        share = time_left(ends) / (len(allowed) - position)
        try:
            connected = socket.create_connection((address, url.port), share)
        except OSError:
            if position + 1 == len(allowed):
                raise
        else:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connected
    raise NotALoopbackAddressError(f"{url.host} is not this machine")


def reason_of(error: Exception) -> str:
    """Return why there was no connection or no response, such as ``the connection was refused``."""
    reason = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), None)
    if reason is None:
        reason = str(getattr(error, "strerror", None) or f"it failed with {type(error).__name__}").lower()
    detail = getattr(error, "verify_message", "")
    return f"{reason}: {detail}" if detail else reason


_REASONS: Mapping[type[Exception], str] = {
    TimeoutError: "no connection in time",
    ssl.SSLCertVerificationError: "its TLS certificate is not trusted",
    ssl.SSLError: "the TLS handshake failed",
    NotALoopbackAddressError: "http is for loopback addresses, and this host is not one",
    socket.gaierror: "the name of the host is unknown",
    ConnectionRefusedError: "the connection was refused",
    ConnectionError: "the connection was closed without a response",
    http.client.HTTPException: "the response is not HTTP",
}
"""By exception class; the first that fits."""

MAX_KEPT = 32
"""Idle connections that a sender keeps open."""


class _Response(http.client.HTTPResponse):
    """A response whose status line decides: http.client has limits for headers, and rejects what exceeds them."""

    def begin(self) -> None:
        """Read status and headers; headers that cannot be read are dropped, and the body with them."""
        try:
            super().begin()
            # Interim responses, of which http.client itself skips only 100.
            while 100 <= self.status < 200 and self.status != HTTPStatus.SWITCHING_PROTOCOLS:
                self.version, self.headers = 0, None  # type: ignore[assignment]  # otherwise nothing is read
                super().begin()
        except (OSError, http.client.HTTPException) as error:
            if self.version not in (10, 11) or isinstance(error, TimeoutError):
                raise
            self.headers = self.msg = http.client.HTTPMessage()
            self.chunked, self.length, self.will_close = False, 0, True


class Connection(http.client.HTTPConnection):
    """An open connection to the origin of a URL, on which each request has one time limit as a whole."""

    response_class: type[http.client.HTTPResponse] = _Response
    is_kept: bool = False
    """Whether it has had a response before."""

    def __init__(self, url: WebhookUrl, connected: TimedSocket) -> None:
        super().__init__(url.host, url.port)
        self.origin: str = url.origin
        self.sock: Any = connected
        # A response that closes the connection takes the socket over, and ``sock`` is None from then on.
        self._socket = connected

    def send_request(
        self, method: str, url: WebhookUrl, headers: dict[str, str], body: bytes | None, ends: float
    ) -> http.client.HTTPResponse:
        """Send a request, and return its response, of which only status and headers have been read.

        Args:
            method: the HTTP method.
            url: where to send it; the connection is open to its origin.
            headers: headers besides ``Host`` and ``Content-Length``.
            body: the request body, if it has one.
            ends: the instant of ``RealTime.monotonic`` at which the request, and reading its response, has timed out.

        Raises:
            TimeoutError: the response has not begun in time.
            OSError: the connection failed.
        """
        self.limit(ends)
        self._socket.has_received = False
        # A receiver may respond and close the connection before it has read the whole request: its status counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.request(method, url.target, body, {"Host": url.authority, **headers})
        return self.getresponse()

    def was_closed_before(self, error: BaseException) -> bool:
        """Return whether a request failed because the other side had closed the kept connection in the meantime."""
        is_closed = isinstance(error, OSError) and not isinstance(error, TimeoutError)
        return is_closed and self.is_kept and not self._socket.has_received

    def limit(self, ends: float) -> None:
        """Let the request in progress time out at an instant of ``RealTime.monotonic``."""
        self._socket.ends = ends

    def is_usable(self) -> bool:
        """Whether the connection is open, and no unexpected data has arrived on it."""
        if self.sock is None:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return not selector.select(0)

    def interrupt(self) -> None:
        """Abort the request in progress, which another thread may have sent."""
        with contextlib.suppress(OSError):  # it may have been closed already
            self._socket.shutdown(socket.SHUT_RDWR)


class Connections:
    """The open connections of a sender. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Connection] = []
        self._in_use: set[Connection] = set()
        self._closed = False
        # Closes the sockets even if the mock is garbage-collected without being closed.
        self._finalizer = weakref.finalize(self, _close, self._kept)

    def take(self, url: WebhookUrl, ends: float, *, is_new: bool = False) -> Connection:
        """Return an open connection to the origin of a URL, for one attempt.

        Args:
            url: the URL of the receiver.
            ends: the instant of ``RealTime.monotonic`` by which the connection must be open.
            is_new: whether it must not be one that has been kept.

        Raises:
            OSError: the connection failed.
            TimeoutError: it was not open in time.
        """
        connection = None if is_new else self._usable(url.origin)
        connection = connection or Connection(url, self._opened(url, ends))
        with self._lock:
            self._in_use.add(connection)
            closed = self._closed
        if closed:
            self.release(connection)
            raise ConnectionAbortedError
        return connection

    def release(self, connection: Connection, *, reusable: bool = False) -> None:
        """Close a connection, or keep it for the next attempt if its response has been read completely."""
        unwanted: Connection | None = connection
        with self._lock:
            self._in_use.discard(connection)
            if reusable and not self._closed:
                connection.is_kept = True
                self._kept.append(connection)
                unwanted = self._kept.pop(0) if len(self._kept) > MAX_KEPT else None
        if unwanted is not None:
            unwanted.close()

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        with self._lock:
            self._closed = True
            in_use = list(self._in_use)
        for connection in in_use:
            connection.interrupt()
        self._finalizer()

    def _usable(self, origin: str) -> Connection | None:
        """Return the connection to an origin that was used last and still works; None if there is none."""
        with self._lock:
            kept = [each for each in reversed(self._kept) if each.origin == origin]
            for connection in kept:
                self._kept.remove(connection)
                if connection.is_usable():
                    return connection
                connection.close()
        return None

    def _opened(self, url: WebhookUrl, ends: float) -> TimedSocket:
        connected = connect(url, addresses(url.host, url.port, ends), ends)
        if url.scheme == "http":
            return TimedSocket(fileno=connected.detach())
        with contextlib.closing(connected):  # the TLS socket takes the connection over, unless the handshake fails
            connected.settimeout(time_left(ends))
            encrypted = self._tls.wrap_socket(connected, server_hostname=url.host)
        assert isinstance(encrypted, TimedSocket)
        return encrypted

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.sslsocket_class = TimedTLSSocket
        return context


def _close(kept: list[Connection]) -> None:
    while kept:
        kept.pop().close()
