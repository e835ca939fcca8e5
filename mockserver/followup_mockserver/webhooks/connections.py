"""Connections to receivers, kept open for reuse."""

import contextlib
import http.client
import select
import socket
import ssl
import threading
import weakref
from collections import OrderedDict
from functools import cached_property

from followup_mockserver.schema.formats import WebhookUrl
from followup_mockserver.webhooks.lookups import Lookups
from followup_mockserver.webhooks.sockets import TimedSocket, TimedTLSSocket, connect, with_tls

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
