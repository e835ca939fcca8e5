"""Webhook receivers, in process and on real sockets."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any

import httpx


@dataclass
class Inbox:
    """A receiver that keeps its requests.

    Attributes:
        status_for: returns the status of the response to the nth request, counted from 1.
        requests: the requests so far, oldest first.
    """

    status_for: Callable[[int], int] = lambda _: 204
    requests: list[httpx.Request] = field(default_factory=list)

    def receive(self, request: httpx.Request) -> httpx.Response:
        """Keep a request, and respond with its status."""
        self.requests.append(request)
        return httpx.Response(self.status_for(len(self.requests)))


@contextmanager
def listening(inbox: Inbox, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve the inbox on a real socket, and yield its URL."""

    def respond(request: BaseHTTPRequestHandler, body: bytes) -> Reply:
        url = f"http://{request.headers['host']}{request.path}"
        response = inbox.receive(httpx.Request("POST", url, headers=dict(request.headers), content=body))
        return response.status_code, url if response.is_redirect else "", b""

    with served(respond, tls=tls) as url:
        yield f"{url}/hooks"


Reply = tuple[int, str, bytes]
"""The status, the location if it is not empty, and the body of a response."""


@contextmanager
def served(
    respond: Callable[[BaseHTTPRequestHandler, bytes], Reply],
    *,
    tls: ssl.SSLContext | None = None,
    kind: type[HTTPServer] = ThreadingHTTPServer,
    queue: int = 128,
) -> Iterator[str]:
    """Respond to GET and POST requests on a real socket, at which so many connections may wait; yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, location, content = respond(self, self.rfile.read(int(self.headers["content-length"] or 0)))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - a client that follows a redirect would add a request

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    class Server(kind):  # type: ignore[misc, valid-type]
        daemon_threads = True
        request_queue_size = queue

        def handle_error(self, *_: Any) -> None:
            """Ignore connections that the client has closed."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
