"""A load generator: sends requests over persistent connections with as little work in the client as possible."""

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit


def request_bytes(method: str, url: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """Return the bytes of an HTTP/1.1 request."""
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = {"Host": parts.netloc, **headers, **({"Content-Length": str(len(body))} if body else {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def load(url: str, request: bytes, *, connections: int, requests: int) -> Callable[[], None]:
    """Return a function that sends the requests and reads their responses, which must have status 200."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    address = (parts.hostname, parts.port)

    def use_one_connection(_: int) -> None:
        connection = _connected(address)
        for _ in range(requests // connections):
            connection.sendall(request)
            if not _read_response(connection):
                connection.close()
                connection = _connected(address)
        connection.close()

    def run() -> None:
        if connections == 1:
            use_one_connection(0)
            return
        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(use_one_connection, range(connections)))

    return run


def wait_for_response(url: str, seconds: float = 30) -> None:
    """Return as soon as a server sends any response for this URL.

    Raises:
        OSError: there was none within so many seconds.
    """
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    ends = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((parts.hostname, parts.port), timeout=1) as connection:
                connection.sendall(request_bytes("GET", url, {"Connection": "close"}))
                if connection.recv(1):
                    return
        except OSError:
            if time.monotonic() > ends:
                raise
        time.sleep(0.002)


def _connected(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address, timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _read_response(connection: socket.socket) -> bool:
    """Read a whole response; returns whether the connection stays open."""
    response = connection.recv(65_536)
    while b"\r\n\r\n" not in response:
        response += connection.recv(65_536)
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.split(b" ", 2)[1] == b"200", head
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65_536)
        return True
    length = int(lower.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return b"connection: close" not in lower
