"""A WSGI server on a socket, in threads of this process, that holds its ground against broken and hostile clients.

waitress does the work. What it leaves open is bounded here: the size of a request's head, the bytes of a body that is
too large, the time that a request may take to arrive, and the connections that only wait.
"""

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import create_server
from waitress.task import ErrorTask
from waitress.utilities import BadRequest, RequestEntityTooLarge

from followup_mockserver.gateway.parsing import body_too_large
from followup_mockserver.gateway.request import Response
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.state.clock import RealTime
from followup_mockserver.transport import DROPPED, WSGIApp

THREADS = 64
"""Requests that are answered at the same time. Many, for those that wait or move a clock keep a thread each, and the
receivers that these wait for may call the API from their handlers."""

REQUEST_TIMEOUT = 20.0
"""Seconds that a request has to arrive whole, and a new connection to begin with one."""

MOST_HEAD_BYTES = 64 * 1024
"""Of request line and headers. A query may hold a filter of 5,000 characters of any script, in percent signs."""

MOST_DROPPED_BYTES = 16 * 1024 * 1024
"""Of a body that is too large, so much is read and dropped: whoever is still sending would not see a response. One that
is larger still gets its response at once."""

MOST_CONNECTIONS = 500
"""Beyond this many, connections that only wait are closed to make room."""

_MOST_CONNECTIONS_IN_USE = 1000
_MOST_FRAMING_BYTES = 16 * 1024
_IN_MEMORY = 1024 * 1024 * 1024
"""More than any buffer holds: what is health data goes into no temporary file."""
_TIME_TO_FINISH = 0.5
"""Seconds that requests have to be answered when the server stops."""
_BETWEEN_LOOKS = 1.0
"""Seconds, at most, after which connections are looked at for one that has taken too long."""

# waitress warns of requests that wait for a thread, or are cut off at the end: words that tell a user nothing.
_log = logging.getLogger("followup_mockserver.http.web_server")
_log.setLevel(logging.ERROR)

Reject = Callable[[ServiceError], Response]
"""Makes the response to what is no request for the application."""


