"""A WSGI server on a socket, in threads of this process, that withstands broken and hostile clients.

waitress does the work. This module adds the limits that waitress lacks: the size of a request's head, the memory that a
body that is too large takes, the time in which a request must arrive, and the number of idle connections. It uses
internals of waitress, and pyproject.toml bounds the version.
"""

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask
from waitress.utilities import BadRequest, RequestEntityTooLarge
from werkzeug.datastructures import Headers

from followup_mockserver.gateway.request import Response, body_too_large
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.shapes import MAX_HEAD_BYTES
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.faults import CLIENT_HAS_LEFT, DROPPED, WSGIApp

THREADS = 64
"""The number of requests that are processed at the same time. It is large because a call that waits or advances a clock
occupies a thread, and the receivers that it waits for may call the API from their handlers."""

REQUEST_TIMEOUT = 20.0
"""Seconds in which a request must arrive completely, and in which a new connection must begin its first request."""

MAX_DISCARDED_BYTES = 16 * 1024 * 1024
"""Up to this many bytes of a body that is too large are read and discarded, because a client that is still sending does
not read a response. A larger body gets its response at once."""

MAX_CONNECTIONS = 500
"""Above this number of connections, the server closes idle ones."""

_MAX_BUSY_CONNECTIONS = 1000
_MAX_CHUNK_FRAMING_BYTES = 16 * 1024
_NEVER_IN_A_FILE = 1024 * 1024 * 1024
"""More bytes than any buffer holds. waitress must not write bodies, which hold health data, to temporary files."""
_SHUTDOWN_TIMEOUT = 0.5
"""Seconds that requests in progress have to finish when the server stops."""
_CHECK_INTERVAL = 1.0
"""Maximum number of seconds between two checks for connections that have timed out."""

# The warnings of waitress, about requests that wait for a thread or are cut off by a shutdown, do not help a user.
_log = logging.getLogger("followup_mockserver.http.web_server")
_log.setLevel(logging.ERROR)

BodyLimit = Callable[[str, str, Callable[[], Headers]], int]
"""Returns the largest body of a request with this method and path, and headers that its last argument returns."""

ErrorResponder = Callable[[ServiceError], Response]
"""Builds the response to a request that does not reach the application."""


