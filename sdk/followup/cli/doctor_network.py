"""What the checks of ``doctor`` find, and the first of them: the environment, DNS and TCP, or a proxy, and TLS."""

import os
import re
import socket
from collections.abc import Iterator
from typing import Literal
from urllib.parse import SplitResult, urlsplit

import attrs
import httpcore

from followup import ConfigurationError
from followup._core.call.options import checked_base_url, checked_key
from followup._core.http.network import is_loopback, look_up
from followup._core.plain import QUOTES
from followup.webhooks import SECRET_VARIABLE

Outcome = Literal["OK", "WARN", "FAIL"]


@attrs.frozen
class Finding:
    """The result of a check.

    Attributes:
        detail: what the check found, without a final full stop.
        advice: what to do about it; None if there is nothing to do.
        ends: why no later check can be made; empty if they can.
        unreachable: whether no service can be reached because of it.
    """

    check: str
    outcome: Outcome
    detail: str
    advice: str | None = None
    ends: str = ""
    unreachable: bool = False


def ok(check: str, detail: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, "OK", detail)


def fail(check: str, detail: str, advice: str, *, ends: str = "", unreachable: bool = False) -> Finding:
    """Return a finding that must be fixed."""
    return Finding(check, "FAIL", detail, advice, ends, unreachable)


BASE_URL = "FOLLOWUP_BASE_URL"
API_KEY = "FOLLOWUP_API_KEY"

# The first that matches is reported. The pattern has the name, since a mistake may be one of a certain variable.
_MISTAKES = (
    (r"\w+=\s*", "is not set", "Set it. A file such as .env has no effect until your shell or program loads it."),
    (rf"\w+=([{QUOTES}].*|.*[{QUOTES}])", "has quotes in its value", "Remove them; some loaders of .env keep them."),
    (r"\w+=(\s.*|.*\s)", "begins or ends with a space or a line break", "Remove it; .env may have ends of Windows."),
    (r"\w+=[<$].*", "is a placeholder", "Replace it by the value."),
    (rf"{BASE_URL}=(?!.*://).*", "has no scheme", "Begin with https://, such as https://api.example.com."),
    (rf"{BASE_URL}=.*/v1(/.*)?", "contains /v1, which is appended to it", "End the value before /v1."),
    (rf"{API_KEY}=(?i:bearer).*", 'begins with "Bearer"', "Set it to the key alone."),
    (rf"{API_KEY}=whsec_.*", "is the secret of a webhook endpoint (whsec_...)", f"Set {SECRET_VARIABLE} to it."),
    (rf"{SECRET_VARIABLE}=(?!whsec_[^,]*(,whsec_[^,]*)*$).*", "is no secret of an endpoint", "Set one (whsec_...)."),
)
"""Patterns of variables that nobody wanted, what is wrong with each, and what to do about it."""


def check_variable(name: str) -> Finding:
    """Check an environment variable.

    The key and the secret are never shown, and a base URL only if it is valid: it may contain a password or a key.
    """
    value = os.environ.get(name, "")
    for pattern, problem, advice in _MISTAKES:
        if re.fullmatch(pattern, f"{name}={value}", re.DOTALL):
            return fail("environment", f"{name} {problem}", advice)
    try:
        {API_KEY: checked_key, BASE_URL: checked_base_url}.get(name, str)(value)
    except ConfigurationError as error:
        return fail("environment", f"{name} is invalid", f"It must be {str(error).partition(' must be ')[2]}.")
    return ok("environment", f"{name} is {value if name == BASE_URL else 'set (its value is not shown)'}")


def check_way(base_url: str, proxy: str | None, seconds: float) -> Iterator[Finding]:
    """Check the connection to the service, or to the proxy.

    Args:
        base_url: the base URL.
        proxy: the URL of the proxy in between; None for a direct connection.
        seconds: time limit of each step.
    """
    host, hop = urlsplit(base_url), urlsplit(proxy or base_url)
    advice = f"Check the host and the port in {BASE_URL}, then the DNS server, the firewall and the VPN."
    if proxy is not None:
        name = host.hostname or ""
        advice = f"Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or exclude the service: export NO_PROXY={name}"
        through = f"requests to {name} go through the proxy {hop.netloc}"
        if is_loopback(name) and not is_loopback(hop.hostname or ""):
            yield fail("environment", f"{through}, but {name} is this computer", f"Set NO_PROXY={name}.")
        else:
            yield ok("environment", through)
    elif is_loopback(host.hostname or ""):
        advice = f"Start the mock (followup-mock serve), or check the host and the port in {BASE_URL}."
    yield from _check_connection(hop, seconds, advice)


_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


def _check_connection(hop: SplitResult, seconds: float, advice: str) -> Iterator[Finding]:
    """Look up a host, and connect to its addresses one after another, until one accepts."""
    name, port = hop.hostname or "", hop.port or _PORTS[hop.scheme]
    try:
        addresses = list(dict.fromkeys(look_up(name, port, seconds)))
    except (httpcore.ConnectTimeout, httpcore.ConnectError) as error:
        detail = f"{name} has no address ({error})"
        yield fail("DNS", detail, advice, ends="the host has no address", unreachable=True)
        return
    yield ok("DNS", f"{name} is {', '.join(addresses)}")
    reasons: dict[str, None] = {}
    # One address at a time, because with the name Python would report the last that refused, and no other.
    for address in addresses:
        try:
            with socket.create_connection((address, port), timeout=seconds):
                yield ok("TCP", f"connected to {address} port {port}")
                return
        except OSError as error:
            reasons[error.strerror or str(error)] = None
    detail = f"{', '.join(addresses)} port {port}: {' / '.join(reasons)}"
    yield fail("TCP", detail, advice, ends="there is no connection", unreachable=True)


def check_encryption(base_url: str) -> Finding:
    """Check that the key and the data of patients are sent encrypted, or stay on this computer."""
    url = urlsplit(base_url)
    if url.scheme == "https":
        return ok("TLS", "the certificate is valid")
    if is_loopback(url.hostname or ""):
        return ok("TLS", "not used: http to this computer")
    detail = f"http to {url.hostname} would send the key and the data of patients unencrypted"
    return fail("TLS", detail, f"Use https in {BASE_URL}.", ends="the connection is not encrypted")


def no_handshake(base_url: str, error: Exception) -> Finding:
    """Return the finding for a connection that TCP accepted, and over which nothing could be sent."""
    detail = f"no secure connection to {urlsplit(base_url).netloc}: {error}"
    advice = f"Check the host and the port in {BASE_URL}. A firewall may block it; a mock needs http."
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        advice = (
            f"Check the clock of this computer and the host in {BASE_URL}. If your organization inspects TLS, set "
            "SSL_CERT_FILE to a file with the certificate of its authority. If not, someone may intercept the "
            "connection: do not continue."
        )
    return fail("TLS", detail, advice, ends="there is no secure connection", unreachable=True)
