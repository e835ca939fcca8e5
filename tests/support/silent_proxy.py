"""A proxy in front of PostgreSQL that can fall silent: it keeps its connections open, and forwards nothing."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import make_url


class SilentProxy:
    """A running proxy.

    Attributes:
        url: the URL of the database through this proxy.
    """

    def __init__(self, database_url: str) -> None:
        url = make_url(database_url)
        folder = url.query["host"]
        assert isinstance(folder, str)
        self._server = f"{folder}/.s.PGSQL.{url.port or 5432}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        through = url.set(host=host, port=port).difference_update_query(["host"])
        self.url = through.render_as_string(hide_password=False)
        self._forwards = threading.Event()
        self._forwards.set()
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def fall_silent(self) -> None:
        """Forward nothing from now on."""
        self._forwards.clear()

    def speak(self) -> None:
        """Forward everything again, also what has arrived in the meantime."""
        self._forwards.set()

    def close(self) -> None:
        """Close all connections."""
        self._forwards.set()
        for each in (self._listener, *self._sockets):
            with each:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._sockets += [client, server]
            self._start(self._forward, client, server)
            self._start(self._forward, server, client)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._forwards.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _start(self, work: object, *args: object) -> None:
        assert callable(work)
        threading.Thread(target=work, args=args, daemon=True).start()


@contextmanager
def silent_proxy(database_url: str) -> Iterator[SilentProxy]:
    """Run a proxy in front of a PostgreSQL server that listens on a Unix socket."""
    proxy = SilentProxy(database_url)
    try:
        yield proxy
    finally:
        proxy.close()
