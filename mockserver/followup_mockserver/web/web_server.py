"""A WSGI server on a socket, in threads of this process.

waitress does the work. What it lacks is added here: errors in the format of the service, an immediate response where it
would wait for more, threads that start when they are needed, and a stop that frees the port. This takes names that
waitress does not document, so pyproject.toml bounds its version. Nothing defends the server against hostile clients.
"""

import logging
import re
import socket
import threading
from collections.abc import Callable
from typing import Any

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask
from waitress.utilities import BadRequest

from followup_mockserver.gateway.request import Response
from followup_mockserver.world.schema.shapes import MAX_HEAD_BYTES
from followup_mockserver.world.state.faults import CLIENT_HAS_LEFT, WSGIApp

THREADS = 256
"""The number of requests that are processed at the same time. It is large because a call that waits or advances a clock
occupies a thread, and the receivers that it waits for may call the API from their handlers."""

_IN_MEMORY = 256 * 1024 * 1024
"""Bytes of a body that are kept in memory: waitress writes more to a temporary file, and bodies hold health data.

A request with a larger body is rejected before it is read. Up to this size, the application rejects what is too large
for it, because a client that is still sending does not read a response.
"""

# The warnings of waitress, about requests that wait for a thread or are cut off by a stop, do not help a user.
_log = logging.getLogger("followup_mockserver.web.web_server")
_log.setLevel(logging.ERROR)


class WebServer:
    """Serves an application on a bound socket, until it is stopped.

    Args:
        app: the application. If it raises an ``OSError``, the connection is closed without the rest of the response.
        bound: the socket.
        error_response: builds the response with a status, to a request that does not reach the application.
    """

    def __init__(self, app: WSGIApp, bound: socket.socket, error_response: Callable[[int], Response]) -> None:
        self._threads: Any = _Threads()
        server: Any = create_server(
            app,
            sockets=[bound],
            _dispatcher=self._threads,
            # waitress takes 100; each dashboard, long poll and client that keeps alive holds one.
            connection_limit=1000,
            max_request_header_size=MAX_HEAD_BYTES,
            max_request_body_size=_IN_MEMORY,
            inbuf_overflow=_IN_MEMORY,
            outbuf_overflow=_IN_MEMORY,
            log_socket_errors=False,
        )
        server.channel_class, server.error_response = _Channel, error_response
        self._waitress = server
        self._thread = threading.Thread(target=server.run, name="followup-mock-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the requests that are being processed, close all connections and free the port."""
        self._threads.add_task = self._threads.queue.append  # a further request starts no thread
        # In a thread, because it measures its timeout with time.time, which a test may have frozen.
        finishing = threading.Thread(target=self._threads.shutdown, daemon=True)
        finishing.start()
        finishing.join(0.5)  # seconds that requests in progress have to finish
        # The thread that polls the socket closes it. If another one did, the port would not be free until it wakes up.
        # It closes the trigger too, and the lock makes it wait until the trigger has been pulled.
        with self._waitress.trigger.lock:
            self._waitress.trigger.thunks.append(self._close)
            self._waitress.trigger.pull_trigger()
        self._thread.join(timeout=2)

    def _close(self) -> None:
        # A request that outlives the server would write to the trigger's descriptor, which is closed by then or
        # belongs to another file.
        self._waitress.pull_trigger = lambda: None
        for channel in [*self._waitress.active_channels.values()]:
            channel.handle_close()
        self._waitress.close()


class _Threads(ThreadedTaskDispatcher):
    """The threads that process requests. Each is started when all others are busy: the start of all takes 40 ms."""

    logger = queue_logger = _log

    def add_task(self, task: Any) -> None:
        if len(self.threads) - self.active_count <= len(self.queue) and len(self.threads) < THREADS:
            self.set_thread_count(len(self.threads) + 1)
        super().add_task(task)


_NO_REQUEST = re.compile(rb"(?:\r\n)*(?:[^\r\n!-~]|[^\n]*[^\r\n]\n)")
"""The beginning of bytes that cannot become a request: TLS, or a first line that ends without CR."""


class _Parser(HTTPRequestParser):
    def received(self, data: bytes) -> int:
        if self.body_rcv is None and _NO_REQUEST.match(self.header_plus + data):
            self.error, self.completed = BadRequest("This is not HTTP."), True
            return len(data)
        consumed: int = super().received(data)
        # After a response 100, waitress waits for more, even if the request is complete.
        self.expect_continue = self.expect_continue and not self.completed
        return consumed


class _ErrorTask(ErrorTask):
    def execute(self: Any) -> None:
        response: Response = self.channel.server.error_response(self.request.error.code)
        self.status = f"{response.status} {self.request.error.reason}"
        self.response_headers = [("Content-Type", "application/json"), *response.headers.items()]
        self.set_close_on_finish()
        self.content_length = len(response.body)
        self.write(response.body)


class _Task(WSGITask):
    def get_environment(self) -> Any:
        return super().get_environment() | {CLIENT_HAS_LEFT: self._client_has_left}

    def _client_has_left(self: Any) -> bool:
        try:
            return bool(self.channel.socket.recv(1, socket.MSG_PEEK) == b"")
        except OSError as error:  # the socket does not block: where nothing has arrived, the connection is open
            return not isinstance(error, BlockingIOError)


class _Channel(HTTPChannel):
    parser_class = _Parser
    task_class = _Task
    error_task_class = _ErrorTask
