"""TCP ports for the servers of tests."""

import socket


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
