"""The way from a client to the service: what the requests of a client have in common, and the proxy in between."""

import ssl
from base64 import b64encode
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import attrs
import httpcore

from followup._core.call.steps import Outcome, Response, Send
from followup._core.http.network import is_loopback
from followup._core.http.proxies import proxy_for
from followup._core.results.errors import ConfigurationError
from followup._core.threads import unforked

_WITH_BODY = ("POST", "PUT", "PATCH")


class Pools(NamedTuple):
    """The classes of httpcore that connect directly, through a proxy of HTTP, and through one of SOCKS."""

    direct: Any
    http_proxy: Any
    socks_proxy: Any


SYNC: Final = Pools(httpcore.ConnectionPool, httpcore.HTTPProxy, httpcore.SOCKSProxy)
ASYNC: Final = Pools(httpcore.AsyncConnectionPool, httpcore.AsyncHTTPProxy, httpcore.AsyncSOCKSProxy)


class Route:
    """The way from a client to the service.

    Attributes:
        proxy: the proxy in between; None for a direct connection.
        handshakes: how many handshakes of TLS there are before a request, one for each end that uses it.
        certificates: the trusted certificates; None where nothing on the way uses TLS.

    Raises:
        ConfigurationError: the proxy or the certificates of the environment cannot be used.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self.proxy = proxy_for(base_url)
        self.handshakes = [parts.scheme, self.proxy.scheme if self.proxy else ""].count("https")
        self.certificates = load_certificates() if self.handshakes else None
        self._host, self._port = parts.hostname or "", parts.port
        standard_port = {"http": 80, "https": 443}[parts.scheme]
        self._origin = httpcore.Origin(parts.scheme.encode(), self._host.encode(), parts.port or standard_port)
        self._host_header = parts.netloc.removesuffix(f":{standard_port}").encode()
        self._before_path = len(f"{parts.scheme}://{parts.netloc}")
        # A proxy of HTTP gets the whole of an http URL, as if it were the service (RFC 9112, section 3.2.2).
        self._proxy_of_forwarded: httpcore.Origin | None = None
        self._for_proxy: list[tuple[bytes, bytes]] = []
        if self.proxy is not None and not self.proxy.is_socks and parts.scheme == "http":
            self._proxy_of_forwarded = httpcore.URL(str(self.proxy)).origin
            if self.proxy.raw_auth is not None:
                self._for_proxy = [(b"Proxy-Authorization", b"Basic " + b64encode(b":".join(self.proxy.raw_auth)))]

    def pool(self, pools: Pools, backend: Any) -> Any:
        """Return a pool of httpcore with one connection, which the backend opens."""
        options: dict[str, Any] = {"ssl_context": self.certificates, "network_backend": backend, "max_connections": 1}
        if self.proxy is None:
            return pools.direct(**options)
        options |= {"proxy_url": str(self.proxy), "proxy_auth": self.proxy.raw_auth}
        if self.proxy.is_socks:
            return pools.socks_proxy(**options)
        if self.proxy.scheme == "https":
            options["proxy_ssl_context"] = self.certificates
        return pools.http_proxy(**options)

    def connection(self, pools: Pools, backend: Any) -> Any:
        """Return a connection of httpcore, which the backend opens."""
        if self._proxy_of_forwarded is not None:
            direct = pools.direct(ssl_context=self.certificates, network_backend=backend)
            return direct.create_connection(self._proxy_of_forwarded)
        return self.pool(pools, backend).create_connection(self._origin)

    def request(self, step: Send, *, for_lane: bool) -> httpcore.Request:
        """Return the request of an attempt: for a connection of ours, or for a pool.

        Raises:
            UnicodeError: a header is not ASCII.
        """
        headers = [(b"Host", self._host_header)]
        headers += [(name.encode("ascii"), value.encode("ascii")) for name, value in step.headers.items()]
        if step.content is not None or step.method in _WITH_BODY:
            headers.append((b"Content-Length", b"%d" % len(step.content or b"")))
        target = step.url[self._before_path :].encode("ascii")
        url = httpcore.URL(scheme=self._origin.scheme, host=self._origin.host, port=self._port, target=target)
        timeouts = step.timeouts or {}
        if for_lane:
            if self._proxy_of_forwarded is not None:
                proxy = self._proxy_of_forwarded
                url = httpcore.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target=step.url.encode())
                headers += self._for_proxy
            if step.seconds is not None:  # the limit of the lane covers the other parts
                timeouts = {"connect": timeouts.get("connect")}
        return httpcore.Request(
            step.method, url, headers=headers, content=step.content, extensions={"timeout": dict(timeouts)}
        )

    def with_note(self, outcome: Outcome) -> Outcome:
        """Name the proxy in the error of a request that it may have stopped."""
        if self.proxy is None:
            return outcome
        note, is_here = f"The request went through the proxy {self.proxy}", is_loopback(self._host)
        if is_here:  # proxies of the environment do not reach this machine
            note += f": set NO_PROXY={self._host} if it should not"
        if not isinstance(outcome, Response):
            return attrs.evolve(outcome, detail=f"{outcome.detail}. {note}" if outcome.detail else note)
        comes_from_service = not is_here or outcome.is_success or outcome.content[:1] == b"{"
        return outcome if comes_from_service else attrs.evolve(outcome, note=note)


def load_certificates() -> ssl.SSLContext:
    """Return the trusted certificates: those of httpx, or of SSL_CERT_FILE or SSL_CERT_DIR.

    Raises:
        ConfigurationError: they cannot be loaded.
    """
    import httpx

    try:
        with unforked():
            return httpx.create_ssl_context()
    except OSError as error:
        raise ConfigurationError(
            f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded: {error.strerror}"
        ) from None
