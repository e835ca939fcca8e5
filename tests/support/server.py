"""An HTTP server on a real socket that follows the script of a test."""

import json
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from support.proxies import shut


@dataclass
class Received:
    """A request that the server received; ``connection`` counts connections from 1."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


Action = Callable[[socket.socket, Received], bool]
"""Responds to a request on a socket, and returns whether the connection stays open."""


def reply(status: int = 200, body: Any = None, headers: Mapping[str, str | Callable[[], str]] | None = None) -> Action:
    """Respond with JSON, or with bytes unchanged. A header may be a function, which is called for each response."""
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    lines: dict[str, str | Callable[[], str]] = {"Content-Type": "application/json", **(headers or {})}
    lines.setdefault("Content-Length", str(len(content)))

    def act(connection: socket.socket, _: Received) -> bool:
        head = "".join(f"{name}: {value() if callable(value) else value}\r\n" for name, value in lines.items())
        connection.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + content)
        return True

    return act


def hang_up(connection: socket.socket, _: Received) -> bool:
    """Close the connection without a response."""
    connection.shutdown(socket.SHUT_RDWR)
    return False


def endless(released: threading.Event, head: bytes, part: bytes = b"x") -> Action:
    """Send the beginning of a response, and then the same part again and again, until released."""

    def act(connection: socket.socket, _: Received) -> bool:
        connection.sendall(head)
        while not released.wait(0.02):
            connection.sendall(part)
        return False

    return act


def drip(released: threading.Event, *, headers: bool = False) -> Action:
    """Send one byte of a response after another, until released: of its body, or of its headers."""
    head = b"" if headers else b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    return endless(released, b"HTTP/1.1 200 OK\r\n" + head)


def drip_gzip_name(released: threading.Event) -> Action:
    """Send the endless file name of a gzip header, until released: bytes arrive, but nothing can be decoded."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 100000\r\n\r\n"
    return endless(released, head + b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03")


def interim(released: threading.Event) -> Action:
    """Send "100 Continue" over and over, until released."""
    return endless(released, b"", b"HTTP/1.1 100 Continue\r\n\r\n")


def hang(released: threading.Event) -> Action:
    """Send nothing until released."""

    def act(_: socket.socket, __: Received) -> bool:
        released.wait()
        return False

    return act


@dataclass
class ScriptedServer:
    """Responds to each request with the next action of its script, and repeats the last one."""

    script: list[Action] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self.stop_listening()
        with self._lock:
            for connection in self._open:
                shut(connection)
        for thread in self._threads:
            thread.join(60)

    def open_at_the_client(self) -> int:
        """Count the connections that the client has not closed, by a look at each socket."""
        with self._lock:
            return sum(_is_open(each) for each in self._open)

    def stop_listening(self) -> None:
        """Close the listening socket, so that further connections are refused."""
        shut(self._listener)
        self._listener.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.append(connection)
                number = self.connections
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while (received := _read(stream, number)) is not None:
                    with self._lock:
                        self.received.append(received)
                        action = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                    if not action(connection, received):
                        return
        except OSError:
            return
        finally:
            with self._lock:
                self._open.remove(connection)


def _is_open(connection: socket.socket) -> bool:
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            return not selector.select(0) or connection.recv(1, socket.MSG_PEEK) != b""
    except (OSError, ValueError):  # it is closed here
        return False


def _read(stream: Any, number: int) -> Received | None:
    line = stream.readline().decode()
    if not line.strip():
        return None
    method, target, _ = line.split(" ")
    headers: dict[str, str] = {}
    while (line := stream.readline().decode().strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    return Received(method, target, headers, body, number)
