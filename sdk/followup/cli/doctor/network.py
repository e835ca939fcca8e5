"""The environment variables, and the way to the service, through a proxy if there is one: DNS, TCP and TLS."""

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

_SECRET_PREFIX = "whsec_"  # noqa: S105
_QUOTES = "\"'`“”‘’«»"
_VALID_URL = "https://api.example.com"
_VALID_KEY = "api-key"


def check_base_url() -> Finding:
    """Check ``FOLLOWUP_BASE_URL``. An invalid value is not shown, because it may contain a password or a key."""
    value = os.environ.get(BASE_URL)
    if value is None or not value.strip():
        return _unset(BASE_URL, value)
    if "://" not in value and "://" in os.environ.get(API_KEY, ""):
        return fail("environment", f"{BASE_URL} and {API_KEY} are swapped", "Exchange their values.")
    found = _copied_badly(BASE_URL, value) or _url_problem(value)
    return found or ok("environment", f"{BASE_URL} is {value}")


def check_key_variable() -> Finding:
    """Check ``FOLLOWUP_API_KEY``. Its value is never shown."""
    value = os.environ.get(API_KEY)
    if value is None or not value.strip():
        return _unset(API_KEY, value)
    found = _copied_badly(API_KEY, value) or _key_problem(value)
    return found or ok("environment", f"{API_KEY} is set (its value is not shown)")


def check_secret() -> Finding | None:
    """Check ``FOLLOWUP_WEBHOOK_SECRET``, or secrets separated by commas. None if it is not set, as it is optional."""
    value = os.environ.get(SECRET)
    if not value:
        return None
    if found := _copied_badly(SECRET, value):
        return found
    if not all(each.startswith(_SECRET_PREFIX) for each in value.split(",")):
        return fail(
            "environment",
            f"{SECRET} does not begin with {_SECRET_PREFIX}, so it is not the secret of an endpoint",
            "Set it to the secret that the service returned when the endpoint was created.",
        )
    return ok("environment", f"{SECRET} is set (its value is not shown)")


def check_telemetry() -> Finding | None:
    """Check ``FOLLOWUP_TELEMETRY``. None if it is valid, as it is optional."""
    try:
        is_wanted()
    except ConfigurationError:
        return fail("environment", f"{TELEMETRY} is invalid", "Unset it, or set it to on or off.")
    return None


def _unset(name: str, value: str | None) -> Finding:
    return fail(
        "environment",
        f"{name} is {'not set' if value is None else 'empty'}",
        f"Set it: export {name}=... A file such as .env has no effect until your shell or program loads it.",
    )


def _copied_badly(name: str, value: str) -> Finding | None:
    """Return the finding for a value with quotes, spaces or line breaks, or for a placeholder."""
    if value[0] in _QUOTES or value[-1] in _QUOTES:
        problem, advice = "has quotes in its value", "Remove them: docker and many loaders of .env files keep quotes."
    elif any(each in "\r\n" for each in value):
        problem, advice = "contains a line break", "Remove it: a file may have the line ends of Windows (CRLF)."
    elif value.strip() != value:
        problem, advice = "begins or ends with a space", "Remove it."
    elif value[0] in "<$":
        problem, advice = "is a placeholder", "Replace it by the value."
    else:
        return None
    return fail("environment", f"{name} {problem}", advice)


def _url_problem(value: str) -> Finding | None:
    if "://" not in value:
        return fail("environment", f"{BASE_URL} has no scheme", f"Begin with https://, such as {_VALID_URL}.")
    if "/v1/" in f"{value}/":
        return fail("environment", f"{BASE_URL} contains /v1, which is appended to it", "End the value before /v1.")
    return _rejected(BASE_URL, base_url=value)


def _key_problem(value: str) -> Finding | None:
    if value.lower().startswith("bearer"):
        return fail("environment", f'{API_KEY} begins with "Bearer"', "Set it to the key alone.")
    if value.startswith(_SECRET_PREFIX):
        return fail(
            "environment",
            f"{API_KEY} is the secret of a webhook endpoint ({_SECRET_PREFIX}...), not an API key",
            f"Set it to an API key; the secret belongs into {SECRET}.",
        )
    return _rejected(API_KEY, api_key=value)


def _rejected(name: str, *, base_url: str = _VALID_URL, api_key: str = _VALID_KEY) -> Finding | None:
    """Return the finding for a value that the clients reject."""
    try:
        options_from(api_key, base_url, SERVICE_VERSION, NOT_GIVEN, DEFAULT_MAX_RETRIES, None, None, own_client=False)
    except ConfigurationError as error:
        _, _, expected = str(error).partition(" must be ")
        return fail("environment", f"{name} is invalid", f"It must be {expected}.")
    return None


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
