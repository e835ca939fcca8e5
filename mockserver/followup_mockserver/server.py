"""``MockServer``: the whole service on a socket, in threads of this process."""

import ipaddress
import json
import secrets
import socket
import threading
from typing import Any, Self, Unpack

from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.server import create_server
from waitress.task import ErrorTask

from followup import AsyncFollowUp, FollowUp
from followup_mockserver.errors import ServiceError
from followup_mockserver.options import MockOptions, Options
from followup_mockserver.service import Mock
from followup_mockserver.transport import DROPPED
from followup_mockserver.wire.guard import Guard

THREADS = 64
"""Requests that are answered at the same time. Many, for those that wait or move a clock keep a thread each, and the
receivers that these wait for may call the API from their handlers."""

_TIME_TO_FINISH = 0.5
"""Seconds that requests have to be answered when the server stops."""

MOST_CONNECTIONS = 1000


class _Refusal(ErrorTask):
    """What is no HTTP request is refused in the service's error format too."""

    def execute(self) -> None:
        request: Any = self.request
        problem = request.error
        error = ServiceError(problem.code, "invalid_request_error", "request_malformed", "This is no HTTP request.")
        body = json.dumps(error.as_json()).encode()
        self.status = f"{problem.code} {problem.reason}"
        self.content_length = len(body)
        self.response_headers = [("Content-Type", "application/json"), ("Connection", "close")]
        self.close_on_finish = True
        self.write(body)


class _Channel(HTTPChannel):
    error_task_class = _Refusal


class MockServer(Mock):
    """The whole service on a real socket; a context manager.

    First webhook attempts are sent at once, in the background, as the service does.

    Args:
        host: address to listen on.
        port: 0 picks a free one.
        options: those of ``serve``, as ``MockOptions`` tells.

    Raises:
        ValueError: an option that cannot be used; the text names it.
        OSError: the address cannot be listened on.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, **options: Unpack[MockOptions]) -> None:
        checked = Options(**options)
        self._host = host
        # Bound before anything else is made: a port that is taken is an error at once, and leaves no thread behind.
        self._socket = _bound(host, port)
        self._port = int(self._socket.getsockname()[1])
        local = _is_loopback(host)
        token = None if local else secrets.token_urlsafe(24)
        super().__init__(checked, threaded=True, guard=Guard(host, token, protects_api=local))
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    @property
    def url(self) -> str:
        """The base URL."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def start(self) -> None:
        """Listen. From now on requests are answered."""
        self._server = create_server(
            _droppable(self.app),
            sockets=[self._socket],
            threads=THREADS,
            connection_limit=MOST_CONNECTIONS,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        self._server.channel_class = _Channel
        self._engine.start()
        self._thread = threading.Thread(target=self._serve, name="followup-mock-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer what is being worked on, and free the port."""
        if self._server is None:
            self._socket.close()
            return
        server, self._server = self._server, None
        self._engine.stop()
        server.task_dispatcher.shutdown(cancel_pending=True, timeout=_TIME_TO_FINISH)
        self._stopping = True
        server.pull_trigger()
        if self._thread is not None:
            self._thread.join(timeout=2)
        server.close()
        for channel in [*server.active_channels.values()]:
            channel.handle_close()

    def client(self, **options: Any) -> FollowUp:
        """A client of this server, for the default organization; ``options`` are those of ``FollowUp``."""
        return FollowUp(**{"api_key": self.api_key, "base_url": self.url, **options})

    def async_client(self, **options: Any) -> AsyncFollowUp:
        """An asynchronous client of this server; ``options`` are those of ``AsyncFollowUp``."""
        return AsyncFollowUp(**{"api_key": self.api_key, "base_url": self.url, **options})

    def __enter__(self) -> Self:
        self.start()
        return self

    def close(self) -> None:
        """The same as ``stop``."""
        self.stop()

    def _serve(self) -> None:
        server = self._server
        while not self._stopping:
            server.asyncore.loop(timeout=1, use_poll=True, map=server._map, count=1)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _droppable(app: Any) -> Any:
    """The application, told how waitress calls a connection that is dropped."""

    def wsgi(environ: dict[str, Any], start_response: Any) -> Any:
        environ[DROPPED] = ClientDisconnected
        return app(environ, start_response)

    return wsgi
