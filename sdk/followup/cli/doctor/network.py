"""The environment variables, and the way to the service, through a proxy if there is one: DNS, TCP and TLS."""

import ipaddress
import os
import re
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

from followup import NOT_GIVEN, ConfigurationError
from followup._annotations import SERVICE_VERSION
from followup._call.options import DEFAULT_MAX_RETRIES, options_from
from followup._http.connections import Connections
from followup._http.network import look_up
from followup._http.private_names import our_request, proxy_of
from followup._telemetry import VARIABLE as TELEMETRY
from followup._telemetry import is_wanted
from followup.cli.doctor import Finding, fail, ok

BASE_URL = "FOLLOWUP_BASE_URL"
API_KEY = "FOLLOWUP_API_KEY"
SECRET = "FOLLOWUP_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable

_QUOTES = "\"'`“”‘’«»"
_MISTAKES = (
    (
        rf"[{_QUOTES}].*|.*[{_QUOTES}]",
        "has quotes in its value",
        "Remove them: many loaders of .env files keep quotes.",
    ),
    (r".*[\r\n].*", "contains a line break", "Remove it: a file may have the line ends of Windows (CRLF)."),
    (r"\s.*|.*\s", "begins or ends with a space", "Remove it."),
    (r"[<$].*", "is a placeholder", "Replace it by the value."),
)
"""Patterns of values that nobody wanted, what is wrong with each, and what to do about it."""

_MISTAKES_IN = {
    BASE_URL: (
        (r"(?!.*://).*", "has no scheme", "Begin with https://, such as https://api.example.com."),
        (r".*/v1(/.*)?", "contains /v1, which is appended to it", "End the value before /v1."),
    ),
    API_KEY: (
        (r"(?i:bearer).*", 'begins with "Bearer"', "Set it to the key alone."),
        (r"whsec_.*", "is the secret of a webhook endpoint (whsec_...), not an API key", f"Set {SECRET} to it."),
    ),
    SECRET: (
        (
            r"(?!whsec_[^,]*(,whsec_[^,]*)*$).*",
            "does not begin with whsec_, so it is not the secret of an endpoint",
            "Set it to the secret that the service returned when the endpoint was created.",
        ),
    ),
}


def check_variables() -> list[Finding]:
    """Check the variables: the base URL, the API key, and those that are optional and set.

    The key and the secret are never shown, and a base URL only if it is valid: it may contain a password or a key.
    """
    found = [_check_variable(each) for each in (BASE_URL, API_KEY, SECRET) if each != SECRET or os.environ.get(each)]
    try:
        is_wanted()
    except ConfigurationError:
        found.append(fail("environment", f"{TELEMETRY} is invalid", "Unset it, or set it to on or off."))
    return found


def _check_variable(name: str) -> Finding:
    value = os.environ.get(name)
    if value is None or not value.strip():
        problem = f"{name} is {'not set' if value is None else 'empty'}"
        advice = f"Set it: export {name}=... A file such as .env has no effect until your shell or program loads it."
        return fail("environment", problem, advice)
    for pattern, problem, advice in (*_MISTAKES, *_MISTAKES_IN[name]):
        if re.fullmatch(pattern, value, re.DOTALL):
            return fail("environment", f"{name} {problem}", advice)
    key, url = value if name == API_KEY else "api-key", value if name == BASE_URL else "https://api.example.com"
    try:
        options_from(key, url, SERVICE_VERSION, NOT_GIVEN, DEFAULT_MAX_RETRIES, None, None, own_client=False)
    except ConfigurationError as error:
        return fail("environment", f"{name} is invalid", f"It must be {str(error).partition(' must be ')[2]}.")
    return ok("environment", f"{name} is {value if name == BASE_URL else 'set (its value is not shown)'}")


_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@attrs.frozen
class Host:
    """A host and a port to connect to."""

    name: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Host":
        """Return the host of a URL."""
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme])

    @property
    def shown(self) -> str:
        """The host and the port as in a URL."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this computer."""
        if self.address is None:
            return self.name == "localhost" or self.name.endswith(".localhost")
        return self.address.is_loopback

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
    host: Host
    proxy: Host | None

    @classmethod
    def of(cls, base_url: str, connections: Connections) -> "Target":
        """Return the target of the requests of a client.

        Raises:
            ConfigurationError: the URL of the proxy is invalid.
        """
        proxy = proxy_of(connections.client(), base_url)
        return cls(base_url, Host.of(base_url), None if proxy is None else Host.of(proxy))

    @property
    def is_https(self) -> bool:
        """Whether the connection is encrypted."""
        return self.base_url.startswith("https:")

    @property
    def first_hop(self) -> Host:
        """The host that this computer connects to."""
        return self.proxy or self.host

    @property
    def through(self) -> str:
        """The words that end a sentence about a connection; empty for a direct one."""
        return f" through the proxy {self.proxy.shown}" if self.proxy else ""

    @property
    def variables(self) -> str:
        """The variables that name the first hop."""
        return "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY" if self.proxy else BASE_URL


def check_proxy(target: Target) -> Finding | None:
    """Check which proxy is in effect. None if there is none."""
    if target.proxy is None:
        return None
    names = (f"{target.base_url.partition(':')[0]}_proxy", "all_proxy")
    found = [each for name in names for each in (name, name.upper()) if os.environ.get(each)]
    variable = found[0] if found else "settings of the system"
    through = f"requests to {target.host.name} go through the proxy {target.proxy.shown} ({variable})"
    if target.host.is_loopback and not target.proxy.is_loopback:
        advice = f"Add it to NO_PROXY: export NO_PROXY={target.host.name}"
        return fail("environment", f"{through}, but {target.host.name} is this computer", advice)
    return ok("environment", through)


