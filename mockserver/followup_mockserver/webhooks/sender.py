"""Delivery attempts over sockets (specification, section 6.2, Delivery and retries).

They use the standard library instead of httpx, because tests patch httpx for the whole process and must not intercept
the mock's own webhooks. For the same reason they ignore the proxy variables of the environment.

An attempt has one time limit for all of its operations together, from lookup to response. The timeout of a socket
applies to each read: a peer that sends a byte now and then, or one interim response after another, never exceeds it, so
the timeout is set to the remaining time before each operation. Lookups of the operating system can take minutes and
cannot be interrupted: each has a thread of its own.
"""

import contextlib
import http.client
import ipaddress
import math
import select
import socket
import ssl
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Any

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.schema.formats import WebhookUrl, is_loopback_address, parse_webhook_url
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers
from followup_mockserver.webhooks.attempting import AttemptResult, PreparedAttempt

MAX_LOOKUPS = 32
"""Lookups in progress at the same time, each in a thread that ends when the operating system responds."""

Address = tuple[socket.AddressFamily, str]


class NotALoopbackAddressError(OSError):
    """Raised for a host of an http URL that is not this machine: only those may receive webhooks in clear text."""


class TooManyLookupsError(OSError):
    """Raised when ``MAX_LOOKUPS`` lookups are in progress, so that another one would not end in time."""


