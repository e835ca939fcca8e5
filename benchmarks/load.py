"""Requests over kept connections, as fast as they are answered, with as little work on this side as can be."""

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit


def request_bytes(method: str, url: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """A request as it stands on the wire."""
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = {"Host": parts.netloc, **headers, **({"Content-Length": str(len(body))} if body else {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def hammer(url: str, request: bytes, *, connections: int, requests: int) -> Callable[[], None]:
    """A function that sends so many requests over so many connections and reads the answers, which must be 200."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    address = (parts.hostname, parts.port)

    def one(_: int) -> None:
        connection = _connected(address)
        for _ in range(requests // connections):
            connection.sendall(request)
            if not _read_answer(connection):
                connection.close()
                connection = _connected(address)
        connection.close()

    def run() -> None:
        if connections == 1:
            one(0)
            return
        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(one, range(connections)))

    return run


def until_answered(url: str, seconds: float = 30) -> None:
    """Return as soon as a server answers anything at this URL."""
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


def _read_answer(connection: socket.socket) -> bool:
    """Read an answer to its end; whether the connection stays open."""
    answer = connection.recv(65_536)
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
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
