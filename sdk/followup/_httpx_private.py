"""Everything that the SDK uses of httpx and httpcore beyond their documented interface.

It stands in this one file; ``tests/sdk/test_httpx_private.py`` names what moved when a new version moves it, and
``pyproject.toml`` bounds the version of httpx for it.
"""

import socket
import sys
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

import httpx

from followup._call import Send
from followup._quiet import is_ours


class _Cookies(httpx.Cookies):
    """The cookies of a client as its owner knows them; during a request of ours there are none, and none are kept.

    An ``http_client`` belongs to its user, whose own requests keep their cookies. httpx offers no switch per request:
    it reads the jar when it builds a request, and fills it inside ``send``, before any event hook runs. A copy of the
    client with another jar would not do, because subclasses keep state, and close themselves when a copy is dropped.
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
    """Let requests of ours neither send nor store cookies. Done before each request: a user may set new ones."""
    if not isinstance(client._cookies, _Cookies):
        client._cookies = _Cookies(client._cookies)


def use_our_network(client: httpx.Client | httpx.AsyncClient) -> bool:
    """Let each connection of a client, direct or through a proxy, come from our network backends.

    httpx builds the transports itself: passing one would switch off the proxies of the environment.

    Returns:
        Whether they end each attempt in time: not where a test put another transport in the place of httpx's, and not
        through a proxy that speaks TLS, since httpcore reads TLS within TLS again and again until it has a record.
    """
    from followup._network import AsyncBackend, Backend  # needs httpcore, which httpx too imports as late as it can

    pools = _pools(client)
    for pool in pools:
        if pool is not None:
            ours = Backend() if isinstance(client, httpx.Client) else AsyncBackend(pool._network_backend)
            pool._network_backend = ours
    return all(pool is not None and not _has_tls_proxy(pool) for pool in pools)


def _has_tls_proxy(pool: Any) -> bool:
    proxy = getattr(pool, "_proxy_url", None)
    return proxy is not None and proxy.scheme == b"https"


def pool_of(transport: Any) -> Any:
    """The httpcore pool of a transport that httpx made; None for any other transport."""
    from httpcore import AsyncConnectionPool, ConnectionPool  # as above

    for _ in range(_MOST_WRAPPERS):
        pool = getattr(transport, "_pool", None)
        if isinstance(pool, ConnectionPool | AsyncConnectionPool):
            return pool
        # An instrumentation may have put a transport of its own around it.
        transport = getattr(transport, "_transport", None)
    return None


_MOST_WRAPPERS = 10
"""A bound, because a mock has every attribute that it is asked for."""


def _pools(client: httpx.Client | httpx.AsyncClient) -> list[Any]:
    """The pools of a client, with None for each that we do not know."""
    mounted = [each for each in client._mounts.values() if each is not None]  # None is an entry of NO_PROXY
    return [pool_of(each) for each in (client._transport, *mounted)]


def forget_unopened(client: httpx.Client) -> None:
    """Take out of the pools of a client the connections that nobody will ever open; after an attempt that failed.

    httpcore gives a request that waits a connection that is still to be opened. A request that fails at that very
    moment never opens it, and the pool would count it among its connections for ever: neither idle nor closed.
    """
    for pool in filter(None, _pools(client)):
        with pool._optional_thread_lock:
            closing = _without_unopened(pool)
        pool._close_connections(closing)


async def forget_unopened_async(client: httpx.AsyncClient) -> None:
    """The same for an asynchronous client, where requests are cancelled at any moment."""
    for pool in filter(None, _pools(client)):
        closing = _without_unopened(pool)
        if closing:
            await pool._close_connections(closing)


def _without_unopened(pool: Any) -> list[Any]:
    """Forget the unopened connections, let requests that wait have their places, and return what is to be closed."""
    held = {id(each.connection) for each in pool._requests}
    lost = [each for each in pool._connections if id(each) not in held and _is_unused(each)]
    if not lost:
        return []
    for each in lost:
        pool._connections.remove(each)
    return [*lost, *pool._assign_requests_to_connections()]


def _is_unused(connection: Any) -> bool:
    """Whether a connection was never opened, or was opened and carried no request."""
    inner = _innermost(connection)
    return inner is None or getattr(getattr(inner, "_state", None), "name", None) == "NEW"


def _innermost(connection: Any) -> Any:
    """What a connection of a pool, direct or through a proxy, speaks HTTP with; None before it is opened."""
    while hasattr(connection, "_connection"):
        connection = connection._connection
    return connection


def settle_for_asyncio() -> None:
    """Let httpcore know once that sniffio is not installed, where it is not.

    httpcore tries to import it for each lock that it makes. Each time the failing import takes a lock of the import
    system, and a child that is forked then inherits it held. None in ``sys.modules`` says that there is no such module.
    """
    try:
        import_module("sniffio")
    except ImportError:
        sys.modules["sniffio"] = None  # type: ignore[assignment]


ATTEMPT = "followup_attempt"
"""The request extension by which a request that is under way is found again; its value is the attempt's ``Send``."""


def shut_down(client: httpx.Client, attempt: Send) -> None:
    """End an attempt that another thread is waiting for, by shutting down its socket; httpcore then closes it.

    Only what httpx itself made can be ended: a transport of the user's own has no pool that we know. A connection that
    requests of the user share, as those of HTTP/2 do, is left alone: then each read of the attempt is bounded, no more.
    """
    pool = pool_of(client._transport_for_url(httpx.URL(attempt.url)))
    if pool is None:
        return
    with pool._optional_thread_lock:  # so that the connection cannot become another request's meanwhile
        for waiting in pool._requests:
            if waiting.request.extensions.get(ATTEMPT) is not attempt:
                continue
            connection = _innermost(waiting.connection)
            users = sum(each.connection is waiting.connection for each in pool._requests)
            if users == 1 and hasattr(connection, "_h11_state"):  # HTTP/1.1
                _shut(connection._network_stream.get_extra_info("socket"))


def _shut(connected: socket.socket | None) -> None:
    if connected is None:
        return  # a network backend of the user's own
    try:
        # Not SSLSocket's own method, which also pulls the TLS object from under the thread that reads.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        return  # closed meanwhile
