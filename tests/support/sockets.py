"""Connections to a mock without an HTTP client."""

import socket

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
