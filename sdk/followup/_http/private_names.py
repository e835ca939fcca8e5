"""All uses of private names of httpx and httpcore.

``tests/sdk/test_httpx_private.py`` fails by name when a new version moves one of them, and ``pyproject.toml`` has upper
bounds for both. If a name is missing all the same, ``_missing`` finds it: what needs it is off, and nothing else fails.

Requests of ours are marked (``our_request``), so that libraries neither log nor export them, and store no cookies for
them. Our queries contain phones and documents: httpx logs whole URLs at INFO, the OpenTelemetry instrumentation of
httpx exports them, and a cookie jar could carry a session from one organization to another.
"""

import contextvars
import functools
import logging
import socket
import ssl
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from http.cookiejar import CookieJar
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import httpx

from followup._call.steps import Send

_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("followup_request", default=False)


def is_ours() -> bool:
    """Return whether this thread or task is sending a request of the SDK."""
    return _ours.get()


@contextmanager
def our_request() -> Iterator[None]:
    """Mark the requests in a with block as those of the SDK."""
    token = _ours.set(True)
    try:
        with _untraced():
            yield
    finally:
        # A coroutine that nobody finishes is closed in another context, in which there is nothing to reset.
        with suppress(ValueError):
            _ours.reset(token)


def _not_ours(_: logging.LogRecord) -> bool:
    return not _ours.get()


# The application's own requests are still logged.
logging.getLogger("httpx").addFilter(_not_ours)


def _untraced() -> AbstractContextManager[None]:
    # An active instrumentation has imported this module. If it is not imported, there is nothing to suppress.
    utils = sys.modules.get("opentelemetry.instrumentation.utils")
    return nullcontext() if utils is None else _suppressed(utils, sys.modules["opentelemetry.context"])


@contextmanager
def _suppressed(utils: Any, context: Any) -> Iterator[None]:
    # Older instrumentations read this key; newer ones have a function for it.
    token = context.attach(context.set_value("suppress_instrumentation", True))
    try:
        with getattr(utils, "suppress_http_instrumentation", nullcontext)():
            yield
    finally:
        context.detach(token)


_TRANSPORTS = ("Client._transport", "Client._mounts", "HTTPTransport._pool")
_REQUESTS = ("ConnectionPool._optional_thread_lock", "ConnectionPool._requests", "HTTPConnection._connection")

NEEDED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "the cookies of an http_client are sent": ("Client._cookies",),
        "each attempt runs in a thread": (*_TRANSPORTS, *_REQUESTS, "ConnectionPool._network_backend"),
        "connections of failed calls may stay open": (
            *_TRANSPORTS,
            *_REQUESTS,
            "ConnectionPool._connections",
            "ConnectionPool._max_keepalive_connections",
            "ConnectionPool._assign_requests_to_connections",
            "ConnectionPool._close_connections",
            "HTTP11Connection._state",
        ),
        "an attempt that is too slow goes on in the background": (
            *_TRANSPORTS,
            *_REQUESTS,
            "Client._transport_for_url",
            "HTTP11Connection._h11_state",
            "HTTP11Connection._network_stream",
        ),
    }
)
"""The private names that each feature needs, by the consequence of its absence."""

_COOKIES, _NETWORK, _TIDYING, _SHUTTING_DOWN = NEEDED


@functools.cache
def _missing() -> frozenset[str]:
    """Return the features that are off, by their consequence, and warn of them once."""
    import httpcore  # late, as in use_our_network

    options: dict[str, Any] = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "trust_env": False}
    made: dict[str, list[Any]] = {
        "Client": [httpx.Client(**options), httpx.AsyncClient(**options)],
        "HTTPTransport": [httpx.HTTPTransport(**options), httpx.AsyncHTTPTransport(**options)],
        "ConnectionPool": [httpcore.ConnectionPool(), httpcore.AsyncConnectionPool()],
    }
    origin = httpcore.Origin(b"http", b"localhost", 80)
    made["HTTPConnection"] = [each.create_connection(origin) for each in made["ConnectionPool"]]
    stream: Any = None
    made["HTTP11Connection"] = [
        each(origin, stream) for each in (httpcore.HTTP11Connection, httpcore.AsyncHTTP11Connection)
    ]

    def is_there(name: str) -> bool:
        cls, attribute = name.split(".")
        return all(hasattr(each, attribute) for each in made[cls])

    gone = sorted({name for names in NEEDED.values() for name in names if not is_there(name)})
    off = frozenset(consequence for consequence, names in NEEDED.items() if not set(names).isdisjoint(gone))
    if off:
        warnings.warn(
            f"httpx {httpx.__version__} and httpcore {httpcore.__version__} do not have {', '.join(gone)}: "
            f"{'; '.join(sorted(off))}. Install the versions that followup requires",
            RuntimeWarning,
            stacklevel=2,
        )
    return off


class _Cookies(httpx.Cookies):
    """The cookies of a client, which requests of ours neither send nor add to.

    The user's own requests with the same ``http_client`` keep their cookies. httpx has no option per request: it reads
    the jar when it builds a request, and adds to it inside ``send``, before any event hook runs. A copy of the client
    with another jar would not work, because subclasses have state, and close themselves when a copy is deleted.
    """

    def __init__(self, cookies: httpx.Cookies) -> None:
        self._jar = cookies.jar

    @property
    def jar(self) -> CookieJar:
        return CookieJar() if is_ours() else self._jar

    @jar.setter
    def jar(self, jar: CookieJar) -> None:
        self._jar = jar

    def extract_cookies(self, response: httpx.Response) -> None:
        if not is_ours():
            super().extract_cookies(response)


def keep_no_cookies(client: httpx.Client | httpx.AsyncClient) -> None:
    """Exclude cookies from our requests. This is called before each one, because the user may replace the jar."""
    if _COOKIES not in _missing() and not isinstance(client._cookies, _Cookies):
        client._cookies = _Cookies(client._cookies)


def use_our_network(client: httpx.Client | httpx.AsyncClient) -> bool:
    """Install our network backends in a client, for its direct connections and those through a proxy.

    This is done afterwards, because with a transport of ours httpx would ignore the proxies of the environment.

    Returns:
        Whether the backends end each attempt in time. They cannot where a test has replaced httpx's transport, nor
        through an https proxy: for TLS within TLS, httpcore repeats reads until it has a whole record.
    """
    from followup._http.network import AsyncBackend, Backend  # imports httpcore, which httpx also imports late

    if _NETWORK in _missing():
        return False
    pools = _pools(client)
    for pool in pools:
        if pool is None:
            continue
        if isinstance(client, httpx.Client):
            pool._network_backend = Backend()
            # httpcore's lock is written in Python: the exception of a signal handler could leave it taken for ever.
            pool._optional_thread_lock = threading.RLock()
        else:
            pool._network_backend = AsyncBackend(pool._network_backend)
    return all(pool is not None and not _has_tls_proxy(pool) for pool in pools)


def _has_tls_proxy(pool: Any) -> bool:
    proxy = getattr(pool, "_proxy_url", None)
    return proxy is not None and proxy.scheme == b"https"


def proxy_of(client: httpx.Client | httpx.AsyncClient, url: str) -> str | None:
    """Return the URL of the proxy for requests to a URL, without its credentials; None for a direct connection."""
    proxy = getattr(_pool_for(client, url), "_proxy_url", None)
    if proxy is None:
        return None
    host = proxy.host.decode("ascii")
    shown = f"[{host}]" if ":" in host else host
    return f"{proxy.scheme.decode('ascii')}://{shown}" + (f":{proxy.port}" if proxy.port else "")


def has_pool(client: httpx.Client, attempt: Send) -> bool:
    """Return whether an attempt uses the pool of httpcore, and not a transport of the user's own."""
    return _pool_for(client, attempt.url) is not None


def _pool_for(client: httpx.Client | httpx.AsyncClient, url: str) -> Any:
    return None if _SHUTTING_DOWN in _missing() else pool_of(client._transport_for_url(httpx.URL(url)))


def pool_of(transport: Any) -> Any:
    """Return the httpcore pool of a transport of httpx; None for any other transport."""
    from httpcore import AsyncConnectionPool, ConnectionPool  # late, as in use_our_network

    for _ in range(_MAX_WRAPPERS):
        pool = getattr(transport, "_pool", None)
        if isinstance(pool, ConnectionPool | AsyncConnectionPool):
            return pool
        # An instrumentation may have wrapped it in a transport of its own.
        transport = getattr(transport, "_transport", None)
    return None


_MAX_WRAPPERS = 10
"""The search has a limit, because a mock object has every attribute, and the search in it would never end."""


