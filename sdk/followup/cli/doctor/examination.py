"""The order of the checks. A check that cannot be made because another one failed is named once, with the reason."""

import os
from collections.abc import Iterator
from typing import get_args

import attrs

from followup import ConfigurationError
from followup._call.steps import Response
from followup._http.connections import Connections
from followup._redaction import HIDDEN
from followup.cli.doctor import Check, Finding, Unchecked, fail, network, service
from followup.cli.doctor.network import API_KEY, BASE_URL, SECRET, Target

CHECKS: tuple[Check, ...] = get_args(Check)

Steps = Iterator[Finding | Unchecked]


def examine(seconds: float) -> Steps:
    """Make the checks one after another, and yield what they find.

    Args:
        seconds: time limit of each look-up, connection, handshake and request.
    """
    hidden = [each for each in map(os.environ.get, (API_KEY, SECRET)) if each]
    for found in _examine(seconds):
        yield _without(hidden, found) if isinstance(found, Finding) else found


def _examine(seconds: float) -> Steps:
    base_url = network.check_base_url()
    key = network.check_key_variable()
    yield base_url
    yield key
    if secret := network.check_secret():
        yield secret
    if telemetry := network.check_telemetry():
        yield telemetry
    if base_url.outcome == "FAIL":
        yield _after("environment", f"{BASE_URL} cannot be used")
        return
    value = os.environ[BASE_URL].rstrip("/")
    usable_key = os.environ[API_KEY] if key.outcome == "OK" else None
    try:
        # As a client makes them: with the certificates and the proxy of the environment.
        connections = Connections(tls=value.startswith("https:"))
        target = network.target_of(value, connections)
    except ConfigurationError as error:
        yield fail("environment", str(error), "Correct or unset the variable.")
        yield _after("environment", "the environment cannot be used")
        return
    try:
        yield from _examine_target(target, service.Requests(connections, usable_key, seconds))
    finally:
        connections.close()


def _examine_target(target: Target, requests: service.Requests) -> Steps:
    if proxy := network.check_proxy(target):
        yield proxy
    dns, addresses = network.check_dns(target, requests.seconds)
    yield dns
    if not addresses:
        yield _after("DNS", "the host has no address")
        return
    tcp = network.check_tcp(target, addresses, requests.seconds)
    yield tcp
    if tcp.outcome == "FAIL":
        yield _after("TCP", "there is no connection")
        return
    tls = network.check_tls(target, requests.seconds)
    yield tls
    if tls.unreachable:
        yield _after("TLS", "there is no secure connection")
        return
    if tls.outcome == "FAIL":
        yield _after("TLS", "the connection is not encrypted")
        return
    yield from _examine_service(target, requests)


def _examine_service(target: Target, requests: service.Requests) -> Steps:
    exchange = requests.get(f"{target.base_url}/v1/account")
    rejected_version = None
    if isinstance(exchange.outcome, Response) and exchange.outcome.status_code == 400:
        # The version is the only thing in this request that can be invalid.
        rejected_version, exchange = exchange.outcome, requests.get(f"{target.base_url}/v1/account", with_version=False)
    responds = service.check_service(target, requests, exchange)
    yield responds
    response = exchange.outcome
    if responds.outcome == "FAIL" or not isinstance(response, Response):
        yield _after("service", "no usable response")
        return
    clock = service.check_clock(exchange, response)
    yield clock or Unchecked(("clock",), "the response has no Date")
    account = None
    if requests.key is not None:
        yield service.check_key(requests, response)
        account = service.account_in(response)
    if account is not None:
        yield service.check_mode(account)
        yield service.check_scopes(account)
        yield service.check_lines(account)
        yield service.check_version(response, rejected_version, requests)
    yield service.check_contract(requests, target.base_url)
    if requests.key is None:
        yield Unchecked(("key", *_NEED_ACCOUNT), f"{API_KEY} cannot be used")
    elif account is None:
        yield Unchecked(_NEED_ACCOUNT, "the key shows no account")
    elif service.LISTS_ENDPOINTS not in account.api_key.scopes:
        yield Unchecked(("endpoints",), f"the key lacks {service.LISTS_ENDPOINTS}")
    else:
        yield from service.check_endpoints(requests, target.base_url)


def _without(secrets: list[str], finding: Finding) -> Finding:
    """Hide the key and the secret wherever they are: a service or a receiver may quote them."""
    detail = finding.detail
    for secret in secrets:
        for each in filter(lambda part: len(part) >= _SHORTEST_SECRET, secret.split(",")):
            detail = detail.replace(each.strip(), HIDDEN)
    return attrs.evolve(finding, detail=detail)


_SHORTEST_SECRET = 6
"""Characters. A shorter value is no secret, and hiding it would make the texts unreadable."""

_NEED_ACCOUNT: tuple[Check, ...] = ("mode", "scopes", "lines", "version", "endpoints")


def _after(check: Check, reason: str) -> Unchecked:
    return Unchecked(CHECKS[CHECKS.index(check) + 1 :], reason)
