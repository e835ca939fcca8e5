"""The way to the service, through a proxy if there is one: DNS, TCP and TLS."""

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import attrs
import httpcore
import httpx

from followup._http.connections import Connections
from followup._http.network import look_up
from followup._http.private_names import our_request, proxy_of
from followup.cli.doctor import Finding, fail, ok

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}

# Codes of OpenSSL (x509_vfy.h), which ``ssl`` has no names for.
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_HOST = (62, 64)
_UNTRUSTED = (2, 18, 19, 20, 21)

_OLD_PROTOCOL = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "VERSION_TOO_LOW")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")

_CONTACT = "Contact whoever runs the service."
_MOCK = "A mock on this computer needs http instead of https."


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


def check_dns(target: Target, seconds: float) -> tuple[Finding, list[str]]:
    """Look up the host that this computer connects to, and return its addresses as well."""
    host = target.first_hop
    if host.address is not None:
        return ok("DNS", f"{host.name} is an address, which needs no look-up"), [host.name]
    try:
        found = list(dict.fromkeys(look_up(host.name, host.port, seconds)))
    except httpcore.ConnectTimeout:
        return _no_address(f"no answer about {host.name} within {seconds:g} s", "Check the DNS server and the VPN."), []
    except httpcore.ConnectError as error:
        where = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY" if target.proxy else "FOLLOWUP_BASE_URL"
        advice = f"Check the spelling of the host in {where}, then the DNS server and the VPN."
        return _no_address(f"{host.name} has no address ({error})", advice), []
    return ok("DNS", f"{host.name} is {', '.join(found)}"), found


def _no_address(detail: str, advice: str) -> Finding:
    return fail("DNS", detail, advice, unreachable=True)


def check_tcp(target: Target, addresses: list[str], seconds: float) -> Finding:
    """Connect to the addresses, one after another, until one accepts."""
    port = target.first_hop.port
    failures: list[tuple[str, OSError]] = []
    for address in addresses:
        started = time.monotonic()
        try:
            with socket.create_connection((address, port), timeout=seconds):
                took = 1000 * (time.monotonic() - started)
        except OSError as error:
            failures.append((address, error))
            continue
        shown = f"connected to {_of(target)}{address} port {port} in {took:.0f} ms"
        others = "".join(f"; not to {each}, which {_reason(error, seconds)}" for each, error in failures)
        return ok("TCP", shown + others)
    where = _of(target) + ", ".join(address for address, _ in failures)
    reasons = dict.fromkeys(_reason(error, seconds) for _, error in failures)
    detail = f"{where} port {port} {' / '.join(reasons)}"
    return fail("TCP", detail, _advice_about_connection(target, failures[-1][1]), unreachable=True)


def _of(target: Target) -> str:
    return "the proxy " if target.proxy else ""


def _reason(error: OSError, seconds: float) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection"
    if isinstance(error, TimeoutError):
        return f"did not respond within {seconds:g} s"
    return f"cannot be reached ({error.strerror or type(error).__name__})"


def _advice_about_connection(target: Target, error: OSError) -> str:
    host = target.first_hop
    if target.proxy:
        instead = f", or exclude the service from it: export NO_PROXY={target.host.name}"
        return f"Check the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY{instead}"
    if isinstance(error, ConnectionRefusedError):
        start = "Start the mock (followup-mock serve), or check" if host.is_loopback else "Check"
        return f"{start} the host and the port in FOLLOWUP_BASE_URL."
    return "Check the host and the port in FOLLOWUP_BASE_URL, then the firewall, the VPN and the network."


def check_tls(target: Target, seconds: float) -> Finding:
    """Make a TLS handshake as the clients do, without sending a request."""
    if not target.is_https:
        return _check_plain(target)
    try:
        connected = _handshake(target.base_url, seconds)
    except httpx.ProxyError as error:
        detail = f"the proxy {target.first_hop.shown} opens no connection to {target.host.shown} ({error})"
        advice = "Check user name and password in HTTPS_PROXY, and whether the proxy allows this host."
        return fail("TLS", detail, advice, unreachable=True)
    except httpx.HTTPError as error:
        detail, advice = _explained(target, error, seconds)
        return fail("TLS", detail, advice, unreachable=True)
    certificate = connected.getpeercert()
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    issuer = _name_in(certificate["issuer"])
    return ok("TLS", f"{connected.version()}, certificate issued by {issuer}, valid until {until:%Y-%m-%d}")


def _check_plain(target: Target) -> Finding:
    if target.host.is_loopback:
        return ok("TLS", "not used: http to this computer")
    return fail(
        "TLS",
        f"http to {target.host.name} would send the key and the data of patients unencrypted",
        "Use https in FOLLOWUP_BASE_URL.",
    )


class _Completed(Exception):
    """Ends a request before it is sent, so that no key is."""


def _handshake(url: str, seconds: float) -> Any:
    """Make a TLS handshake through the same proxy as the requests of the clients, and return the TLS object."""
    connected = None

    def trace(event: str, info: dict[str, Any]) -> None:
        nonlocal connected
        if event.endswith("start_tls.complete"):
            connected = info["return_value"].get_extra_info("ssl_object")
        elif event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
            raise _Completed

    try:
        with our_request(), httpx.Client(timeout=seconds) as client:
            client.get(url, extensions={"trace": trace})
    except _Completed:
        return connected
    raise AssertionError("unreachable")  # pragma: no cover


def _name_in(name: Any) -> str:
    """Return the common name and the organization of a distinguished name."""
    parts = {key: value for part in name for key, value in part}
    common, organization = parts.get("commonName"), parts.get("organizationName")
    if common and organization and organization not in common:
        return f"{common} ({organization})"
    return str(common or organization or "a nameless authority")


def _explained(target: Target, error: httpx.HTTPError, seconds: float) -> tuple[str, str]:
    """Return why a handshake failed, and what to do."""
    reason = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
    if isinstance(reason, ssl.SSLCertVerificationError):
        message = reason.verify_message.removesuffix(".")
        return f"the certificate is rejected: {message}", _advice_about_certificate(reason.verify_code)
    name = (reason.reason if reason else None) or ""
    if any(each in name for each in _OLD_PROTOCOL):
        return "the server has no version of TLS that is still secure (1.2 or later)", _CONTACT
    if any(each in name for each in _NO_TLS):
        return f"{target.host.shown} does not speak TLS", f"Check the port in FOLLOWUP_BASE_URL. {_MOCK}"
    if isinstance(error, httpx.TimeoutException):
        happened = f"{target.host.shown} did not complete the handshake within {seconds:g} s"
    else:
        happened = f"{target.host.shown} ended the handshake" + (f" ({name})" if name else "")
    advice = "Check the port in FOLLOWUP_BASE_URL; a firewall may also block this host by its name."
    return happened, f"{advice} {_MOCK}" if target.host.is_loopback else advice


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _advice_about_certificate(code: int) -> str:
    if code in (_EXPIRED, _NOT_YET_VALID):
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        return f"Check the clock of this computer, which says {now}. If it is right: {_CONTACT}"
    if code in _OTHER_HOST:
        return "Check the host in FOLLOWUP_BASE_URL. If it is right, something else responds in its place."
    if code in _UNTRUSTED:
        return (
            "If your organization inspects TLS, set SSL_CERT_FILE to a file with the certificate of its authority. If "
            "not, someone intercepts the connection: do not continue."
        )
    return _CONTACT
