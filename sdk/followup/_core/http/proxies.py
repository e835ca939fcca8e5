"""The proxy of the environment for one URL: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

import importlib.util
import ipaddress
import os
import re
from contextlib import suppress
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs

from followup._core.http.network import is_address
from followup._core.results.errors import ConfigurationError

_SOCKS = ("socks5", "socks5h")
_PORTS = {"http": 80, "https": 443}


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
    parts, settings = urlsplit(url), getproxies()
    found = next((each for each in (parts.scheme, "all") if settings.get(each)), None)
    if found is None or _is_excluded(parts, settings.get("no")):
        return None
    return Proxy.from_text(settings[found], _variable(f"{found}_proxy"))


def _variable(name: str) -> str:
    return next((each for each in (name, name.upper()) if os.environ.get(each)), "the settings of this computer")


def _is_excluded(url: SplitResult, no_proxy: str | None) -> bool:
    host = (url.hostname or "").rstrip(".")
    if no_proxy is None:
        return bool(proxy_bypass(host))  # what macOS and Windows exclude
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
    name = name.strip("*.")
    return name != "" and f".{host}".endswith(f".{name}")
