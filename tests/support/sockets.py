"""Connections to a mock without an HTTP client, and a port to which none can be made."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from followup_mockserver import MockServer


def connect(server: MockServer) -> socket.socket:
    """Connect to a mock."""
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def rest(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


@contextmanager
def unresponsive(host: str, port: int = 0) -> Iterator[int]:
    """Listen without accepting any connection, fill the queue of those that wait, and yield the port."""
    with socket.create_server((host, port), backlog=0) as listener, ExitStack() as queue:
        address = listener.getsockname()
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield address[1]
