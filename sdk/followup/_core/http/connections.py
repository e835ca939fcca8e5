"""What a client sends its attempts with: the user's own httpx client, or a transport of ours.

A connection must not be shared across a fork, and an asynchronous one belongs to the event loop that opened it. So each
process or running event loop has a transport, made on first use. The synchronous client imports httpcore and loads
certificates only then, because that takes most of the time of creating a client; the asynchronous client does so
before, because it would block the event loop.
"""

import functools
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from followup._core.errors import ConfigurationError
from followup._core.http import CLOSED
from followup._core.threads import NoThreadError, result_within, unforked

if TYPE_CHECKING:
    import asyncio

    import httpx

    from followup._core.call.steps import Outcome, Send
    from followup._core.http.proxies import Route
    from followup._core.http.transport import AsyncTransport, Transport

C = TypeVar("C", "httpx.Client", "httpx.AsyncClient")

_OTHER_PROCESS = (
    "http_client was passed in another process, before a fork: two processes on the same connections would read each "
    "other's responses. Create the httpx client and the FollowUp client in the process that uses them, or omit "
    "http_client"
)

_of_parents: list[object] = []
"""Transports that a process has inherited by a fork. They are kept, because their end would close connections."""


def import_transport() -> None:
    """Import what calls need, so that they import nothing themselves."""
    for module in ("email.utils", "encodings.idna", "followup._core.http.transport"):
        import_module(module)


@functools.cache
def _imported() -> Any:
    try:  # in a thread, because an interrupt of this one would leave a lock of the import system taken
        result_within(None, import_transport)
    except NoThreadError:
        import_transport()
    return import_module("followup._core.http.transport")


@functools.cache
def import_for_event_loops() -> None:
    """Import the rest of what asynchronous calls need, which would block the event loop."""
    # httpcore's locks are those of anyio, which imports its part for asyncio when it first runs there.
    anyio = import_module("anyio")
    with suppress(Exception):  # then the first call imports it
        result_within(None, lambda: anyio.run(anyio.sleep, 0))
    # httpcore looks for sniffio for each connection. If another thread does so during a fork, the lock of that import
    # is never released in the child; None marks the module as missing there, so that nobody takes the lock.
    if find_spec("sniffio") is None and hasattr(os, "register_at_fork"):
        missing: Any = None
        os.register_at_fork(after_in_child=lambda: sys.modules.setdefault("sniffio", missing))


class _Connections(Generic[C]):
    """The base of both classes.

    Attributes:
        transport: sends the requests instead of ours in a test: one of httpx, or the mock's, which has the method
            ``attempt`` of the same signature as ``Connections.send``.
    """

    def __init__(self, base_url: str, own: C | None) -> None:
        self.transport: Any = None
        self._base_url = base_url
        self._own: C | None = own
        self._process = os.getpid()
        self._closed = False
        self._route: Route | None = None
        # By event loop; by None for threads.
        self._transports: dict[Any, Any] = {}
        if own is not None:
            import_module("followup._core.http.through_httpx")  # now, and not where an interrupt leaves a lock taken

    def _replacement(self) -> Any:
        """Return the client or transport of httpx that sends the requests instead of ours, if there is one.

        Raises:
            ConfigurationError: this client or the user's own is closed, or the latter belongs to another process.
        """
        if self._closed:
            raise ConfigurationError(CLOSED)
        if self._own is None:
            return self.transport
        if self._process != os.getpid():
            raise ConfigurationError(_OTHER_PROCESS)
        if self._own.is_closed:
            raise ConfigurationError("http_client has been closed: create a new one, and a new client with it")
        return self._own

    def route(self) -> "Route":
        """Return the way to the service, with the proxy and the certificates of the environment.

        Raises:
            ConfigurationError: they cannot be used.
        """
        if self._route is None:
            _imported()
            from followup._core.http.proxies import Route

            with unforked():
                self._route = self._route or Route(self._base_url)
        return self._route

    def _find_transport(self, kind: str, loop: object) -> Any:
        """Return the transport of this process and event loop, which is made on first use."""
        # Without the lock, which every call would take: after a fork, the dict is still that of the parent.
        if (found := self._transports.get(loop)) is not None and self._process == os.getpid():
            return found
        make, route = getattr(_imported(), kind), self.route()
        with unforked():
            self._replacement()  # it may have been closed meanwhile
            self._drop_unusable()
            return self._transports.get(loop) or self._transports.setdefault(loop, make(route))

    def _drop_unusable(self) -> None:
        """Forget the transports of a parent process, and of event loops that have ended."""
        if self._process != os.getpid():
            self._process = os.getpid()
            _of_parents.append(self._transports)
            self._transports = {}
        self._transports = {
            loop: each for loop, each in self._transports.items() if loop is None or not loop.is_closed()
        }


class Connections(_Connections["httpx.Client"]):
    """The connections of a ``FollowUp`` client."""

    def send(self, step: "Send") -> "Outcome":
        """Make one attempt in this thread.

        Raises:
            ConfigurationError: the client is closed, or cannot be used in this process or environment.
        """
        if (replacement := self._replacement()) is not None:
            if hasattr(replacement, "attempt"):
                return cast("Outcome", replacement.attempt(step))
            from followup._core.http import through_httpx

            return through_httpx.send(replacement, step)
        transport: Transport = self._find_transport("Transport", None)
        return transport.send(step)

    def close(self) -> None:
        """Close the connections of this process. Those of attempts in other threads are closed when these end."""
        with unforked():
            self._closed = True
            if self._process == os.getpid() and None in self._transports:
                self._transports[None].close()


class AsyncConnections(_Connections["httpx.AsyncClient"]):
    """The connections of an ``AsyncFollowUp`` client."""

    def __init__(self, base_url: str, own: "httpx.AsyncClient | None" = None) -> None:
        super().__init__(base_url, own)
        import_for_event_loops()
        if own is None and base_url.startswith("https:"):
            self.route()  # now, because it loads certificates, which would block the event loop

    async def send(self, step: "Send") -> "Outcome":
        """Make one attempt in this task.

        Raises:
            ConfigurationError: the client is closed, or cannot be used in this process, event loop or environment.
        """
        loop = _running_loop()  # first: under trio, every kind of connection gets the same clear error
        if (replacement := self._replacement()) is not None:
            if hasattr(replacement, "attempt"):
                return cast("Outcome", replacement.attempt(step))  # which does not block: its time is virtual
            from followup._core.http import through_httpx

            return await through_httpx.send_async(replacement, step)
        transport: AsyncTransport = self._find_transport("AsyncTransport", loop)
        return await transport.send(step)

    async def close(self) -> None:
        """Close the connections of the running event loop, and drop those of loops that have ended."""
        self._closed = True
        loop = _running_loop()
        self._drop_unusable()
        if (transport := self._transports.pop(loop, None)) is not None:
            import asyncio

            transport.close()
            await asyncio.sleep(0)  # asyncio closes sockets in its next round


def _running_loop() -> "asyncio.AbstractEventLoop":
    import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "AsyncFollowUp needs a running event loop of asyncio; trio and other libraries are not supported"
        ) from None
