"""A small webhook receiver, which verifies and deduplicates events."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from followup import WebhookEvent, WebhookSignatureError, construct_event


class Receiver:
    """Receives webhooks on a free port of this machine. A context manager.

    Attributes:
        secret: the signing secret of the endpoint.
        events: the verified events by id.
        rejected: number of requests with an invalid signature.
    """

    def __init__(self) -> None:
        self.secret = ""
        self.events: dict[str, WebhookEvent] = {}
        self.rejected = 0
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The URL to register as an endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}/webhooks"

    def wait_for(self, condition: Callable[[list[WebhookEvent]], bool], seconds: float) -> bool:
        """Wait until the received events satisfy a condition.

        Args:
            condition: returns whether the events that it takes satisfy it.
            seconds: the maximum time to wait.

        Returns:
            Whether the condition held in time.
        """
        with self._changed:
            return self._changed.wait_for(lambda: condition([*self.events.values()]), seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _receive(self, body: bytes, headers: dict[str, str]) -> int:
        try:
            event = construct_event(body, headers, self.secret)
        except WebhookSignatureError:
            with self._changed:
                self.rejected += 1
            return 400
        with self._changed:
            self.events.setdefault(event.id, event)
            self._changed.notify_all()
        return 204

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receive = self._receive

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receive(body, dict(self.headers)))
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: the demo reports the webhooks itself."""

        return Handler