def check_dns(target: Target, seconds: float) -> tuple[Finding, list[str]]:
    """Look up the host that this computer connects to, and return its addresses as well."""
    host = target.first_hop
    if host.address is not None:
        return ok("DNS", f"{host.name} is an address, which needs no look-up"), [host.name]
    try:
        found = list(dict.fromkeys(look_up(host.name, host.port, seconds)))
    except (httpcore.ConnectTimeout, httpcore.ConnectError) as error:
        is_late = isinstance(error, httpcore.ConnectTimeout)
        late = f"no answer about {host.name} within {seconds:g} s"
        advice = f"Check the spelling of the host in {target.variables}, then the DNS server and the VPN."
        detail = late if is_late else f"{host.name} has no address ({error})"
        return fail("DNS", detail, advice, ends="the host has no address", unreachable=True), []
    return ok("DNS", f"{host.name} is {', '.join(found)}"), found


def check_tcp(target: Target, addresses: list[str], seconds: float) -> Finding:
    """Connect to the addresses, one after another, until one accepts."""
    port = target.first_hop.port
    of_proxy = "the proxy " if target.proxy else ""
    reasons: dict[str, None] = {}
    for address in addresses:
        started = time.monotonic()
        try:
            with socket.create_connection((address, port), timeout=seconds):
                took = 1000 * (time.monotonic() - started)
                return ok("TCP", f"connected to {of_proxy}{address} port {port} in {took:.0f} ms")
        except ConnectionRefusedError:
            reasons["refused the connection"] = None
        except TimeoutError:
            reasons[f"did not respond within {seconds:g} s"] = None
        except OSError as error:
            reasons[f"cannot be reached ({error.strerror or type(error).__name__})"] = None
    advice = f"Check the host and the port in {target.variables}, then the firewall, the VPN and the network."
    if target.proxy:
        advice += f" Or exclude the service from the proxy: export NO_PROXY={target.host.name}"
    elif target.host.is_loopback:
        advice = f"Start the mock (followup-mock serve), or check the host and the port in {BASE_URL}."
    detail = f"{of_proxy}{', '.join(addresses)} port {port} {' / '.join(reasons)}"
    return fail("TCP", detail, advice, ends="there is no connection", unreachable=True)


def check_tls(target: Target, seconds: float) -> Finding:
    """Make a TLS handshake as the clients do, without sending a request."""
    if not target.is_https and target.host.is_loopback:
        return ok("TLS", "not used: http to this computer")
    if not target.is_https:
        detail = f"http to {target.host.name} would send the key and the data of patients unencrypted"
        return fail("TLS", detail, f"Use https in {BASE_URL}.", ends="the connection is not encrypted")
    try:
        connected = _handshake(target.base_url, seconds)
    except httpx.HTTPError as error:
        detail, advice = _explained(target, error, seconds)
        return fail("TLS", detail, advice, ends="there is no secure connection", unreachable=True)
    certificate = connected.getpeercert()
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    names = {key: value for part in certificate["issuer"] for key, value in part}
    issuer = names.get("commonName") or names.get("organizationName")
    return ok("TLS", f"{connected.version()}, certificate issued by {issuer}, valid until {until:%Y-%m-%d}")


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


_CONTACT = "Contact whoever runs the service."
_CLOCK = f"Check the clock of this computer. If it is right: {_CONTACT}"
_OTHER_HOST = f"Check the host in {BASE_URL}. If it is right, something else responds in its place."
_UNTRUSTED = (
    "If your organization inspects TLS, set SSL_CERT_FILE to a file with the certificate of its authority. If not, "
    "someone intercepts the connection: do not continue."
)

# Codes of OpenSSL (x509_vfy.h), which ``ssl`` has no names for.
_ADVICE = {9: _CLOCK, 10: _CLOCK, 62: _OTHER_HOST, 64: _OTHER_HOST, **dict.fromkeys((2, 18, 19, 20, 21), _UNTRUSTED)}

_REASONS = {
    "UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|VERSION_TOO_LOW": "has no version of TLS that is still secure",
    "WRONG_VERSION_NUMBER|HTTP_REQUEST|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG": "does not speak TLS",
}
"""What the reasons of OpenSSL say about a server."""


def _explained(target: Target, error: httpx.HTTPError, seconds: float) -> tuple[str, str]:
    """Return why a handshake failed, and what to do."""
    if isinstance(error, httpx.ProxyError):
        detail = f"the proxy {target.first_hop.shown} opens no connection to {target.host.shown} ({error})"
        return detail, "Check user name and password in HTTPS_PROXY, and whether the proxy allows this host."
    reason = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
    if isinstance(reason, ssl.SSLCertVerificationError):
        message = reason.verify_message.removesuffix(".")
        return f"the certificate is rejected: {message}", _ADVICE.get(reason.verify_code, _CONTACT)
    name = (reason.reason if reason else None) or ""
    happened = next((text for names, text in _REASONS.items() if re.search(names, name)), None)
    if happened is None and isinstance(error, httpx.TimeoutException):
        happened = f"did not complete the handshake within {seconds:g} s"
    advice = f"Check the port in {BASE_URL}; a firewall may also block this host by its name."
    if target.host.is_loopback:
        advice += " A mock on this computer needs http instead of https."
    return f"{target.host.shown} {happened or f'ended the handshake ({name or type(error).__name__})'}", advice


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