class WebServer:
    """Serves an application on a bound socket.

    Args:
        app: told in its environment how to drop a connection.
        reject: makes the responses to what is no request for the application.
        request_timeout: seconds that a request has to arrive whole.
    """

    def __init__(self, app: WSGIApp, bound: socket.socket, reject: Reject, *, request_timeout: float) -> None:
        self._request_timeout = request_timeout
        self._next_look = 0.0
        self._stopping = False
        server: Any = create_server(
            _droppable(app),
            sockets=[bound],
            threads=THREADS,
            connection_limit=_MOST_CONNECTIONS_IN_USE,
            max_request_header_size=MOST_HEAD_BYTES,
            max_request_body_size=MOST_DROPPED_BYTES,
            inbuf_overflow=_IN_MEMORY,
            outbuf_overflow=_IN_MEMORY,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        server.channel_class = _Channel
        server.reject = reject
        server.task_dispatcher.logger = server.task_dispatcher.queue_logger = _log
        self._waitress = server
        self._thread = threading.Thread(target=self._serve, name="followup-mock-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer what is being worked on, and free the port."""
        self._wait_for_requests()
        self._stopping = True
        self._waitress.pull_trigger()
        self._thread.join(timeout=2)
        # A request that outlives the server would write to a descriptor that is closed, or is somebody else's by then.
        self._waitress.pull_trigger = _nothing
        self._waitress.close()
        for channel in [*self._waitress.active_channels.values()]:
            channel.handle_close()

    def _wait_for_requests(self) -> None:
        dispatcher, ends = self._waitress.task_dispatcher, RealTime.monotonic() + _TIME_TO_FINISH
        dispatcher.set_thread_count(0)
        with dispatcher.lock:
            while dispatcher.threads and (left := ends - RealTime.monotonic()) > 0:
                dispatcher.thread_exit_cv.wait(left)
        # Its own waiting goes by time.time, which a test may have stopped.
        dispatcher.shutdown(cancel_pending=True, timeout=-1)

    def _serve(self) -> None:
        waitress = self._waitress
        while not self._stopping:
            wait = min(_BETWEEN_LOOKS, self._request_timeout)
            waitress.asyncore.loop(timeout=wait, use_poll=True, map=waitress._map, count=1)
            if RealTime.monotonic() >= self._next_look or len(waitress.active_channels) > MOST_CONNECTIONS:
                self._next_look = RealTime.monotonic() + wait
                self._close_what_only_waits()

    def _close_what_only_waits(self) -> None:
        now = RealTime.monotonic()
        channels: list[_Channel] = [*self._waitress.active_channels.values()]
        waiting = sorted((each for each in channels if each.only_waits), key=lambda each: each.order_of_closing)
        too_many = len(channels) - MOST_CONNECTIONS
        for position, channel in enumerate(waiting):
            if position < too_many or (channel.owes_a_request and now - channel.waits_since > self._request_timeout):
                channel.will_close = True


def _nothing() -> None:
    """Wake nobody."""


class _Parser(HTTPRequestParser):
    """Parses a request, and keeps nothing of a body that is too large."""

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.began = RealTime.monotonic()
        self._too_large = False

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        body: Any = self.body_rcv
        if body is None or self.error is not None:
            return consumed
        if not self._too_large and max(self.content_length, len(body)) > MAX_BODY_BYTES:
            self._too_large = True
            body.getbuf().close()
            body.buf = _Nothing()
            if self.expect_continue:  # the client asks before it sends
                self.expect_continue = False
                self.completed = True
        if self.chunked and len(body.control_line) + len(body.trailer) > _MOST_FRAMING_BYTES:
            self.error = BadRequest("Chunk size or trailer too long")
            self.completed = True
        elif self._too_large and self.completed:
            self.error = RequestEntityTooLarge("")
        return consumed


class _Nothing:
    """A buffer that keeps nothing."""

    def append(self, data: bytes) -> None:
        """Drop the data."""

    def close(self) -> None:
        """There is nothing to close."""

    def __len__(self) -> int:
        return 0


class _Rejection(ErrorTask):
    """Responds in the service's error format to what is no request for the application."""

    def execute(self) -> None:
        request: Any = self.request
        server: Any = self.channel.server
        response: Response = server.reject(_as_error(request.error))
        self.status = f"{response.status} {request.error.reason}"
        self.content_length = len(response.body)
        self.response_headers = [
            ("Content-Type", "application/json"),
            ("Connection", "close"),
            *response.headers.items(),
        ]
        self.close_on_finish = True
        self.write(response.body)


def _as_error(problem: Any) -> ServiceError:
    match problem.code:
        case 413:
            return body_too_large()
        case 431:
            text = f"The request line and the headers have at most {MOST_HEAD_BYTES} bytes together."
            return ServiceError(431, "invalid_request_error", "headers_too_large", text)
        case 500:
            return ServiceError(500, "api_error", "internal_error", "The mock server failed; see its log.")
    return ServiceError(problem.code, "invalid_request_error", "request_malformed", "This is no HTTP request.")


class _Channel(HTTPChannel):
    """One connection."""

    parser_class = _Parser
    error_task_class = _Rejection

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._quiet_since = RealTime.monotonic()
        self._has_been_served = False
        super().__init__(*arguments, **more)

    def service(self) -> None:
        super().service()
        self._quiet_since = RealTime.monotonic()
        self._has_been_served = True

    @property
    def only_waits(self) -> bool:
        """Whether nothing is being done for it and nothing is being sent to it."""
        return not self.requests and not self.total_outbufs_len

    @property
    def owes_a_request(self) -> bool:
        """Whether a request has begun and is not whole, or the first one has not begun."""
        return self.request is not None or not self._has_been_served

    @property
    def waits_since(self) -> float:
        """Since when the next request is waited for, or its rest."""
        request: Any = self.request
        began: float = self._quiet_since if request is None else request.began
        return began

    @property
    def order_of_closing(self) -> tuple[bool, float]:
        """What has never been of use goes first, and of that the oldest."""
        return self._has_been_served, self.waits_since


def _droppable(app: WSGIApp) -> WSGIApp:
    """The application, told how waitress calls a connection that is dropped."""

    def wsgi(environ: dict[str, Any], start_response: Any) -> Any:
        environ[DROPPED] = ClientDisconnected
        return app(environ, start_response)

    return wsgi
