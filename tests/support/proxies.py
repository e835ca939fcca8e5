"""Local proxies and TLS servers, for tests of connections that go through them."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A self-signed certificate for localhost and 127.0.0.1, with its private key, which is not a secret."""


@dataclass
class Tunnel:
    """A running proxy."""

    url: str = ""
    targets: list[tuple[str, int]] = field(default_factory=list)
    """Host and port of each connection that a client requested."""


@contextmanager
def socks_proxy() -> Iterator[Tunnel]:
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

    with _tunnels("socks5", greet) as tunnel:
        yield tunnel


@contextmanager
def connect_proxy() -> Iterator[Tunnel]:
    """Run an HTTP proxy that opens tunnels (CONNECT, RFC 9110, section 9.3.6)."""

    def greet(client: socket.socket) -> tuple[str, int]:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        host, port = head.split()[1].decode().rsplit(":", 1)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return host, int(port)

    with _tunnels("http", greet) as tunnel:
        yield tunnel


@contextmanager
def tls_relay(url: str, own_context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a TLS server for localhost that relays to a plain server, and yield its URL."""
    port = int(url.rsplit(":", 1)[1])
    context = own_context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if own_context is None:
        context.load_cert_chain(CERTIFICATE)

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            _relay(secure, ("127.0.0.1", port))

    with _listening(serve) as listening:
        yield f"https://localhost:{listening}"


@contextmanager
def _tunnels(scheme: str, greet: Callable[[socket.socket], tuple[str, int]]) -> Iterator[Tunnel]:
    tunnel = Tunnel()

    def serve(client: socket.socket) -> None:
        target = greet(client)
        tunnel.targets.append(target)
        _relay(client, ("127.0.0.1", target[1]))

    with _listening(serve) as port:
        tunnel.url = f"{scheme}://127.0.0.1:{port}"
        yield tunnel


@contextmanager
def _listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    clients: list[socket.socket] = []

    def handle(client: socket.socket) -> None:
        try:
            with client:
                serve(client)
        except (OSError, ValueError, IndexError):
            return  # the client disconnected

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            clients.append(client)
            threading.Thread(target=handle, args=(client,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for each in (listener, *clients):
            _shut(each)
        listener.close()
        accepting.join(60)


def _relay(client: socket.socket, target: tuple[str, int]) -> None:
    with socket.create_connection(target) as server:
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join(60)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        _shut(target)
        _shut(source)


def _shut(connection: socket.socket) -> None:
    try:
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        return
