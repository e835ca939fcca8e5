"""Connections to webhook receivers, on which each request has one time limit as a whole.

They use the standard library instead of httpx, because tests patch httpx and httpcore for the whole process and must
not intercept the mock's own webhooks. For the same reason they ignore the proxy variables of the environment.

An attempt has one time limit for all of its operations together, from lookup to response. The timeout of a socket
applies to each read: a peer that sends a byte now and then, or one interim response after another, never exceeds it, so
the timeout is set to the remaining time before each operation.
"""

import contextlib
import http.client
import math
import socket
import ssl
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT, addresses_of, is_address, result_within
from followup_mockserver.deliveries import AttemptResult, PreparedAttempt
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.schema.formats import WebhookUrl, parse_webhook_url
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers


class TimedSocket(socket.socket):
    """A socket whose operations raise ``TimeoutError`` after a fixed instant.

    Attributes:
        ends: that instant, of ``RealTime.monotonic``.
    """

    ends: float = math.inf

    # All reads of http.client come here, through ``makefile``.
    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Receive, within the time limit."""
        self.settimeout(time_left(self.ends))
        return super().recv_into(*args, **kwargs)

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


def connect(url: WebhookUrl, ends: float) -> TimedSocket:
    """Connect to the first address of a URL's host that accepts the connection.

    Args:
        url: the URL.
        ends: the instant of ``RealTime.monotonic`` by which there must be a connection.

    Raises:
        OSError: the error of the last address.
    """
    addresses = _addresses_of(url, ends)
    problem = OSError()
    for tried, address in enumerate(addresses):
        try:
            # Each address has its share of the time: one that hangs leaves some for the others.
            return _connected(address, url.port, time_left(ends) / (len(addresses) - tried))
        except OSError as error:
            problem = error
    raise problem


def _connected(address: str, port: int, seconds: float) -> TimedSocket:
    connection = TimedSocket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        connection.settimeout(seconds)
        connection.connect((address, port))
        # The last segment of a large body does not wait for an acknowledgement.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def _addresses_of(url: WebhookUrl, ends: float) -> Sequence[str]:
    # A thread would cost more than the rest of an attempt on this machine, which needs no lookup.
    if url.host == "localhost":
        # RFC 6761. A webhook over http never leaves this machine, whatever a resolver says (specification, section 8).
        return ("::1", "127.0.0.1")
    if is_address(url.host):
        return (url.host,)
    # The operating system can look for minutes, and cannot be interrupted: the attempt abandons the thread.
    return result_within(time_left(ends), lambda: addresses_of(url.host, url.port), "followup-mock-lookup")


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
    socket.gaierror: "the name of the host is unknown",
    ConnectionRefusedError: "the connection was refused",
    ConnectionError: "the connection was closed without a response",
    http.client.HTTPException: "the response is not HTTP",
}
"""By exception class; the first that fits."""


class _Response(http.client.HTTPResponse):
    """A response after the interim ones, of which http.client itself skips only 100."""

    def begin(self) -> None:
        """Read status and headers."""
        super().begin()
        while 101 < self.status < 200:
            self.headers = None  # type: ignore[assignment]  # otherwise nothing is read
            super().begin()


class Connection(http.client.HTTPConnection):
    """An open connection for one request, which has one time limit as a whole."""

    response_class: type[http.client.HTTPResponse] = _Response

    def __init__(self, url: WebhookUrl, connected: TimedSocket) -> None:
        super().__init__(url.host, url.port)
        self.sock: Any = connected
        # A response that closes the connection takes the socket over, and ``sock`` is None from then on.
        self._socket = connected
        self._unsent = b""

    def send(self, data: Any) -> None:
        """Keep a part of the request: http.client passes head and body, and a receiver would wake up for each."""
        self._unsent += data

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
        # A receiver may respond and close the connection before it has read the whole request: its status counts.
        # The host is set, because http.client takes each connection for http, and would add port 443. No connection is
        # kept: a receiver may close it just when the next attempt is sent, which would be lost.
        self.request(method, url.target, body, {"Host": url.authority, "Connection": "close", **headers})
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(self._unsent)
        return self.getresponse()

    def limit(self, ends: float) -> None:
        """Let the request in progress time out at an instant of ``RealTime.monotonic``."""
        self._socket.ends = ends


_BODY_TIMEOUT = 1.0
"""Seconds that the beginning of a response's body has to arrive after its head."""


class Sender:
    """Sends delivery attempts over sockets. Thread-safe.

    Args:
        timeout: seconds after which an attempt has failed, from lookup to response.
    """

    def __init__(self, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._timeout = timeout

    def open(self, url: WebhookUrl, ends: float) -> Connection:
        """Open a connection to the origin of a URL, for one request.

        Args:
            url: the URL of the receiver.
            ends: the instant of ``RealTime.monotonic`` by which the connection must be open.

        Raises:
            OSError: the connection failed.
            TimeoutError: it was not open in time.
        """
        connected = connect(url, ends)
        if url.scheme == "http":
            return Connection(url, connected)
        with contextlib.closing(connected):  # the TLS socket takes the connection over, unless the handshake fails
            connected.settimeout(time_left(ends))  # ssl applies it to the handshake as a whole
            encrypted = self._tls.wrap_socket(connected, server_hostname=url.host)
        assert isinstance(encrypted, TimedSocket)
        return Connection(url, encrypted)

    def send(self, attempt: PreparedAttempt) -> AttemptResult:
        """Send an attempt, and return its result. Errors are part of the result, and not raised."""
        began = RealTime.monotonic()
        ends = began + self._timeout
        try:
            url = parse_webhook_url(attempt.url)
            with contextlib.closing(self.open(url, ends)) as connection:
                response = connection.send_request("POST", url, attempt.headers, attempt.body, ends)
                seconds = RealTime.monotonic() - began
                kept = _read(connection, response, ends)
        except TimeoutError:
            return AttemptResult(Outcome(Kind.TIMED_OUT, seconds=self._timeout), RealTime.monotonic() - began)
        except Exception as problem:  # noqa: BLE001 - any error is a failed attempt
            return AttemptResult(Outcome(Kind.UNREACHABLE, reason_of(problem)), RealTime.monotonic() - began)
        return AttemptResult(Outcome(Kind.RESPONDED, status=response.status), seconds, response=kept)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Made by the first https attempt: it takes 10 ms or more, and reads SSL_CERT_FILE.
        context = ssl.create_default_context()
        context.sslsocket_class = TimedTLSSocket
        return context


def _read(connection: Connection, response: http.client.HTTPResponse, ends: float) -> ReceiverResponse:
    # The status has decided the outcome already, so a body that does not end only costs time, and little of it.
    connection.limit(min(ends, RealTime.monotonic() + _BODY_TIMEOUT))
    body, is_whole = _beginning_of(response)
    response.close()
    return ReceiverResponse(
        status_line=f"HTTP/{response.version / 10:.1f} {response.status} {response.reason}".rstrip(),
        headers=joined_headers(response.getheaders()),
        body=body,
        body_is_whole=is_whole,
    )


def _beginning_of(response: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """Return the beginning of a body, and whether that is the whole body; nothing if it does not arrive in time."""
    expected = response.length
    try:
        # One byte more tells whether the body is longer.
        body = response.read(LONGEST_RESPONSE_BODY + 1)
    except http.client.IncompleteRead as error:
        return error.partial, False
    except (OSError, ValueError, http.client.HTTPException):
        return b"", False
    return body, len(body) <= LONGEST_RESPONSE_BODY and expected in (None, len(body))