class WebServer:
    """Serves an application on a bound socket.

    Args:
        app: the application. Its environment has what the keys ``DROPPED`` and ``CLIENT_HAS_LEFT`` describe.
        bound: the socket.
        error_response: builds the response to a request that does not reach the application.
        request_timeout: seconds in which a request must arrive completely.
        body_limit: returns the largest body of a request with this method, path and headers.
    """

    def __init__(
        self,
        app: WSGIApp,
        bound: socket.socket,
        error_response: ErrorResponder,
        *,
        request_timeout: float,
        body_limit: BodyLimit,
    ) -> None:
        self._request_timeout = request_timeout
        self._next_check = 0.0
        self._stopping = False
        server: Any = create_server(
            app,
            sockets=[bound],
            _dispatcher=_Threads(),
            connection_limit=_MAX_BUSY_CONNECTIONS,
            max_request_header_size=MAX_HEAD_BYTES,
            max_request_body_size=_NEVER_IN_A_FILE,
            inbuf_overflow=_NEVER_IN_A_FILE,
            outbuf_overflow=_NEVER_IN_A_FILE,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        server.channel_class = _Channel
        server.adj.body_limit = body_limit  # all that a parser has of the server is ``adj``
        server.error_response = error_response
        self._waitress = server
        self._thread = threading.Thread(target=self._serve, name="followup-mock-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the requests that are being processed, close all connections and free the port."""
        self._finish_requests()
        self._stopping = True
        self._waitress.pull_trigger()
        self._thread.join(timeout=2)
        # A request that outlives the server would write to the trigger's descriptor, which is closed by then or
        # belongs to another file.
        self._waitress.pull_trigger = lambda: None
        self._waitress.close()
        for channel in [*self._waitress.active_channels.values()]:
            channel.handle_close()

    def _finish_requests(self) -> None:
        dispatcher, deadline = self._waitress.task_dispatcher, RealTime.monotonic() + _SHUTDOWN_TIMEOUT
        dispatcher.limit = 0
        dispatcher.set_thread_count(0)
        with dispatcher.lock:
            while dispatcher.threads and (remaining := deadline - RealTime.monotonic()) > 0:
                dispatcher.thread_exit_cv.wait(remaining)
        # It must not wait again: it would measure the time with time.time, which a test may have frozen.
        dispatcher.shutdown(cancel_pending=True, timeout=-1)

    def _serve(self) -> None:
        waitress = self._waitress
        while not self._stopping:
            interval = min(_CHECK_INTERVAL, self._request_timeout)
            waitress.asyncore.loop(timeout=interval, use_poll=True, map=waitress._map, count=1)
            if RealTime.monotonic() >= self._next_check or len(waitress.active_channels) > MAX_CONNECTIONS:
                self._next_check = RealTime.monotonic() + interval
                self._close_idle_connections()

    def _close_idle_connections(self) -> None:
        now = RealTime.monotonic()
        channels: list[_Channel] = [*self._waitress.active_channels.values()]
        idle = sorted((each for each in channels if each.is_idle), key=lambda each: each.closing_order)
        excess = len(channels) - MAX_CONNECTIONS
        for position, channel in enumerate(idle):
            has_timed_out = channel.expects_request and now - channel.idle_since > self._request_timeout
            if position < excess or has_timed_out:
                channel.will_close = True


class _Threads(ThreadedTaskDispatcher):
    """The threads that process requests. Each is started when all others are busy: the start of 64 takes 10 ms."""

    logger = queue_logger = _log
    limit = THREADS

    def __init__(self) -> None:
        super().__init__()
        self._adding = threading.Lock()

    def add_task(self, task: Any) -> None:
        with self._adding:
            if len(self.threads) - self.active_count <= len(self.queue) and len(self.threads) < self.limit:
                self.set_thread_count(len(self.threads) + 1)
            super().add_task(task)


class _Parser(HTTPRequestParser):
    """Parses a request, and discards a body that is too large."""

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.began = RealTime.monotonic()
        self._too_large = False
        self._limit = 0

    def parse_header(self, header_plus: bytes) -> None:
        try:
            super().parse_header(header_plus)
        except ValueError:  # a Content-Length of thousands of digits, or an address such as http://[
            raise ParsingError("Invalid number or address") from None
        parsed: Any = self
        self._limit = parsed.adj.body_limit(parsed.command, parsed.path, self._header_fields)

    def _header_fields(self) -> Headers:
        return Headers([(name.replace("_", "-"), value) for name, value in self.headers.items()])

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        body: Any = self.body_rcv
        if body is None or self.error is not None:
            return consumed
        if not self._too_large and max(self.content_length, len(body)) > self._limit:
            self._too_large = True
            body.getbuf().close()
            body.buf = _DiscardingBuffer()
            if self.content_length > MAX_DISCARDED_BYTES:
                self.completed = True
            if self.expect_continue:  # the client waits for permission to send the body
                self.expect_continue = False
                self.completed = True
        if self.chunked and len(body.control_line) + len(body.trailer) > _MAX_CHUNK_FRAMING_BYTES:
            self.error = BadRequest("Chunk size or trailer too long")
            self.completed = True
        elif self._too_large and (self.completed or self.body_bytes_received > MAX_DISCARDED_BYTES):
            self.completed = True
            self.error = RequestEntityTooLarge(str(self._limit))
        return consumed


class _DiscardingBuffer:
    """A buffer that stores nothing."""

    def append(self, data: bytes) -> None:
        """Discard the data."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def __len__(self) -> int:
        return 0


class _ErrorTask(ErrorTask):
    """Responds in the service's error format to a request that does not reach the application."""

    def execute(self) -> None:
        request: Any = self.request
        server: Any = self.channel.server
        response: Response = server.error_response(_service_error(request.error))
        self.status = f"{response.status} {request.error.reason}"
        self.content_length = len(response.body)
        self.response_headers = [
            ("Content-Type", "application/json"),
            ("Connection", "close"),
            *response.headers.items(),
        ]
        self.close_on_finish = True
        self.write(response.body)


def _service_error(error: Any) -> ServiceError:
    """Convert an error of waitress to one of the service."""
    match error.code:
        case 413:
            return body_too_large(int(error.body))
        case 431:
            text = f"The request line and the headers have at most {MAX_HEAD_BYTES} bytes together."
            return ServiceError(431, "invalid_request_error", "headers_too_large", text)
        case 500:
            return ServiceError(500, "api_error", "internal_error", "The mock server failed; see its log.")
    return ServiceError(error.code, "invalid_request_error", "request_malformed", "This is not a valid HTTP request.")


class _Task(WSGITask):
    """Responds to a request by calling the application."""

    def get_environment(self) -> Any:
        environ = super().get_environment()
        environ[DROPPED] = ClientDisconnected
        environ[CLIENT_HAS_LEFT] = self._client_has_left
        return environ

    def _client_has_left(self) -> bool:
        connection = self.channel.socket
        try:
            return connection is None or connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:  # the socket does not block: the connection is open, and nothing has arrived
            return False
        except OSError:
            return True


class _Channel(HTTPChannel):
    """One connection."""

    parser_class = _Parser
    task_class = _Task
    error_task_class = _ErrorTask

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._last_activity = RealTime.monotonic()
        self._has_served_a_request = False
        super().__init__(*arguments, **more)

    def service(self) -> None:
        super().service()
        self._last_activity = RealTime.monotonic()
        self._has_served_a_request = True

    @property
    def is_idle(self) -> bool:
        """Whether no request of the connection is being processed and no response is being sent."""
        return not self.requests and not self.total_outbufs_len

    @property
    def expects_request(self) -> bool:
        """Whether a request has arrived in part, or the first request has not begun."""
        return self.request is not None or not self._has_served_a_request

    @property
    def idle_since(self) -> float:
        """When the request that is arriving began, or else when the connection became idle."""
        request: Any = self.request
        began: float = self._last_activity if request is None else request.began
        return began

    @property
    def closing_order(self) -> tuple[bool, float]:
        """The order in which idle connections are closed: those that never served a request first, then the oldest."""
        return self._has_served_a_request, self.idle_since
