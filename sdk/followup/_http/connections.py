"""The httpx clients of a FollowUp client: one per process, or one per running event loop.

A connection pool must not be shared across a fork, and an asynchronous one belongs to the event loop that opened it. So
pools are opened on first use, in the process and event loop that need them. The synchronous client imports httpx and
loads certificates only then, because that takes most of the time of creating a client; the asynchronous client does so
before, because it would block the event loop.
"""

import functools
import os
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from followup._results.errors import ConfigurationError
from followup._threads import NoThreadError, result_within, unforked

if TYPE_CHECKING:
    import asyncio
    import ssl

    import httpx

    from followup._call.steps import Steps
    from followup._time import Time

R = TypeVar("R")
C = TypeVar("C", "httpx.Client", "httpx.AsyncClient")

_MAX_CONNECTIONS = 100
_CLOSED = "the client has been closed: create a new one"
_OTHER_PROCESS = (
    "http_client was passed in another process, before a fork: two processes on the same connections would read each "
    "other's responses. Create the httpx client and the FollowUp client in the process that uses them, or omit "
    "http_client"
)


def import_drivers() -> None:
    """Import what calls need, so that they import nothing themselves."""
    for module in ("email.utils", "encodings.idna", "followup._http.drivers", "followup._http.network"):
        import_module(module)


@functools.cache
def _driver() -> Any:
    """Return the function that drives a call, after the imports that it needs."""
    try:  # in a thread, because an interrupt of this one would leave a module half imported
        result_within(None, import_drivers)
    except NoThreadError:
        import_drivers()
    from followup._http.drivers import drive

    return drive


class _Connections(Generic[C]):
    """The base of both classes: the user's own httpx client, or pools of ours that have to be closed.

    Attributes:
        enforce_time_limits: whether our network backend, or the mock's transport, ends each attempt in time. It is set
            by the first call of ``client``, or by the mock.
    """

    def __init__(self, own: C | None, *, tls: bool) -> None:
        self.enforce_time_limits = False
        self._own: C | None = own
        self._process = os.getpid()
        self._closed = False
        self._tls = tls
        self._certificates: ssl.SSLContext | None = None

    def _usable_own(self) -> C | None:
        """Return the user's own client, if there is one.

        Raises:
            ConfigurationError: this client or the user's own is closed, or the latter belongs to another process.
        """
        if self._closed:
            raise ConfigurationError(_CLOSED)
        if self._own is None:
            return None
        if self._process != os.getpid():
            raise ConfigurationError(_OTHER_PROCESS)
        if self._own.is_closed:
            raise ConfigurationError("http_client has been closed: create a new one, and a new client with it")
        return self._own

    def load_certificates(self) -> "ssl.SSLContext":
        """Return the trusted certificates, loaded once for all pools.

        Raises:
            ConfigurationError: they cannot be loaded.
        """
        import ssl

        import httpx

        try:
            with unforked():
                if self._certificates is None:
                    self._certificates = (
                        httpx.create_ssl_context() if self._tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    )
                return self._certificates
        except OSError as error:
            raise ConfigurationError(
                f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded: {error.strerror}"
            ) from None

    def _new_pool(self, kind: type[C]) -> C:
        import httpx

        from followup._http.private_names import use_our_network

        limits = httpx.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS)
        certificates = self.load_certificates()
        problem = "the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used"
        try:
            pool = kind(limits=limits, verify=certificates)
        except ImportError as error:  # the package for SOCKS is not installed; the message names it
            problem = f"{problem}: {error}"
        except (ValueError, httpx.InvalidURL):  # their messages may contain the password of the proxy
            problem = f"{problem}: it is not a valid URL"
        else:
            self.enforce_time_limits = use_our_network(pool)
            return pool
        raise ConfigurationError(problem)

    def _has_open_pools(self) -> bool:
        raise NotImplementedError

    def __del__(self) -> None:
        # Pools cannot be closed here: there may be no running event loop, or a different one.
        if not getattr(self, "_closed", True) and self._has_open_pools():
            warnings.warn("unclosed FollowUp client: call close() or use it in a with block", ResourceWarning, 2)