class Lookups:
    """Looks up the addresses of hosts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_progress: dict[str, Future[list[Address]]] = {}

    def addresses(self, host: str, *, loopback_only: bool, ends: float) -> list[Address]:
        """Return the addresses of a host, in the order in which they should be tried.

        Args:
            host: name or IP address.
            loopback_only: whether to accept only addresses of this machine.
            ends: the instant of ``RealTime.monotonic`` at which the lookup has timed out.

        Raises:
            OSError: the host does not exist, or it is not this machine although it must be.
            TimeoutError: the lookup took too long.
        """
        try:
            found = [(_family(host), host)]
        except ValueError:
            found = self._lookup(host).result(max(0.0, ends - RealTime.monotonic()))
        if loopback_only:
            found = [each for each in found if is_loopback_address(each[1])]
            if not found:
                raise NotALoopbackAddressError(f"{host} is not this machine")
        return found

    def _lookup(self, host: str) -> "Future[list[Address]]":
        with self._lock:
            lookup = self._in_progress.get(host)
            if lookup is None:
                if len(self._in_progress) >= MAX_LOOKUPS:
                    raise TooManyLookupsError(f"{len(self._in_progress)} names are being looked up")
                lookup = self._in_progress[host] = Future()
                threading.Thread(
                    target=self._look_up, args=(host, lookup), name="followup-mock-lookup", daemon=True
                ).start()
        return lookup

    def _look_up(self, host: str, lookup: "Future[list[Address]]") -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses: list[Address] = [(family, str(address[0])) for family, _, _, _, address in found]
        except Exception as error:  # noqa: BLE001 - raised again in each waiting thread
            self._remove(host)
            lookup.set_exception(error)
        else:
            self._remove(host)
            lookup.set_result(addresses)

    def _remove(self, host: str) -> None:
        with self._lock:
            del self._in_progress[host]


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET


class TimedSocket(socket.socket):
    """A socket whose operations raise ``TimeoutError`` after a fixed instant.

    Attributes:
        ends: that instant, of ``RealTime.monotonic``.
    """

    ends = math.inf

    def connect(self, address: Any) -> None:
        """Connect, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().connect(address)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive, within the time limit."""
        self.settimeout(time_left(self.ends))
        return super().recv_into(buffer, nbytes, flags)

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Send, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().sendall(data, flags)


class TimedTLSSocket(ssl.SSLSocket):
    """A TLS socket whose operations raise ``TimeoutError`` after a fixed instant.

    Attributes:
        ends: that instant, of ``RealTime.monotonic``.
    """

    ends = math.inf

    def do_handshake(self, block: bool = False) -> None:
        """Make the TLS handshake, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().do_handshake(block)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """Receive, within the time limit."""
        self.settimeout(time_left(self.ends))
        return super().recv_into(buffer, nbytes, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        """Send a part, within the time limit; ``sendall`` calls this for each part."""
        self.settimeout(time_left(self.ends))
        return super().send(data, flags)


def time_left(ends: float) -> float:
    """Return the seconds until an instant of ``RealTime.monotonic``.

    Raises:
        TimeoutError: the instant has passed.
    """
    left = ends - RealTime.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(addresses: Sequence[Address], port: int, ends: float) -> TimedSocket:
    """Connect to the first address that accepts the connection.

    Args:
        addresses: addresses in the order in which to try them.
        port: the port, the same for all.
        ends: the instant of ``RealTime.monotonic`` at which the attempt to connect has timed out.

    Raises:
        OSError: the error of the last address.
        TimeoutError: the last address did not respond in time.
    """
    for position, (family, address) in enumerate(addresses):
        connecting = TimedSocket(family, socket.SOCK_STREAM)
        # Each address gets its share of the remaining time, so that one that hangs leaves time for the others.
        connecting.ends = RealTime.monotonic() + time_left(ends) / (len(addresses) - position)
        try:
            connecting.connect((address, port))
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException as error:
            connecting.close()
            if position + 1 == len(addresses) or not isinstance(error, OSError):
                raise
        else:
            connecting.ends = ends
            return connecting
    raise OSError("the host has no address")


def with_tls(connected: TimedSocket, context: ssl.SSLContext, host: str) -> TimedTLSSocket:
    """Make a TLS handshake, in which ``context`` verifies the certificate, and return the TLS socket."""
    context.sslsocket_class = TimedTLSSocket
    wrapped: ssl.SSLSocket | None = None
    try:
        wrapped = context.wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        assert isinstance(wrapped, TimedTLSSocket)
        wrapped.ends = connected.ends
        wrapped.do_handshake()
    except BaseException:
        (wrapped or connected).close()
        raise
    return wrapped


MAX_KEPT = 32
"""Idle connections that a sender keeps open."""


class _Response(http.client.HTTPResponse):
    def _read_status(self) -> tuple[str, int, str]:
        # http.client skips only the interim response 100. Reporting the others as 100 makes it skip them too.
        version, status, reason = super()._read_status()  # type: ignore[misc]
        return version, 100 if 101 < status < 200 else status, reason


class Connection(http.client.HTTPConnection):
    """A connection to the origin of a URL, on which each request has one time limit as a whole."""

    response_class = _Response
    sock: TimedSocket | TimedTLSSocket | None  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, url: WebhookUrl) -> None:
        super().__init__(url.host, url.port)
        self.origin = url.origin
        # A response that closes the connection takes the socket over, and ``sock`` is None from then on.
        self._last_used: TimedSocket | TimedTLSSocket | None = None

    def post(self, url: WebhookUrl, headers: dict[str, str], body: bytes, ends: float) -> http.client.HTTPResponse:
        """Send a request, and return its response, of which only status and headers have been read.

        Args:
            url: where to send it; the connection is open to its origin.
            headers: headers besides ``Host`` and ``Content-Length``.
            body: the request body.
            ends: the instant of ``RealTime.monotonic`` at which the request has timed out.

        Raises:
            TimeoutError: the response has not begun in time.
            OSError: the connection failed.
        """
        return self._send("POST", url, headers, body, ends)

    def get(self, url: WebhookUrl, headers: dict[str, str], ends: float) -> http.client.HTTPResponse:
        """Do the same with a GET request, which has no body. The time limit also holds for reading the response."""
        return self._send("GET", url, headers, None, ends)

    def _send(
        self, method: str, url: WebhookUrl, headers: dict[str, str], body: bytes | None, ends: float
    ) -> http.client.HTTPResponse:
        assert self.sock is not None
        self._last_used = self.sock
        self.limit(ends)
        # A receiver may respond and close the connection before it has read the whole request: its status counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.request(method, url.target, body, {"Host": url.authority, **headers})
        return self.getresponse()

    def limit(self, ends: float) -> None:
        """Let the request in progress time out at an instant of ``RealTime.monotonic``."""
        if self._last_used is not None:
            self._last_used.ends = ends

    def is_usable(self) -> bool:
        """Whether the connection is open, and no unexpected data has arrived on it."""
        return self.sock is not None and not _has_something_to_read(self.sock)

    def interrupt(self) -> None:
        """Abort the request in progress, which another thread may have sent."""
        used = self._last_used or self.sock
        if used is not None:
            with contextlib.suppress(OSError):  # it may have been closed already
                used.shutdown(socket.SHUT_RDWR)


