"""Webhook receivers, in process and on real sockets."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            url = f"http://{self.headers['host']}{self.path}"
            response = inbox.receive(httpx.Request("POST", url, headers=dict(self.headers), content=body))
            self.send_response(response.status_code)
            if response.is_redirect:
                self.send_header("Location", url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - a client that follows a redirect would add a request

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/hooks"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
