"""The way from a client to the service: what its requests have in common, and the proxy of the environment in between.

The variables are HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.
"""

import importlib.util
import ipaddress
import os
import re
import ssl
from base64 import b64encode
from contextlib import suppress
from typing import Any, Self
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs
import httpcore

from followup._core.call.steps import Outcome, Response, Send
from followup._core.errors import ConfigurationError
from followup._core.http.network import is_loopback
from followup._core.threads import is_address, unforked

_SOCKS = ("socks5", "socks5h")
_PORTS = {"http": 80, "https": 443}
_WITH_BODY = ("POST", "PUT", "PATCH")


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
        self._host = parts.hostname or ""
        standard_port = _PORTS[parts.scheme]
        self._origin = httpcore.Origin(parts.scheme.encode(), self._host.encode(), parts.port or standard_port)
        self._before_path = len(f"{parts.scheme}://{parts.netloc}")
        # A proxy of HTTP gets the whole of an http URL, as if it were the service (RFC 9112, section 3.2.2). httpcore's
        # own class for that calls the method of another connection within, which instrumentations may have wrapped.
        self._forwarder: httpcore.Origin | None = None
        # Without the standard port, as browsers and httpx send it.
        self._headers = [(b"Host", parts.netloc.removesuffix(f":{standard_port}").encode())]
        if self.proxy is not None and not self.proxy.is_socks and parts.scheme == "http":
            self._forwarder = httpcore.URL(str(self.proxy)).origin
            if self.proxy.raw_auth is not None:
                self._headers.append((b"Proxy-Authorization", b"Basic " + b64encode(b":".join(self.proxy.raw_auth))))

    def connection(self, prefix: str, backend: Any) -> Any:
        """Return a connection of httpcore, which the backend opens; the prefix is that of its classes' names."""
        options: dict[str, Any] = {"ssl_context": self.certificates, "network_backend": backend}
        # The pool is used for its choice of a class alone. It never sees a request, so it keeps no connection.
        if self.proxy is None or self._forwarder is not None:
            pool = getattr(httpcore, f"{prefix}ConnectionPool")
            return pool(**options).create_connection(self._forwarder or self._origin)
        options |= {"proxy_url": str(self.proxy), "proxy_auth": self.proxy.raw_auth}
        if self.proxy.scheme == "https":
            options["proxy_ssl_context"] = self.certificates
        pool = getattr(httpcore, prefix + ("SOCKSProxy" if self.proxy.is_socks else "HTTPProxy"))
        return pool(**options).create_connection(self._origin)

    def request(self, step: Send) -> httpcore.Request:
        """Return the request of an attempt."""
        # ASCII: key, version and program are checked when a client is created, idempotency keys in each call, and a
        # trace context has no other characters (W3C Trace Context, sections 3.2 and 3.3).
        headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in step.headers.items()]
        # A POST without a body has a length too, which some servers ask for with a 411 (RFC 9110, section 8.6).
        if step.content is not None or step.method in _WITH_BODY:
            headers.append((b"Content-Length", b"%d" % len(step.content or b"")))
        end = self._forwarder or self._origin
        target = step.url if self._forwarder else step.url[self._before_path :]
        timeouts = step.timeouts or {}
        if step.seconds is not None:  # the limit of the lane covers the other parts
            timeouts = {"connect": timeouts.get("connect")}
        return httpcore.Request(
            step.method,
            httpcore.URL(scheme=end.scheme, host=end.host, port=end.port, target=target.encode("ascii")),
            headers=self._headers + headers,
            content=step.content,
            extensions={"timeout": dict(timeouts)},
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

    try:  # certifi's, or those of the variables; loading takes longer than a call, so a client does it once
        with unforked():
            return httpx.create_ssl_context()
    except OSError as error:
        raise ConfigurationError(
            f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded: {error.strerror}"
        ) from None


@attrs.frozen
class Proxy:
    """A proxy. Its text is its URL without credentials."""

    scheme: str
    host: str
    port: int | None
    auth: tuple[str, str] | None = attrs.field(default=None, repr=False)

    @property
    def raw_auth(self) -> tuple[bytes, bytes] | None:
        """User name and password, as they are sent."""
        return None if self.auth is None else (self.auth[0].encode(), self.auth[1].encode())

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS, and not HTTP."""
        return self.scheme in _SOCKS

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port else "")

    @classmethod
    def from_text(cls, text: str, variable: str) -> Self:
        """Read the value of a variable.

        Raises:
            ConfigurationError: it cannot be used. The message names the variable, and does not show its password.
        """
        problem = f"the proxy in {variable} cannot be used"
        parts, host, port = urlsplit(""), "", None
        with suppress(ValueError):  # UnicodeError is one too
            parts = urlsplit(text if "://" in text else f"http://{text}")
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        if not host or parts.scheme not in (*_PORTS, *_SOCKS):
            raise ConfigurationError(f"{problem}: it must be a URL such as http://proxy.example:3128")
        if parts.scheme in _SOCKS and importlib.util.find_spec("socksio") is None:
            raise ConfigurationError(f"{problem}: SOCKS needs another package; install httpx[socks]")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(parts.scheme, host, port, (user, password) if user or password else None)


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy for requests to a URL; None for a direct connection.

    The operating system's own settings count too where there are any (macOS, Windows).

    Raises:
        ConfigurationError: the variable for this URL is invalid. All others are ignored.
    """
    # It prefers names in lower case. In CGI it ignores HTTP_PROXY, which a request's header Proxy would set there.
    parts, settings = urlsplit(url), getproxies()
    found = next((each for each in (parts.scheme, "all") if settings.get(each)), None)
    if found is None or _is_excluded(parts, settings.get("no")):
        return None
    names = (f"{found}_proxy", f"{found}_proxy".upper())
    variable = next((each for each in names if os.environ.get(each)), "the settings of this computer")
    return Proxy.from_text(settings[found], variable)


def _is_excluded(url: SplitResult, no_proxy: str | None) -> bool:
    host = (url.hostname or "").rstrip(".")
    if no_proxy is None:  # then the standard library looks at what macOS and Windows exclude
        return bool(proxy_bypass(host))
    return any(_excludes(entry, url, host) for entry in re.split(r"[,\s]+", no_proxy.lower()))


def _excludes(entry: str, url: SplitResult, host: str) -> bool:
    """Return whether an entry of NO_PROXY covers a host. One that cannot be read covers none.

    An entry is ``*``, a name with its subdomains, an address or a network, and may have a port.
    """
    if entry == "*":
        return True
    scheme, _, name = entry.rpartition("://")
    port = ""
    if name.count(":") == 1 or "]:" in name:  # any other colon belongs to an IPv6 address
        name, _, port = name.rpartition(":")
    if scheme not in ("", "all", url.scheme) or port not in ("", str(url.port or _PORTS[url.scheme])):
        return False
    name = name.replace("[", "").replace("]", "")
    if is_address(host):
        with suppress(ValueError):
            return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
        return False
    # As with curl, `.example` includes `example` itself; `*.example` is what many write for it.
    name = name.strip("*.")
    return name != "" and f".{host}".endswith(f".{name}")