class Connections:
    """The open connections of a sender. Thread-safe."""

    def __init__(self) -> None:
        self._lookups = Lookups()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Connection, None] = OrderedDict()
        self._in_use: set[Connection] = set()
        self._closed = False
        # Closes the sockets even if the mock is garbage-collected without being closed.
        self._finalizer = weakref.finalize(self, _close, self._kept)

    def take(self, url: WebhookUrl, ends: float) -> Connection:
        """Return an open connection to the origin of a URL, for one attempt.

        Args:
            url: the URL of the receiver.
            ends: the instant of ``RealTime.monotonic`` by which the connection must be open.

        Raises:
            OSError: the connection failed.
            TimeoutError: it was not open in time.
        """
        while (kept := self._pop(url.origin)) is not None:
            if kept.is_usable():
                return kept
            self.drop(kept)
        connection = Connection(url)
        addresses = self._lookups.addresses(url.host, loopback_only=url.scheme == "http", ends=ends)
        connected = connect(addresses, url.port, ends)
        connection.sock = with_tls(connected, self._tls, url.host) if url.scheme == "https" else connected
        with self._lock:
            self._in_use.add(connection)
            closed = self._closed
        if closed:
            self.drop(connection)
            raise ConnectionAbortedError
        return connection

    def keep(self, connection: Connection) -> None:
        """Keep a connection for the next attempt, once its response has been read completely."""
        with self._lock:
            self._in_use.discard(connection)
            if not self._closed:
                self._kept[connection] = None
                if len(self._kept) <= MAX_KEPT:
                    return
                connection, _ = self._kept.popitem(last=False)
        connection.close()

    def drop(self, connection: Connection) -> None:
        """Close a connection that cannot be reused."""
        with self._lock:
            self._in_use.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        with self._lock:
            self._closed = True
            in_use = list(self._in_use)
        for connection in in_use:
            connection.interrupt()
        self._finalizer()

    def _pop(self, origin: str) -> Connection | None:
        with self._lock:
            for connection in reversed(self._kept):
                if connection.origin == origin:
                    del self._kept[connection]
                    self._in_use.add(connection)
                    return connection
        return None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def _close(kept: OrderedDict[Connection, None]) -> None:
    while kept:
        kept.popitem()[0].close()


def _has_something_to_read(sock: socket.socket) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])  # platforms without poll have no limit on select


_BODY_TIMEOUT = 1.0
"""Seconds that the beginning of a response's body has to arrive after its head."""


class Sender:
    """Sends delivery attempts over sockets. Thread-safe.

    Args:
        timeout: seconds after which an attempt has failed, from lookup to response.
    """

    def __init__(self, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._timeout = timeout
        self._connections = Connections()

    def send(self, attempt: PreparedAttempt) -> AttemptResult:
        """Send an attempt, and return its result. Errors are part of the result, and not raised."""
        began = RealTime.monotonic()
        ends = began + self._timeout
        try:
            url = parse_webhook_url(attempt.url)
            connection = self._connections.take(url, ends)
            try:
                response = connection.post(url, attempt.headers, attempt.body, ends)
            except BaseException:
                self._connections.drop(connection)
                raise
        except TimeoutError:
            return _without_response(Outcome(Kind.TIMED_OUT, seconds=self._timeout), began)
        except Exception as problem:  # noqa: BLE001 - any error is a failed attempt
            return _without_response(Outcome(Kind.UNREACHABLE, type(problem).__name__), began)
        seconds = RealTime.monotonic() - began
        outcome = Outcome(Kind.RESPONDED, status=response.status)
        return AttemptResult(outcome, seconds, response=self._read(connection, response, ends))

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        self._connections.close()

    def _read(self, connection: Connection, response: http.client.HTTPResponse, ends: float) -> ReceiverResponse:
        """Read the beginning of the body, and keep the connection if that is all of it.

        The status has decided the outcome already, so a body that does not end only costs time, and little of it.
        """
        connection.limit(min(ends, RealTime.monotonic() + _BODY_TIMEOUT))
        body, is_whole = _beginning_of(response)
        keep = is_whole and not response.will_close and response.status >= 200
        response.close()
        if keep:
            self._connections.keep(connection)
        else:
            self._connections.drop(connection)
        return ReceiverResponse(
            status_line=f"HTTP/{response.version / 10:.1f} {response.status} {response.reason}".rstrip(),
            headers=joined_headers(response.getheaders()),
            body=body,
            body_is_whole=is_whole,
        )


def _beginning_of(response: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """Return the beginning of a body as far as it arrives, and whether that is the whole body."""
    expected = response.length
    body = b""
    try:
        while (missing := LONGEST_RESPONSE_BODY + 1 - len(body)) > 0 and len(body) != expected:
            piece = response.read1(missing if expected is None else min(missing, expected - len(body)))
            if not piece:
                # Without a length, the body ends with the connection.
                return body, expected is None
            body += piece
    except (OSError, ValueError, http.client.HTTPException):
        return body, False
    return body, len(body) == expected and len(body) <= LONGEST_RESPONSE_BODY


def _without_response(outcome: Outcome, began: float) -> AttemptResult:
    return AttemptResult(outcome, RealTime.monotonic() - began)
