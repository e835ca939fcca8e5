"""The order of the checks. A check that cannot be made because another one failed is named once, with the reason."""

import contextlib
import os
from collections.abc import Generator
from typing import get_args

import attrs

from followup import ConfigurationError
from followup._call.steps import Response
from followup._http.connections import Connections
from followup._redaction import HIDDEN
from followup.cli.doctor import Check, Finding, Unchecked, fail, network, service
from followup.cli.doctor.network import API_KEY, BASE_URL, SECRET, Target

CHECKS: tuple[Check, ...] = get_args(Check)

Steps = Generator[Finding | Unchecked]

_SHORTEST_SECRET = 6
"""Characters. A shorter value is no secret, and hiding it would make the texts unreadable."""

_NEED_ACCOUNT: tuple[Check, ...] = ("mode", "scopes", "lines", "version", "endpoints")


def examine(seconds: float) -> Steps:
    """Make the checks one after another, and yield what they find, until one ends them.

    The key and the secret are hidden wherever they are: a service or a receiver may quote them.

    Args:
        seconds: time limit of each look-up, connection, handshake and request.
    """
    values = ",".join(filter(None, map(os.environ.get, (API_KEY, SECRET))))
    secrets = [each.strip() for each in values.split(",") if len(each) >= _SHORTEST_SECRET]
    with contextlib.closing(_examine(seconds)) as steps:
        for found in steps:
            if isinstance(found, Unchecked):
                yield found
                continue
            detail = found.detail
            for each in secrets:
                detail = detail.replace(each, HIDDEN)
            yield attrs.evolve(found, detail=detail)
            if found.ends:
                yield _after(found.check, found.ends)
                return


def _after(check: Check, reason: str) -> Unchecked:
    return Unchecked(CHECKS[CHECKS.index(check) + 1 :], reason)


def _examine(seconds: float) -> Steps:
    base_url, key, *optional = network.check_variables()
    yield from (base_url, key, *optional)
    if base_url.outcome == "FAIL":
        yield _after("environment", f"{BASE_URL} cannot be used")
        return
    value = os.environ[BASE_URL].rstrip("/")
    usable_key = os.environ[API_KEY] if key.outcome == "OK" else None
    try:
        # As a client makes them: with the certificates and the proxy of the environment.
        connections = Connections(tls=value.startswith("https:"))
        target = Target.of(value, connections)
    except ConfigurationError as error:
        advice = "Correct or unset the variable."
        yield fail("environment", str(error), advice, ends="the environment cannot be used")
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
    yield network.check_tcp(target, addresses, requests.seconds)
    yield network.check_tls(target, requests.seconds)
    exchange = requests.get(f"{target.base_url}/v1/account")
    rejected_version = None
    if isinstance(exchange.outcome, Response) and exchange.outcome.status_code == 400:
        # The version is the only thing in this request that can be invalid.
        rejected_version, exchange = exchange.outcome, requests.get(f"{target.base_url}/v1/account", with_version=False)
    yield service.check_service(target, requests, exchange)
    response = exchange.outcome
    assert isinstance(response, Response)  # otherwise the check has ended the examination
    yield service.check_clock(exchange, response) or Unchecked(("clock",), "the response has no Date")
    account = None
    if requests.key is not None:
        key, account = service.check_key(requests, response)
        yield key
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
