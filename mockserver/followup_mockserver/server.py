"""``MockServer``: the whole service on a socket, in threads of this process."""

import ipaddress
import secrets
import socket
import threading
from typing import Any, ClassVar, Self, Unpack

from followup import AsyncFollowUp, FollowUp
from followup_mockserver.http.guard import Guard
from followup_mockserver.http.web_server import REQUEST_TIMEOUT, WebServer
from followup_mockserver.options import MockOptions, Options
from followup_mockserver.service import Mock


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

    _request_timeout: ClassVar[float] = REQUEST_TIMEOUT
    """Seconds that a request has to arrive whole."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, **options: Unpack[MockOptions]) -> None:
        checked = Options(**options)
        self._host = host
        # Bound before anything else is made: a port that is taken is an error at once, and leaves no thread behind.
        self._socket = _bound(host, port)
        self._port = int(self._socket.getsockname()[1])
        local = _is_loopback(host)
        token = None if local else secrets.token_urlsafe(24)
        super().__init__(checked, threaded=True, guard=Guard(host, token, protects_api=local))
        self._lifecycle = threading.Lock()
        self._web_server: WebServer | None = None
        self._is_over = False

    @property
    def url(self) -> str:
        """The base URL."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def token(self) -> str | None:
        """The token that the control API demands; None on a loopback address."""
        return self._guard.token

    def start(self) -> None:
        """Listen. From now on requests are answered.

        Raises:
            RuntimeError: it has been started before. A server that was stopped cannot be started again.
        """
        with self._lifecycle:
            if self._is_over:
                raise RuntimeError("this server was stopped; make a new MockServer")
            if self._web_server is not None:
                raise RuntimeError("this server has been started already")
            self._web_server = WebServer(
                self.app,
                self._socket,
                self._gateway.reject,
                request_timeout=self._request_timeout,
            )
            self._engine.start()

    def stop(self) -> None:
        """Answer what is being worked on, and free the port; long polls, delays and advances end at once.

        Stopping twice does nothing more.
        """
        with self._lifecycle:
            if self._is_over:
                return
            self._is_over = True
            if self._web_server is None:
                self._socket.close()
            else:
                self._engine.stop()
                self._web_server.stop()

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
