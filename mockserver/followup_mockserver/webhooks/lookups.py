"""DNS lookups with a time limit: those of the operating system can take minutes and cannot be interrupted."""

import ipaddress
import socket
import threading
from concurrent.futures import Future

from followup_mockserver.schema.formats import is_loopback_address
from followup_mockserver.state.clock import RealTime

MAX_LOOKUPS = 32
"""Lookups in progress at the same time, each in a thread that ends when the operating system responds."""

Address = tuple[socket.AddressFamily, str]


class NotALoopbackAddressError(OSError):
    """Raised for a host of an http URL that is not this machine: only those may receive webhooks in clear text."""


class TooManyLookupsError(OSError):
    """Raised when ``MAX_LOOKUPS`` lookups are in progress, so that another one would not end in time."""


class Lookups:
    """Looks up the addresses of hosts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_progress: dict[str, Future[list[Address]]] = {}

    def addresses(self, host: str, *, loopback_only: bool, ends: float) -> list[Address]:
        """Return the addresses of a host, in the order in which they should be tried.

        Args:
            host: name or IP address.
            loopback_only: whether to accept only addresses of this machine.
            ends: the instant of ``RealTime.monotonic`` at which the lookup has timed out.

        Raises:
            OSError: the host does not exist, or it is not this machine although it must be.
            TimeoutError: the lookup took too long.
        """
        try:
            found = [(_family(host), host)]
        except ValueError:
            found = self._lookup(host).result(max(0.0, ends - RealTime.monotonic()))
        if loopback_only:
            found = [each for each in found if is_loopback_address(each[1])]
            if not found:
                raise NotALoopbackAddressError(f"{host} is not this machine")
        return found

    def _lookup(self, host: str) -> "Future[list[Address]]":
        with self._lock:
            lookup = self._in_progress.get(host)
            if lookup is None:
                if len(self._in_progress) >= MAX_LOOKUPS:
                    raise TooManyLookupsError(f"{len(self._in_progress)} names are being looked up")
                lookup = self._in_progress[host] = Future()
                threading.Thread(
                    target=self._look_up, args=(host, lookup), name="followup-mock-lookup", daemon=True
                ).start()
        return lookup

    def _look_up(self, host: str, lookup: "Future[list[Address]]") -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses: list[Address] = [(family, str(address[0])) for family, _, _, _, address in found]
        except Exception as error:  # noqa: BLE001 - raised again in each waiting thread
            self._remove(host)
            lookup.set_exception(error)
        else:
            self._remove(host)
            lookup.set_result(addresses)

    def _remove(self, host: str) -> None:
        with self._lock:
            del self._in_progress[host]


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
