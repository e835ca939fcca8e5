"""Certificates and TLS servers that are made when a test needs them."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import trustme


def context_for(authority: trustme.CA, *hosts: str, **options: Any) -> ssl.SSLContext:
    """Return the context of a server whose certificate is for these hosts.

    Args:
        authority: issues the certificate.
        hosts: names and addresses.
        options: those of ``trustme.CA.issue_cert``, such as ``not_after``.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*hosts, **options).configure_cert(context)
    return context


@contextmanager
def handshakes(context: ssl.SSLContext) -> Iterator[int]:
    """Run a server that completes TLS handshakes and then closes the connection; yield its port."""

    def shake_hands(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True):
            pass

    with each_connection(shake_hands) as port:
        yield port


@contextmanager
def each_connection(act: Callable[[socket.socket], object]) -> Iterator[int]:
    """Run a server that acts on each connection and then closes it; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client, suppress(OSError):  # the client rejected the certificate, or has gone
                    act(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)
