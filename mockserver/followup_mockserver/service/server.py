"""``MockServer``, the mock on a socket, in threads of this process."""

import re
import secrets
import socket
from typing import Self, Unpack, cast

import attrs

from followup._for_mockserver import clears_frames_of
from followup_mockserver.service import Mock
from followup_mockserver.web.app import http_error
from followup_mockserver.web.control import Guard
from followup_mockserver.web.web_server import WebServer
from followup_mockserver.world.schema.errors import InvalidArgument
from followup_mockserver.world.schema.formats import is_loopback_address
from followup_mockserver.world.settings import MockOptions, options_of
from followup_mockserver.world.state.snapshots import SnapshotSource, prepare


@clears_frames_of
class MockServer(Mock):
    """A mock of the patient follow-up service on a real socket, in threads of this process; a context manager.

    It listens from ``start()``, which ``with`` calls, until ``stop()``::

        with MockServer() as server, server.client() as client:
            client.account.retrieve()

    It behaves as ``MockService``, whose documentation describes the test controls, with one difference: jobs run in the
    background as soon as they are due. First webhook attempts are therefore sent at once, as the service does, and
    ``advance()`` without arguments returns when all jobs that are due now have been done.

    Anyone who reaches the socket can use the API with the key ``fu_test_mock``. The control API rejects requests from
    web pages of other hosts, and unless the address is a loopback one, it requires ``token`` in the header
    ``Mock-Token``.

    Args:
        host: address or name to listen on.
        port: port to listen on; 0 picks a free port.
        options: the options of ``MockService``.

    Raises:
        TypeError: an unknown option.
        ValueError: an invalid host or option, or an option in the settings file; the message names it.
        OSError: the mock cannot listen on this address, or the settings file cannot be read.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, **options: Unpack[MockOptions]) -> None:
        checked = options_of(options)
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not re.fullmatch(r"[\w.:%-]+", host):
            raise InvalidArgument("host", "an address or a name; 0.0.0.0 and :: listen on all addresses")
        self._host = host
        # Bound first, so that a port in use raises before any thread has been started.
        self._socket = _bound_socket(host, port)
        self._port = int(self._socket.getsockname()[1])
        # Without a token, anyone who can connect from elsewhere could use the test controls.
        local = host == "localhost" or is_loopback_address(host)
        token = None if local else secrets.token_urlsafe(24)
        super().__init__(checked, threaded=True, guard=Guard(host, token, protects_api=local))
        self._web_server: WebServer | None = None
        self._stopped = False

    @classmethod
    def load(
        cls, state: SnapshotSource, *, host: str = "127.0.0.1", port: int = 0, **options: Unpack[MockOptions]
    ) -> Self:
        """Create a server from a snapshot, as ``MockService.load`` does. Jobs that are due run from ``start()``.

        Args:
            state: the data that ``save`` returned, its JSON text (``str`` or ``bytes``), or the path of a file with
                this text (``pathlib.Path``).
            host: address or name to listen on.
            port: port to listen on; 0 picks a free port.
            options: as in ``MockService.load``.

        Raises:
            OSError: the file cannot be read, or the mock cannot listen on this address.
            TypeError: an unknown option.
            ValueError: an invalid option, or an invalid snapshot; the message names it, or the place in the snapshot.
        """
        merged, saved = prepare(state, options)
        server = cls(host=host, port=port, **cast("MockOptions", merged))
        server._access.registry.start_from(saved)
        return server

    @property
    def url(self) -> str:
        """The base URL of clients, such as ``http://127.0.0.1:4210``."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def token(self) -> str | None:
        """The token that the control API requires in the header ``Mock-Token``; None on a loopback address."""
        return self._guard.token

    def _use_token(self, token: str) -> None:
        """Replace the random token, before the start. On a loopback address there is none."""
        if self._guard.token is not None:
            self._guard = attrs.evolve(self._guard, token=token)

    def start(self) -> None:
        """Start to listen, and to run jobs in the background. Returns when the server accepts requests.

        Raises:
            RuntimeError: the server was started or stopped before.
        """
        if self._stopped or self._web_server is not None:
            raise RuntimeError("a server starts once; create a new MockServer")
        gateway = self._gateway
        self._web_server = WebServer(self._wsgi_app, self._socket, lambda status: gateway.reject(http_error(status)))
        self._engine.start()

    def stop(self) -> None:
        """Finish the requests in progress, and free the port.

        Long polls, injected delays and ``advance`` end at once; other requests have half a second to finish. Stopping
        twice does no harm.
        """
        if self._stopped:
            return
        self._stopped = True
        if self._web_server is None:
            self._socket.close()
        else:
            self._engine.stop()  # first: it ends what requests in progress wait for
            self._web_server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def close(self) -> None:
        """Stop the server; the same as ``stop``."""
        self.stop()


def _bound_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        # With SO_REUSEADDR, Windows would let two servers listen on one port.
        bound.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound
