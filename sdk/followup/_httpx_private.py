"""All uses of private names of httpx and httpcore.

``tests/sdk/test_httpx_private.py`` fails by name when a new version moves one of them, and ``pyproject.toml`` has an
upper bound for httpx.
"""

import socket
import sys
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

import httpx

from followup._quiet import is_ours
from followup._steps import Send


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
    if not isinstance(client._cookies, _Cookies):
        client._cookies = _Cookies(client._cookies)


def use_our_network(client: httpx.Client | httpx.AsyncClient) -> bool:
    """Install our network backends in a client, for its direct connections and those through a proxy.

    This is done afterwards, because with a transport of ours httpx would ignore the proxies of the environment.

    Returns:
        Whether the backends end each attempt in time. They cannot where a test has replaced httpx's transport, nor
        through an https proxy: for TLS within TLS, httpcore repeats reads until it has a whole record.
    """
    from followup._network import AsyncBackend, Backend  # imports httpcore, which httpx also imports late

    pools = _pools(client)
    for pool in pools:
        if pool is not None:
            ours = Backend() if isinstance(client, httpx.Client) else AsyncBackend(pool._network_backend)
            pool._network_backend = ours
    return all(pool is not None and not _has_tls_proxy(pool) for pool in pools)


def _has_tls_proxy(pool: Any) -> bool:
    proxy = getattr(pool, "_proxy_url", None)
    return proxy is not None and proxy.scheme == b"https"


def proxy_of(client: httpx.Client, url: str) -> str | None:
    """Return the URL of the proxy for requests to a URL, without its credentials; None for a direct connection."""
    proxy = getattr(pool_of(client._transport_for_url(httpx.URL(url))), "_proxy_url", None)
    if proxy is None:
        return None
    host = proxy.host.decode("ascii")
    shown = f"[{host}]" if ":" in host else host
    return f"{proxy.scheme.decode('ascii')}://{shown}" + (f":{proxy.port}" if proxy.port else "")


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


def forget_unopened(client: httpx.Client) -> None:
    """Remove connections that will never be opened from the pools of a client, after a failed attempt.

    httpcore assigns a waiting request a connection that is not open yet. If the request fails at that moment, nothing
    ever opens the connection, and the pool would count it forever: neither idle nor closed.
    """
    for pool in filter(None, _pools(client)):
        with pool._optional_thread_lock:
            closing = _without_unopened(pool)
        pool._close_connections(closing)


async def forget_unopened_async(client: httpx.AsyncClient) -> None:
    """Do the same as ``forget_unopened`` for an asynchronous client, whose requests can be cancelled at any moment."""
    for pool in filter(None, _pools(client)):
        closing = _without_unopened(pool)
        if closing:
            await pool._close_connections(closing)


def _without_unopened(pool: Any) -> list[Any]:
    """Remove the unopened connections, assign their places to waiting requests, and return the connections to close."""
    held = {id(each.connection) for each in pool._requests}
    lost = [each for each in pool._connections if id(each) not in held and _is_unused(each)]
    if not lost:
        return []
    for each in lost:
        pool._connections.remove(each)
    return [*lost, *pool._assign_requests_to_connections()]


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
    pool = pool_of(client._transport_for_url(httpx.URL(attempt.url)))
    if pool is None:
        return
    with pool._optional_thread_lock:  # so that the connection is not assigned to another request meanwhile
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
