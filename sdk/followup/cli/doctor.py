"""``followup doctor``: the command, the order of its checks, and those of the service."""

import contextlib
import os
import re
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated
from urllib.parse import urlsplit

import attrs
import httpx
import typer

from followup import Account, ConfigurationError, FollowUp, FollowUpError, WebhookEndpoint
from followup._core import errors
from followup._core.api_rules import SERVICE_VERSION
from followup._core.codec.wire import format_timestamp
from followup._core.declarations import Declaration
from followup._core.operations import declarations_of
from followup._core.redaction import HIDDEN, redacted
from followup._core.threads import result_within
from followup.cli.application import Application
from followup.cli.doctor_network import (
    API_KEY,
    BASE_URL,
    Finding,
    check_encryption,
    check_variable,
    check_way,
    fail,
    no_handshake,
    ok,
)
from followup.cli.output import FAILURE, json_line, reject, say_wrapped, with_local_times, write_line
from followup.resources import all_groups
from followup.webhooks import SECRET_VARIABLE, WEBHOOK_TOLERANCE

commands: Application = Application()


@commands.command(
    epilog="Exit status: 0 without a FAIL, 1 with one, 2 if no response arrived at all, 130 if it was interrupted with "
    "Ctrl-C."
)
def doctor(
    timeout: Annotated[float, typer.Option(help="Seconds for each look-up, connection, handshake and request.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON object.")] = False,
) -> None:
    """Say what to do about each problem.

    Checks the environment variables, DNS, TCP, TLS, the clock, the API key, its mode, scopes and service lines, the
    version, the contract and the webhook endpoints. It only reads, and never prints a key.

    Each line begins with OK, WARN (a scope or service line is missing) or FAIL.
    """
    if not 0 < timeout < float("inf"):
        reject("--timeout must be a positive number of seconds")
    findings: list[Finding] = []
    for found in examine(timeout):
        findings.append(found)
        if not as_json:
            sentences = filter(None, (found.detail, found.advice))
            say_wrapped(f"{found.outcome:4}  {found.check:11}  ", *sentences, between=". ")
    _conclude(findings, as_json=as_json)