def _pools(client: httpx.Client | httpx.AsyncClient) -> list[Any]:
    """Return the pools of a client, with None for each unknown transport."""
    mounted = [each for each in client._mounts.values() if each is not None]  # None is an entry of NO_PROXY
    return [pool_of(each) for each in (client._transport, *mounted)]


def tidy(client: httpx.Client, interrupted: Send | None = None) -> None:
    """Close the connections in the pools of a client that a failed attempt left unusable.

    httpcore assigns a waiting request a connection that is not open yet. If the request fails at that moment, nothing
    ever opens the connection, and the pool would count it forever: neither idle nor closed.

    Args:
        client: the client.
        interrupted: an attempt that was interrupted anywhere in the code of httpcore. Then no connection of the client,
            which is one of ours, is used again: those of requests in other threads are closed once these end.
    """
    for pool in _tidied(client):
        with _lock_of(pool):
            closing = _lost(pool, interrupted)
        pool._close_connections(closing)


async def tidy_async(client: httpx.AsyncClient, interrupted: Send | None = None) -> None:
    """Do the same as ``tidy`` for an asynchronous client, whose requests can be cancelled at any moment."""
    for pool in _tidied(client):
        if closing := _lost(pool, interrupted):
            await pool._close_connections(closing)


def _tidied(client: httpx.Client | httpx.AsyncClient) -> list[Any]:
    return [] if _TIDYING in _missing() else [each for each in _pools(client) if each is not None]


def _lock_of(pool: Any) -> Any:
    """Return the lock of a synchronous pool, written in C (see ``use_our_network``)."""
    lock = pool._optional_thread_lock
    return getattr(lock, "_lock", lock)


def _lost(pool: Any, interrupted: Send | None) -> list[Any]:
    """Remove the unusable connections, assign their places to waiting requests, and return the connections to close."""
    if interrupted is not None:
        pool._max_keepalive_connections = 0
        pool._requests = [each for each in pool._requests if each.request.extensions.get(ATTEMPT) is not interrupted]
    held = {id(each.connection) for each in pool._requests}
    unheld = [each for each in pool._connections if id(each) not in held]
    lost = [each for each in unheld if interrupted is not None or _is_unused(each)]
    for each in lost:
        pool._connections.remove(each)
    return [*lost, *pool._assign_requests_to_connections()] if lost else []


def _is_unused(connection: Any) -> bool:
    """Return whether a connection was never opened, or has never carried a request."""
    inner = _innermost(connection)
    return inner is None or getattr(getattr(inner, "_state", None), "name", None) == "NEW"


def _innermost(connection: Any) -> Any:
    """Return the HTTP connection inside a connection of a pool, direct or through a proxy; None before it is opened."""
    while hasattr(connection, "_connection"):
        connection = connection._connection
    return connection


def mark_missing_sniffio() -> None:
    """Mark sniffio as missing if it is not installed, so that httpcore does not try to import it again and again.

    httpcore tries that for each lock that it creates. Each failing import holds an import lock briefly, and a child
    process that is forked then inherits the lock held. None in ``sys.modules`` marks a module as missing.
    """
    try:
        import_module("sniffio")
    except ImportError:
        sys.modules["sniffio"] = None  # type: ignore[assignment]


ATTEMPT = "followup_attempt"
"""Name of the request extension that identifies a request in a pool. Its value is the ``Send`` of the attempt."""


def shut_down(client: httpx.Client, attempt: Send) -> None:
    """End an attempt in another thread by shutting down its socket. httpcore then closes the connection.

    This works for the transports of httpx only; the pool of a user's own transport is unknown. A connection that other
    requests share, as with HTTP/2, is left open; then only the timeout of each read limits the attempt.
    """
    pool = _pool_for(client, attempt.url)
    if pool is None:
        return
    with _lock_of(pool):  # so that the connection is not assigned to another request meanwhile
        for waiting in pool._requests:
            if waiting.request.extensions.get(ATTEMPT) is not attempt:
                continue
            connection = _innermost(waiting.connection)
            users = sum(each.connection is waiting.connection for each in pool._requests)
            if users == 1 and hasattr(connection, "_h11_state"):  # HTTP/1.1
                _shut(connection._network_stream.get_extra_info("socket"))


def _shut(connected: socket.socket | None) -> None:
    if connected is None:
        return  # the connection of a user's own network backend
    try:
        # Not SSLSocket.shutdown, which also removes the TLS object while the other thread reads from it.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        return  # it has been closed meanwhile
