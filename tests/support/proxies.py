"""Local proxies and TLS servers, for tests of connections that go through them."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from sqlalchemy import make_url

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A self-signed certificate for localhost and 127.0.0.1, with its private key, which is not a secret."""

Serve = Callable[[socket.socket], object]


@contextmanager
def each_connection(serve: Serve) -> Iterator[int]:
    """Run a server that serves each connection in a thread and then closes it; yield its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    clients: list[socket.socket] = []

    def handle(client: socket.socket) -> None:
        with client, suppress(OSError, ValueError, IndexError):  # the client has gone, or rejected the certificate
            serve(client)

    def accept() -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                clients.append(listener.accept()[0])
                threading.Thread(target=handle, args=(clients[-1],), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for each in (listener, *clients):
            shut(each)
        listener.close()
        accepting.join(60)


def shut(connection: socket.socket) -> None:
    """End both directions of a connection, if it is still open."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _relay(client: socket.socket, server: socket.socket, forwards: threading.Event | None = None) -> None:
    with server:
        back = threading.Thread(target=_copy, args=(server, client, forwards), daemon=True)
        back.start()
        _copy(client, server, forwards)
        back.join(60)


def _copy(source: socket.socket, target: socket.socket, forwards: threading.Event | None) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if forwards:
                forwards.wait()
            target.sendall(data)
    shut(target)
    shut(source)


# --- proxies of HTTP -----------------------------------------------------------------------------------------------


@dataclass
class Tunnel:
    """A running proxy."""

    url: str = ""
    targets: list[tuple[str, int]] = field(default_factory=list)
    """Host and port of each connection that a client requested."""


@contextmanager
def _tunnels(scheme: str, greet: Callable[[socket.socket], tuple[str, int]]) -> Iterator[Tunnel]:
    tunnel = Tunnel()

    def serve(client: socket.socket) -> None:
        tunnel.targets.append(greet(client))
        _relay(client, socket.create_connection(("127.0.0.1", tunnel.targets[-1][1])))

    with each_connection(serve) as port:
        tunnel.url = f"{scheme}://127.0.0.1:{port}"
        yield tunnel


def socks_proxy() -> AbstractContextManager[Tunnel]:
    """Run a SOCKS5 proxy without authentication (RFC 1928)."""

    def greet(client: socket.socket) -> tuple[str, int]:
        _, methods = client.recv(2)
        client.recv(methods)
        client.sendall(b"\x05\x00")
        *_, kind = client.recv(4)
        host = socket.inet_ntoa(client.recv(4)) if kind == 1 else client.recv(client.recv(1)[0]).decode()
        port = int.from_bytes(client.recv(2), "big")
        client.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return host, port

    return _tunnels("socks5", greet)


def connect_proxy() -> AbstractContextManager[Tunnel]:
    """Run an HTTP proxy that opens tunnels (CONNECT, RFC 9110, section 9.3.6)."""

    def greet(client: socket.socket) -> tuple[str, int]:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        host, port = head.split()[1].decode().rsplit(":", 1)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return host, int(port)

    return _tunnels("http", greet)


# --- TLS -----------------------------------------------------------------------------------------------------------


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
def tls_relay(url: str, own_context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a TLS server for localhost that relays to a plain server, and yield its URL."""
    target = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
    context = own_context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if own_context is None:
        context.load_cert_chain(CERTIFICATE)

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            _relay(secure, socket.create_connection(target))

    with each_connection(serve) as port:
        yield f"https://localhost:{port}"


@contextmanager
def handshakes(context: ssl.SSLContext) -> Iterator[int]:
    """Run a server that completes TLS handshakes and then closes the connection; yield its port."""
    with each_connection(lambda client: context.wrap_socket(client, server_side=True).close()) as port:
        yield port


# --- PostgreSQL ----------------------------------------------------------------------------------------------------


@dataclass
class SilentProxy:
    """A proxy in front of PostgreSQL that can fall silent: it keeps its connections open, and forwards nothing.

    Attributes:
        url: the URL of the database through this proxy.
        forwards: cleared to fall silent; once it is set again, the proxy forwards what has arrived in the meantime.
    """

    url: str
    forwards: threading.Event


@contextmanager
def silent_proxy(database_url: str) -> Iterator[SilentProxy]:
    """Run a proxy in front of a PostgreSQL server that listens on a Unix socket."""
    url = make_url(database_url)
    forwards = threading.Event()
    forwards.set()

    def serve(client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{url.query['host']}/.s.PGSQL.{url.port or 5432}")
        _relay(client, server, forwards)

    with each_connection(serve) as port:
        through = url.set(host="127.0.0.1", port=port).difference_update_query(["host"])
        yield SilentProxy(through.render_as_string(hide_password=False), forwards)
        forwards.set()
