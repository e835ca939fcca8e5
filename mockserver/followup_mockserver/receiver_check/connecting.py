"""Sends requests to the receiver and to the probe. Each has one time limit as a whole; redirects are not followed."""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import attrs

from followup_mockserver.receiver_check.requests import WebhookRequest
from followup_mockserver.schema.webhook_urls import parse_webhook_url, without_query
from followup_mockserver.state.clock import RealTime
from followup_mockserver.webhooks.connections import Connection, Connections
from followup_mockserver.webhooks.lookups import NotALoopbackAddressError
from followup_mockserver.webhooks.outcomes import timeout_error

_LONGEST_GATHERING = 0.05
"""Seconds to wait for each of several connections. They are opened one after the other, because few may wait to be
accepted; and not waited for longer, because a receiver that serves one connection at a time accepts the next one only
after the request of the first."""


class Unreachable(Exception):
    """The receiver or the probe cannot be reached; the text says why.

    Attributes:
        timed_out: whether no connection was opened in time.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@attrs.frozen(kw_only=True)
class Response:
    """The response to a request.

    Attributes:
        status: the HTTP status; None if there was no response.
        seconds: the time until the response, or until it was given up.
        problem: why there was no response; empty if there was one.
        timed_out: whether there was no response in time.
        was_sent_again: whether the request was sent a second time, and this is the response to that.
    """

    status: int | None
    seconds: float
    problem: str = ""
    timed_out: bool = False
    was_sent_again: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether the connection failed before there was a response, and before the time limit."""
        return self.status is None and not self.timed_out

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status is not None and 200 <= self.status < 300


class Origin:
    """The server of a URL, to which each request is sent over a connection of its own. Thread-safe.

    Args:
        url: an https URL, or an http URL of a loopback address.
        name: what the URL is, for messages.
        timeout: seconds that it has for a response.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str, name: str, timeout: float) -> None:
        self._url = parse_webhook_url(url)
        self._shown = f"the {name} {without_query(url)}"
        self.timeout = timeout
        self._connections = Connections()

    def post(self, request: WebhookRequest) -> Response:
        """Send a request, and return the response.

        Raises:
            Unreachable: no connection could be opened.
        """
        ends = RealTime.monotonic() + self.timeout
        return self._posted(self._connected(ends), request, ends)

    def post_at_once(self, requests: Sequence[WebhookRequest]) -> list[Response]:
        """Send requests at the same time, each over a connection that was opened before, and return the responses.

        A request whose connection was refused or closed is sent once more, as the service would: a server may not
        accept so many connections at the same time.

        Raises:
            Unreachable: no connection could be opened.
        """
        everything_ready = threading.Event()

        def send(request: WebhookRequest, ready: threading.Event) -> Response:
            try:
                connection = self._connected(RealTime.monotonic() + self.timeout)
            except Unreachable as error:
                problem = timeout_error(self.timeout) if error.timed_out else "No connection."
                return Response(status=None, seconds=0.0, problem=problem, timed_out=error.timed_out)
            finally:
                ready.set()
            everything_ready.wait()
            return self._posted(connection, request, RealTime.monotonic() + self.timeout)

        with ThreadPoolExecutor(len(requests)) as threads:
            sent = []
            try:
                for request in requests:
                    ready = threading.Event()
                    sent.append(threads.submit(send, request, ready))
                    ready.wait(_LONGEST_GATHERING)
            finally:
                everything_ready.set()
            responses = [each.result() for each in sent]
        return self._sent_again(requests, responses)

    def _sent_again(self, requests: Sequence[WebhookRequest], responses: list[Response]) -> list[Response]:
        """Return the responses, with those of the second attempts where there was none, as many as time allows."""
        ends = RealTime.monotonic() + self.timeout
        return [
            attrs.evolve(self.post(request), was_sent_again=True)
            if response.is_missing and RealTime.monotonic() < ends
            else response
            for request, response in zip(requests, responses, strict=True)
        ]

    def get(self, headers: dict[str, str], max_bytes: int) -> tuple[int, bytes]:
        """Return status and body of the response to a GET request; of a longer body, one byte more than ``max_bytes``.

        Raises:
            Unreachable: there was no response in time.
        """
        ends = RealTime.monotonic() + self.timeout
        connection = self._connected(ends)
        try:
            response = connection.get(self._url, headers, ends)
            return response.status, response.read(max_bytes + 1)
        except TimeoutError:
            raise Unreachable(f"{self._shown} did not respond within {self.timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._shown}: {_lower(_without_response(error))}") from None
        finally:
            self._connections.drop(connection)

    def _connected(self, ends: float) -> Connection:
        try:
            return self._connections.take(self._url, ends)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection
            self._cannot_connect(error)

    def _cannot_connect(self, error: Exception) -> NoReturn:
        for kind, reason in _REASONS.items():
            if isinstance(error, kind):
                timed_out = isinstance(error, TimeoutError)
                raise Unreachable(f"cannot connect to {self._shown}: {reason(error)}", timed_out=timed_out) from None
        raise Unreachable(f"cannot connect to {self._shown}: {type(error).__name__}") from None

    def _posted(self, connection: Connection, request: WebhookRequest, ends: float) -> Response:
        began = RealTime.monotonic()
        status, problem, timed_out = None, "", False
        try:
            status = connection.post(self._url, dict(request.headers), request.body, ends).status
        except TimeoutError:
            problem, timed_out = timeout_error(self.timeout), True
        except (OSError, http.client.HTTPException) as error:
            problem = _without_response(error)
        finally:
            self._connections.drop(connection)
        return Response(status=status, seconds=RealTime.monotonic() - began, problem=problem, timed_out=timed_out)


def _without_response(error: Exception) -> str:
    if isinstance(error, http.client.HTTPException) and not isinstance(error, http.client.RemoteDisconnected):
        return "The response is not HTTP."
    return "The connection was closed without a response."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")


def _not_trusted(error: Exception) -> str:
    return f"its TLS certificate is not trusted ({getattr(error, 'verify_message', '')})"


_REASONS: dict[type[Exception], Callable[[Exception], str]] = {
    TimeoutError: lambda _: "no connection in time",
    ssl.SSLCertVerificationError: _not_trusted,
    ssl.SSLError: lambda _: "the TLS handshake failed",
    ConnectionRefusedError: lambda _: "the connection was refused",
    NotALoopbackAddressError: lambda _: "http is for loopback addresses, and this host is not one",
    socket.gaierror: lambda _: "the name of the host is unknown",
    OSError: lambda error: str(getattr(error, "strerror", None) or "the connection failed").lower(),
}
"""Why a connection could not be opened, by exception class; the first that fits."""
