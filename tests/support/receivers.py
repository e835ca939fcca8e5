"""Webhook receivers on real sockets, and in process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


@dataclass
class Inbox:
    """What arrived, and what is answered."""

    answer: Callable[[int], int] = lambda _: 204
    requests: list[httpx.Request] = field(default_factory=list)

    def receive(self, request: httpx.Request) -> httpx.Response:
        """The number of the request, from 1, decides the status of its answer."""
        self.requests.append(request)
        return httpx.Response(self.answer(len(self.requests)))


@contextmanager
def listening(inbox: Inbox) -> Iterator[str]:
    """The inbox on a real socket; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            url = f"http://{self.headers['host']}{self.path}"
            response = inbox.receive(httpx.Request("POST", url, headers=dict(self.headers), content=body))
            self.send_response(response.status_code)
            if response.is_redirect:
                self.send_header("Location", url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - a redirect that was followed would show

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
