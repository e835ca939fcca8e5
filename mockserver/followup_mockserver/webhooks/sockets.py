"""Sockets on which everything together ends by one instant.

A timeout of a socket bounds each read. A peer that sends a byte now and then, or one interim response after another,
passes it for ever; so the time that is left is set anew before each operation.
"""

import math
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from followup_mockserver.state.clock import RealTime
from followup_mockserver.webhooks.lookups import Address


class TimedSocket(socket.socket):
    """A socket whose operations raise ``TimeoutError`` once ``ends`` has passed."""

    ends = math.inf

    def connect(self, address: Any) -> None:
        self.settimeout(time_left(self.ends))
        super().connect(address)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        self.settimeout(time_left(self.ends))
        return super().recv_into(buffer, nbytes, flags)

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        self.settimeout(time_left(self.ends))
        super().sendall(data, flags)


class TimedTLSSocket(ssl.SSLSocket):
    """The same, with TLS."""

    ends = math.inf

    def do_handshake(self, block: bool = False) -> None:
        self.settimeout(time_left(self.ends))
        super().do_handshake(block)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        self.settimeout(time_left(self.ends))
        return super().recv_into(buffer, nbytes, flags)

    def send(self, data: Any, flags: int = 0) -> int:  # sendall sends in parts with it
        self.settimeout(time_left(self.ends))
        return super().send(data, flags)


def time_left(ends: float) -> float:
    """Seconds until an instant of ``RealTime.monotonic``.

    Raises:
        TimeoutError: it has passed.
    """
    left = ends - RealTime.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(addresses: Sequence[Address], port: int, ends: float) -> TimedSocket:
    """Connect to the first address that lets us.

    Raises:
        OSError: what the last one said; ``TimeoutError`` if it said nothing.
    """
    for position, (family, address) in enumerate(addresses):
        connecting = TimedSocket(family, socket.SOCK_STREAM)
        # The first of two addresses must leave time for the second.
        connecting.ends = RealTime.monotonic() + time_left(ends) / (len(addresses) - position)
        try:
            connecting.connect((address, port))
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException as error:
            connecting.close()
            if position + 1 == len(addresses) or not isinstance(error, OSError):
                raise
        else:
            connecting.ends = ends
            return connecting
    raise OSError("the host has no address")


def with_tls(connected: TimedSocket, context: ssl.SSLContext, host: str) -> TimedTLSSocket:
    """The same connection after a TLS handshake; ``context`` verifies the certificate."""
    context.sslsocket_class = TimedTLSSocket
    wrapped: ssl.SSLSocket | None = None
    try:
        wrapped = context.wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        assert isinstance(wrapped, TimedTLSSocket)
        wrapped.ends = connected.ends
        wrapped.do_handshake()
    except BaseException:
        (wrapped or connected).close()
        raise
    return wrapped
