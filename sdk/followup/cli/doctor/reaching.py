"""DNS and TCP: whether the host has an address, and whether one of its addresses accepts connections."""

import socket
import time

import httpcore

from followup._network import look_up
from followup.cli.doctor.findings import Finding, fail, ok
from followup.cli.doctor.targets import Target


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
    return fail("TCP", detail, _advice(target, failures[-1][1]), unreachable=True)


def _of(target: Target) -> str:
    return "the proxy " if target.proxy else ""


def _reason(error: OSError, seconds: float) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection"
    if isinstance(error, TimeoutError):
        return f"did not respond within {seconds:g} s"
    return f"cannot be reached ({error.strerror or type(error).__name__})"


def _advice(target: Target, error: OSError) -> str:
    host = target.first_hop
    if target.proxy:
        instead = f", or exclude the service from it: export NO_PROXY={target.host.name}"
        return f"Check the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY{instead}"
    if isinstance(error, ConnectionRefusedError):
        start = "Start the mock (followup-mock serve), or check" if host.is_loopback else "Check"
        return f"{start} the host and the port in FOLLOWUP_BASE_URL."
    return "Check the host and the port in FOLLOWUP_BASE_URL, then the firewall, the VPN and the network."
