"""Sockets with one time limit for all operations together.

The timeout of a socket applies to each read. A peer that sends a byte now and then, or one interim response after
another, never exceeds it, so the timeout is set to the remaining time before each operation.
"""

import math
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from followup_mockserver.state.clock import RealTime
from followup_mockserver.webhooks.lookups import Address


class TimedSocket(socket.socket):
    """A socket whose operations raise ``TimeoutError`` after a fixed instant.

    Attributes:
        ends: that instant, of ``RealTime.monotonic``.
    """

    ends = math.inf

    def connect(self, address: Any) -> None:
        """Connect, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().connect(address)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive, within the time limit."""
        self.settimeout(time_left(self.ends))
        return super().recv_into(buffer, nbytes, flags)

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Send, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().sendall(data, flags)


class TimedTLSSocket(ssl.SSLSocket):
    """A TLS socket whose operations raise ``TimeoutError`` after a fixed instant.

    Attributes:
        ends: that instant, of ``RealTime.monotonic``.
    """

    ends = math.inf

    def do_handshake(self, block: bool = False) -> None:
        """Make the TLS handshake, within the time limit."""
        self.settimeout(time_left(self.ends))
        super().do_handshake(block)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """Receive, within the time limit."""
        self.settimeout(time_left(self.ends))
        return super().recv_into(buffer, nbytes, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        """Send a part, within the time limit; ``sendall`` calls this for each part."""
        self.settimeout(time_left(self.ends))
        return super().send(data, flags)


def time_left(ends: float) -> float:
    """Return the seconds until an instant of ``RealTime.monotonic``.

    Raises:
        TimeoutError: the instant has passed.
    """
    left = ends - RealTime.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def connect(addresses: Sequence[Address], port: int, ends: float) -> TimedSocket:
    """Connect to the first address that accepts the connection.

    Args:
        addresses: addresses in the order in which to try them.
        port: the port, the same for all.
        ends: the instant of ``RealTime.monotonic`` at which the attempt to connect has timed out.

    Raises:
        OSError: the error of the last address.
        TimeoutError: the last address did not respond in time.
    """
    for position, (family, address) in enumerate(addresses):
        connecting = TimedSocket(family, socket.SOCK_STREAM)
        # Each address gets its share of the remaining time, so that one that hangs leaves time for the others.
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
    """Make a TLS handshake, in which ``context`` verifies the certificate, and return the TLS socket."""
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