class Connections(_Connections["httpx.Client"]):
    """The connections of a ``FollowUp`` client."""

    def __init__(self, own: "httpx.Client | None" = None, *, tls: bool = True) -> None:
        self._pool: httpx.Client | None = None
        super().__init__(own, tls=tls)

    def drive(self, steps: "Steps[R]", time: "Time") -> R:
        """Carry out the steps of a call in this thread, and return their result."""
        return cast("R", _driver()(steps, self, time))

    def client(self) -> "httpx.Client":
        """Return the httpx client of this process."""
        own = self._usable_own()
        if own is not None:
            return own
        pool = self._pool
        if pool is not None and self._process == os.getpid():
            return pool
        with unforked():
            self._usable_own()  # it may have been closed meanwhile
            if self._pool is None or self._process != os.getpid():
                import httpx

                self._pool = self._new_pool(httpx.Client)
                self._process = os.getpid()
            return self._pool

    def drop(self, pool: "httpx.Client") -> bool:
        """Let the next call open a new pool, if this one is ours; return whether it is."""
        with unforked():
            is_ours = pool is self._pool
            if is_ours:
                self._pool = None
            return is_ours

    def close(self) -> None:
        """Close the pool of this process."""
        with unforked():
            self._closed = True
            pool = self._pool if self._process == os.getpid() else None
        if pool is not None:
            pool.close()

    def _has_open_pools(self) -> bool:
        return self._pool is not None and self._process == os.getpid()


class AsyncConnections(_Connections["httpx.AsyncClient"]):
    """The connections of an ``AsyncFollowUp`` client."""

    def __init__(self, own: "httpx.AsyncClient | None" = None, *, tls: bool = True) -> None:
        # Not weak references: they would be dead by the time __del__ checks whether a pool is open.
        self._pools: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}
        super().__init__(own, tls=tls)
        if own is None:
            self.load_certificates()

    async def drive(self, steps: "Steps[R]", time: "Time") -> R:
        """Carry out the steps of a call in this task, and return their result."""
        from followup._http.drivers import drive_async

        return await drive_async(steps, self, time)

    def client(self) -> "httpx.AsyncClient":
        """Return the httpx client of the running event loop."""
        loop = _running_loop()
        own = self._usable_own()
        if own is not None:
            return own
        pool = self._pools.get(loop)
        if pool is not None and self._process == os.getpid():
            return pool
        with unforked():
            self._drop_unusable_pools()
            import httpx

            pool = self._new_pool(httpx.AsyncClient)
            self._pools[loop] = pool
            return pool

    def drop(self, pool: "httpx.AsyncClient") -> bool:
        """Let the next call open a new pool, if this one is ours; return whether it is."""
        loops = [loop for loop, each in self._pools.items() if each is pool]
        for loop in loops:
            del self._pools[loop]
        return bool(loops)

    async def close(self) -> None:
        """Close the pool of the running event loop, and drop those of loops that have ended."""
        self._closed = True
        if self._process != os.getpid():
            return
        pool = self._pools.pop(_running_loop(), None)
        self._drop_unusable_pools()
        if pool is not None:
            await pool.aclose()

    def _drop_unusable_pools(self) -> None:
        ours = self._process == os.getpid()
        self._pools = {loop: pool for loop, pool in self._pools.items() if ours and not loop.is_closed()}
        self._process = os.getpid()

    def _has_open_pools(self) -> bool:
        return self._process == os.getpid() and any(not loop.is_closed() for loop in self._pools)


def _running_loop() -> "asyncio.AbstractEventLoop":
    import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "AsyncFollowUp needs a running event loop of asyncio; trio and other libraries are not supported"
        ) from None
