"""Where the requests go: to the host of the base URL, or to a proxy in front of it."""

import ipaddress
import os
from urllib.parse import urlsplit

import attrs

from followup._connections import Connections
from followup._errors import ConfigurationError
from followup._httpx_private import proxy_of
from followup.cli.doctor.findings import Finding, fail, ok

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@attrs.frozen
class Host:
    """A host and a port to connect to."""

    name: str
    port: int

    @property
    def shown(self) -> str:
        """The host and the port as in a URL."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this computer."""
        if self.name == "localhost" or self.name.endswith(".localhost"):
            return True
        address = self.address
        return address is not None and address.is_loopback

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The address that the name is; None if it is a name."""
        try:
            return ipaddress.ip_address(self.name)
        except ValueError:
            return None


@attrs.frozen
class Target:
    """The target of the requests.

    Attributes:
        proxy: the proxy in between; None for a direct connection.
    """

    base_url: str
    is_https: bool
    host: Host
    proxy: Host | None

    @property
    def first_hop(self) -> Host:
        """The host that this computer connects to."""
        return self.proxy or self.host

    @property
    def through(self) -> str:
        """The words that end a sentence about a connection; empty for a direct one."""
        return f" through the proxy {self.proxy.shown}" if self.proxy else ""


def target_of(base_url: str, connections: Connections) -> Target:
    """Return the target of the requests of a client.

    Raises:
        ConfigurationError: the URL of the proxy is invalid.
    """
    parts = urlsplit(base_url)
    proxy = proxy_of(connections.client(), base_url)
    return Target(
        base_url=base_url,
        is_https=parts.scheme == "https",
        host=Host(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]),
        proxy=None if proxy is None else _host_of(proxy),
    )


def _host_of(url: str) -> Host:
    parts = urlsplit(url)
    return Host(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme])


def connect_as_the_sdk_does(base_url: str) -> Connections:
    """Return connections with the certificates and the proxy of the environment.

    Raises:
        ConfigurationError: the certificates cannot be loaded.
    """
    return Connections(tls=base_url.startswith("https:"))


def unusable(error: ConfigurationError) -> Finding:
    """Return the finding for certificates or a proxy that cannot be used."""
    return fail("environment", str(error), "Correct or unset the variable.")


def check_proxy(target: Target) -> Finding | None:
    """Check which proxy is in effect. None if there is none, and none was excluded."""
    names = _proxy_variables(target)
    if target.proxy is None:
        if not names:
            return None
        return ok("environment", f"no proxy: NO_PROXY excludes {target.host.name} from {names[0]}")
    variable = names[0] if names else "settings of the system"
    through = f"requests to {target.host.name} go through the proxy {target.proxy.shown} ({variable})"
    if target.host.is_loopback and not target.proxy.is_loopback:
        return fail(
            "environment",
            f"{through}, but {target.host.name} is this computer",
            f"Add it to NO_PROXY: export NO_PROXY={target.host.name}",
        )
    return ok("environment", through)


def _proxy_variables(target: Target) -> list[str]:
    names = ("https_proxy" if target.is_https else "http_proxy", "all_proxy")
    return [each for name in names for each in (name, name.upper()) if os.environ.get(each)]