def _conclude(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print the checks that were not made, or everything as a JSON object, and exit with the status."""
    count = [each.outcome for each in findings].count
    reachable = not any(each.unreachable for each in findings)
    reason = findings[-1].ends
    made = {each.check for each in findings}
    unchecked = [check for check in CHECKS if check not in made]
    if as_json:
        fields = attrs.filters.include("check", "outcome", "detail", "advice")
        report = {
            "checks": [attrs.asdict(each, filter=fields) for each in findings],
            "notChecked": [{"check": check, "reason": reason} for check in unchecked],
            "ok": count("OK"),
            "warnings": count("WARN"),
            "failures": count("FAIL"),
            "reachable": reachable,
        }
        write_line(json_line(report))
    elif unchecked:
        say_wrapped("Not checked: ", f"{', '.join(unchecked)} ({reason}).")
    raise typer.Exit(FAILURE * bool(count("FAIL")) if reachable else 2)


CHECKS = (
    *("environment", "DNS", "TCP", "TLS", "service", "clock", "key", "mode", "scopes", "lines", "version", "contract"),
    "endpoints",
)
"""The checks, in the order in which they are made."""

_SHORTEST_SECRET = 6
"""Characters. A shorter value is no secret, and hiding it would make the texts unreadable."""

_CHECK_URL = "Check the host, the port and the path in FOLLOWUP_BASE_URL: something else may respond in its place."
_UPGRADE = "Upgrade followup."


def examine(seconds: float) -> Iterator[Finding]:
    """Make the checks one after another, and yield what they find, until one ends them.

    The key and the secret are hidden wherever they are: a service or a receiver may quote them.

    Args:
        seconds: time limit of each look-up, connection, handshake and request.
    """
    values = ",".join(filter(None, map(os.environ.get, (API_KEY, SECRET_VARIABLE))))
    secrets = [each.strip() for each in values.split(",") if len(each) >= _SHORTEST_SECRET]
    with contextlib.closing(_examine(seconds)) as steps:
        for found in steps:
            detail = found.detail
            for each in secrets:
                detail = detail.replace(each, HIDDEN)
            yield attrs.evolve(found, detail=detail)
            if found.ends:
                return


def _examine(seconds: float) -> Generator[Finding]:
    if os.environ.get(SECRET_VARIABLE):
        yield check_variable(SECRET_VARIABLE)
    base_url, key = check_variable(BASE_URL), check_variable(API_KEY)
    yield base_url
    yield attrs.evolve(key, ends=base_url.detail if base_url.outcome == "FAIL" else "")
    unusable = key.detail if key.outcome == "FAIL" else ""  # the service may be unreachable, too
    try:
        with FollowUp(api_key="none" if unusable else None, timeout=seconds, max_retries=0) as client:
            url, proxy = client._options.base_url, client._connections.route().proxy
            yield from check_way(url, None if proxy is None else str(proxy), seconds)
            yield from _check_service(client, seconds, unusable)
    except ConfigurationError as error:
        yield fail("environment", str(error), "Correct or unset it.", ends="the environment cannot be used")


def _check_service(client: FollowUp, seconds: float, unusable: str) -> Iterator[Finding]:
    """Retrieve the account: TLS, what responds, its clock, the key and its permissions; then contract and endpoints.

    Args:
        client: a client of the service.
        seconds: time limit of a request.
        unusable: the reason why the key cannot be used, which ends the checks before it; empty if it can.
    """
    encryption = check_encryption(client._options.base_url)
    if encryption.ends:
        yield encryption
        return
    account, error, started = None, None, time.time()
    try:
        account = client.account.retrieve()
        headers = account.last_response.headers
    except (errors.AuthenticationError, errors.InvalidRequestError) as failed:
        error, headers = failed, failed.headers
    except FollowUpError as failed:
        # TCP has just accepted a connection, so what could not be sent failed in the TLS handshake or in the proxy.
        if isinstance(failed, errors.APIConnectionError) and failed.was_sent == "no":
            yield no_handshake(client._options.base_url, failed)
        yield from (encryption, _no_account(failed))
        return
    yield encryption
    took = time.time() - started
    if error is not None and error.type is None:  # not an error of the service
        yield _no_account(error)
        return
    # The service has written its Date about half way between request and response.
    yield ok("service", f"responds in {1000 * took:.0f} ms")
    yield attrs.evolve(_check_clock(headers, started + took / 2), ends=unusable)
    if isinstance(error, errors.InvalidRequestError):  # nothing else in this request can be invalid
        problem = f"the service rejects {SERVICE_VERSION}: {error}"
        yield fail("version", problem, _UPGRADE, ends="the version is rejected")
    yield from _check_key(account, error, headers)
    yield _check_contract(client, seconds)
    if account is not None and LISTS_ENDPOINTS in account.api_key.scopes:
        yield from _check_endpoints(client)
    else:
        yield Finding("endpoints", "WARN", f"not checked, because the key lacks {LISTS_ENDPOINTS}")


def _no_account(error: FollowUpError) -> Finding:
    unreachable = isinstance(error, errors.APIConnectionError)
    is_down = isinstance(error, errors.APIStatusError) and (error.status_code == 429 or error.status_code >= 500)
    advice = "Try again later; if it stays, contact whoever runs the service." if is_down else _CHECK_URL
    detail = f"connections are accepted, but: {error}" if unreachable else f"responds, but not with an account: {error}"
    return fail("service", detail, advice, ends="no usable response", unreachable=unreachable)


def _check_clock(headers: Mapping[str, str], now: float) -> Finding:
    """Compare the clock of this computer with the ``Date`` of a response, which has whole seconds."""
    try:
        offset = now - errors.parse_http_date(headers["date"]) - 0.5  # what whole seconds cut off, on average
    except (KeyError, ValueError, OverflowError):
        return ok("clock", "not compared, because the response has no Date")
    shown = f"{abs(offset):,.0f} s {'ahead of' if offset > 0 else 'behind'} the service"
    if abs(offset) <= WEBHOOK_TOLERANCE:
        return ok("clock", "in time with the service" if abs(offset) < 2 else shown)
    detail = f"this computer is {shown}; webhooks whose timestamp is more than {WEBHOOK_TOLERANCE} s off are rejected"
    return fail("clock", detail, "Synchronize its clock (NTP).")


def _check_key(account: Account | None, error: FollowUpError | None, headers: Mapping[str, str]) -> Iterator[Finding]:
    """Check that the service accepts the key, what the key may do, and the version that the service confirms."""
    if account is None:
        advice = f"It may be incomplete, revoked, expired, or of another environment than {BASE_URL}: check {API_KEY}."
        yield fail("key", f"the service rejects the key: {error}", advice, ends="the key shows no account")
        return
    yield ok("key", f"{account.api_key.name!r} of {account.name} ({account.id})")
    to_patients = "production (livemode true): the service writes to real patients"
    yield ok("mode", to_patients if account.livemode else "test environment (livemode false)")
    yield _check_scopes(account)
    yield _check_lines(account)
    echoed = headers.get("service-version", "none")
    differs = f"requested {SERVICE_VERSION}, but the service confirms {echoed[:40]}"
    is_confirmed = echoed == SERVICE_VERSION
    yield ok("version", f"{echoed}, confirmed by the service") if is_confirmed else fail("version", differs, _UPGRADE)


def _check_scopes(account: Account) -> Finding:
    """Find the scopes that the key lacks, and the operations that need them."""
    lacking: dict[str, list[str]] = {}
    for operation in _operations():
        scope = scope_of(operation)
        if scope is not None and scope not in account.api_key.scopes:
            lacking.setdefault(scope, []).append(operation.name)
    if not lacking:
        return ok("scopes", "those of all operations")
    shown = "; ".join(f"{scope} ({', '.join(names)})" for scope, names in lacking.items())
    advice = "If you use these operations, ask your organization for a key with these scopes."
    return Finding("scopes", "WARN", f"the key lacks {shown}", advice)


def _check_lines(account: Account) -> Finding:
    """Find out whether the organization has the service line that most writing operations need."""
    if "follow_up" in account.service_lines:
        return ok("lines", ", ".join(redacted(each, max_length=40) for each in account.service_lines))
    names = ", ".join(each.name for each in _operations() if needs_follow_up(each))
    advice = "If you use these operations, ask the service to enable this line."
    return Finding("lines", "WARN", f"the organization lacks follow_up ({names})", advice)


_CONTRACT = "/api/v1/openapi.json"


def _check_contract(client: FollowUp, seconds: float) -> Finding:
    """Fetch the contract, and look for the operations of this package in it."""
    # Operations are under /v1 of the base URL, with or without /api; the contract is always under /api (section 9).
    url = client._options.base_url.removesuffix("/api") + _CONTRACT
    headers = {"Authorization": f"Bearer {client._options.api_key}"}
    try:
        # httpx's timeout begins again with each chunk, so it would not end a body that drips.
        response = result_within(seconds, lambda: httpx.get(url, headers=headers, timeout=seconds))
        paths = response.raise_for_status().json()["paths"]
        served = {(method.upper(), _plain(path)) for path, item in paths.items() for method in item}
    except (httpx.HTTPError, TimeoutError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        reason = str(error).partition(" for url")[0] if isinstance(error, httpx.HTTPError) else type(error).__name__
        return fail("contract", f"not served at {_CONTRACT} ({reason})", f"Check the path in {BASE_URL}.")
    missing = [each.name for each in _operations() if (each.method, _plain(each.path)) not in served]
    if missing:
        return fail("contract", f"lacks {', '.join(missing)}", f"Do not use these operations. {_UPGRADE}")
    return ok("contract", "has all operations of this package")


def _plain(path: str) -> str:
    """Return a path after its version, with parameters that all have the same name."""
    return re.sub(r"\{[^}]*\}", "{}", path.rpartition("/v1/")[2].lstrip("/"))


LISTS_ENDPOINTS = "webhooks:read"
"""The scope that listing endpoints needs."""

_MOST_ENDPOINTS = 100


def scope_of(operation: Declaration) -> str | None:
    """Return the scope that an operation needs; None if any valid key may call it (specification, section 5)."""
    group = operation.name.partition(".")[0]
    if group == "account":
        return None
    resource = "webhooks" if group.startswith("webhook_") else group
    return f"{resource}:{'read' if operation.method == 'GET' else 'write'}"


def needs_follow_up(operation: Declaration) -> bool:
    """Return whether an operation needs the service line ``follow_up`` (specification, sections 1 and 4)."""
    scope = scope_of(operation)
    return scope is not None and scope.endswith(":write") and scope != "webhooks:write"


def _operations() -> list[Declaration]:
    return [each for group in all_groups() for each in declarations_of(group).values()]


def _check_endpoints(client: FollowUp) -> Iterator[Finding]:
    """Check each endpoint, of at most 100: paused ones, and those that reject what the service sends."""
    try:
        page = client.webhook_endpoints.list(limit=_MOST_ENDPOINTS)
    except FollowUpError as error:
        yield fail("endpoints", f"cannot be listed: {error}", "Run: followup webhook-endpoints list")
        return
    if not page.data:
        yield ok("endpoints", "none: the service sends no webhooks")
    yield from sorted(map(_check_endpoint, page.data), key=lambda each: each.outcome != "FAIL")
    if page.has_more:
        yield ok("endpoints", f"only the newest {_MOST_ENDPOINTS} endpoints were checked")


def _check_endpoint(endpoint: WebhookEndpoint) -> Finding:
    host = None
    with contextlib.suppress(ValueError):  # the service may have a URL that Python cannot split
        host = urlsplit(endpoint.url).hostname
    shown = f"{endpoint.id} ({host or 'a URL without a readable host'})"  # the path may be secret
    if endpoint.status == "disabled":
        advice = f"Enable it: followup webhook-endpoints update {endpoint.id} --no-disabled"
        return fail("endpoints", f"{shown} is disabled: nothing is sent to it", advice)
    error, delivered = endpoint.last_error, endpoint.last_delivered_at
    since = f"last delivered {_time(delivered)}" if delivered else "never delivered"
    if error is None or (delivered is not None and delivered >= error.at):
        return ok("endpoints", f"{shown}: {since}")
    problem = f"fails: {redacted(error.message, max_length=200)} ({_time(error.at)}; {since})"
    see = f"See: followup webhook-deliveries list --webhook-endpoint {endpoint.id}"
    return fail("endpoints", f"{shown} {problem}", f"It must respond with 2xx within 10 s. {see}")


def _time(time: datetime) -> str:
    return with_local_times(format_timestamp(time))
