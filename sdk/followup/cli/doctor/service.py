"""What responds: whether it is the service, its clock and contract, the key, and the endpoints of its organization."""

import json
import re
import time
from collections.abc import Generator, Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import attrs

from followup import Account, WebhookEndpoint
from followup._annotations import SERVICE_VERSION, WEBHOOK_TOLERANCE
from followup._call.bodies import ACCEPT_ENCODING
from followup._call.pagination import decode_envelope
from followup._call.steps import NoResponse, Outcome, Response, Send, Wait
from followup._codec.decode import WireError, decode
from followup._declarations.declarations import Declaration
from followup._declarations.operations import declarations_of
from followup._http.connections import Connections
from followup._http.drivers import drive
from followup._redaction import redacted
from followup._results.errors import APIStatusError
from followup._time import REAL_TIME
from followup._version import __version__
from followup.cli.doctor import Finding, fail, ok
from followup.cli.doctor.network import API_KEY, BASE_URL, Target
from followup.resources import all_groups

_CHECK_URL = "Check the host, the port and the path in FOLLOWUP_BASE_URL."
_LOGIN = "A login page of the network, a proxy or another web server responds instead of the service."
_TRY_AGAIN = "Try again later; if it stays, contact whoever runs the service."
_UPGRADE = "Upgrade followup: python -m pip install --upgrade followup"

_CONTRACT = "/api/v1/openapi.json"
_METHODS = ("get", "post", "patch", "put", "delete")


@attrs.frozen
class Exchange:
    """A request and its outcome.

    Attributes:
        sent_at: seconds since the epoch, by the clock of this computer.
        took: seconds until the outcome.
    """

    outcome: Outcome
    sent_at: float
    took: float


class Requests:
    """Sends requests as the clients do: over the same connections, within a time limit, but without retries.

    Args:
        connections: the connections of a client.
        key: the API key; None to send none.
        seconds: time limit of each request.
    """

    def __init__(self, connections: Connections, key: str | None, seconds: float) -> None:
        self.key = key
        self.seconds = seconds
        self._connections = connections

    def get(self, url: str, *, with_key: bool = True, with_version: bool = True) -> Exchange:
        """Send a GET request."""
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": ACCEPT_ENCODING,
            "User-Agent": f"followup-python/{__version__}",
        }
        if with_key and self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        if with_version:
            headers["Service-Version"] = SERVICE_VERSION
        step = Send(method="GET", url=url, headers=headers, content=None, timeouts=None, seconds=self.seconds)
        sent_at, started = time.time(), time.monotonic()
        outcome = drive(_once(step), self._connections, REAL_TIME)
        return Exchange(outcome, sent_at, time.monotonic() - started)

    def error_in(self, response: Response) -> str:
        """Return the text of an error response, redacted."""
        return str(
            APIStatusError(
                status_code=response.status_code,
                headers=response.headers,
                body=json_of(response),
                sent_values=[] if self.key is None else [self.key],
            )
        )


def _once(step: Send) -> Generator[Send | Wait, Outcome | None, Outcome]:
    outcome = yield step
    assert outcome is not None
    return outcome


def json_of(response: Response) -> Any:
    """Return the decoded body; None if it is not JSON."""
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def check_service(target: Target, requests: Requests, exchange: Exchange) -> Finding:
    """Check that the response to ``account.retrieve`` comes from the service, whatever it says."""
    response = exchange.outcome
    if isinstance(response, NoResponse):
        return _no_response(target, response, requests.seconds)
    status, body = response.status_code, json_of(response)
    fields: dict[str, Any] = body if isinstance(body, dict) else {}
    has_error = status >= 400 and isinstance(fields.get("error"), dict)
    if (has_error and status == 401) or (status == 200 and fields.get("object") == "account"):
        return ok("service", f"responds in {1000 * exchange.took:.0f} ms{target.through}")
    if has_error:
        advice = _TRY_AGAIN if status == 429 or status >= 500 else _CHECK_URL
        detail = f"responds, but not with an account: {requests.error_in(response)}"
    elif 300 <= status < 400:
        advice = f"{_LOGIN} If it is the service, set FOLLOWUP_BASE_URL to the URL that it redirects to, up to /v1."
        detail = f"redirects to {host_of(response.headers.get('location', ''))} ({status})"
    else:
        advice = f"{_LOGIN} {_CHECK_URL}"
        kind = redacted(response.headers.get("content-type", "no content type"), max_length=60)
        detail = f"the response ({status}, {kind}) is not that of the service{target.through}"
    return fail("service", detail, advice, ends="no usable response")


def _no_response(target: Target, outcome: NoResponse, seconds: float) -> Finding:
    happened = (
        f"did not respond within {seconds:g} s" if outcome.timed_out else f"sent no HTTP response ({outcome.name})"
    )
    advice = _CHECK_URL if target.is_https else f"{_CHECK_URL} If the port expects TLS, use https."
    if target.proxy:
        advice += f" Or exclude the service from the proxy: export NO_PROXY={target.host.name}"
    detail = f"{target.first_hop.shown} accepts connections, but {happened}"
    return fail("service", detail, advice, ends="no usable response", unreachable=True)


def check_clock(exchange: Exchange, response: Response) -> Finding | None:
    """Compare the clock of this computer with the ``Date`` of a response. None if the response has none."""
    try:
        theirs = parsedate_to_datetime(response.headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    # The header has whole seconds, and was written at some time between sending and receiving.
    offset = exchange.sent_at + exchange.took / 2 - (theirs + 0.5)
    shown = f"{abs(offset):,.0f} s {'ahead of' if offset > 0 else 'behind'} the service"
    if abs(offset) <= WEBHOOK_TOLERANCE:
        return ok("clock", "in time with the service" if abs(offset) < 2 else shown)
    detail = f"this computer is {shown}; webhooks whose timestamp is more than {WEBHOOK_TOLERANCE} s off are rejected"
    return fail("clock", detail, "Synchronize its clock (NTP).")


def check_contract(requests: Requests, base_url: str) -> Finding:
    """Fetch the contract, and look for the operations of this package in it."""
    url = base_url.removesuffix("/api") + _CONTRACT
    outcome = requests.get(url, with_key=False).outcome
    if not isinstance(outcome, NoResponse) and outcome.status_code in (401, 403):
        outcome = requests.get(url).outcome
    if isinstance(outcome, NoResponse):
        return _not_served(f"no response ({outcome.name})")
    if outcome.status_code != 200:
        return _not_served(f"status {outcome.status_code}")
    document = json_of(outcome)
    if not (isinstance(document, dict) and isinstance(document.get("paths"), dict)):
        return _not_served("the response is not an OpenAPI document")
    served = {*_operations_in(document)}
    missing = [
        operation.name for operation in _operations() if (operation.method, _plain(operation.path)) not in served
    ]
    info = document.get("info")
    version = str(info.get("version") if isinstance(info, dict) else None)[:40]
    if not missing:
        return ok("contract", f"version {version}, with all operations of this package")
    return fail("contract", f"version {version} lacks {', '.join(missing)}", f"Do not use these operations. {_UPGRADE}")


def _not_served(reason: str) -> Finding:
    return fail("contract", f"not served at {_CONTRACT}: {reason}", "Check the path in FOLLOWUP_BASE_URL.")


def _operations_in(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the method and the path, from /v1 on, of each operation of an OpenAPI document."""
    servers = document.get("servers")
    urls = [each["url"] for each in servers if _has_url(each)] if isinstance(servers, list) else []
    for prefix in {urlsplit(url).path.rstrip("/") for url in urls} or {""}:
        for path, item in document["paths"].items():
            _, found, rest = f"{prefix}{path}".partition("/v1/")
            if found and isinstance(item, dict):
                yield from ((method.upper(), _plain(found + rest)) for method in _METHODS if method in item)


def _has_url(server: Any) -> bool:
    return isinstance(server, dict) and isinstance(server.get("url"), str)


def _plain(path: str) -> str:
    """Return a path whose parameters all have the same name."""
    return re.sub(r"\{[^}]*\}", "{}", path)


LISTS_ENDPOINTS = "webhooks:read"
"""The scope that listing endpoints needs."""

_FOLLOW_UP = "follow_up"

_MOST_ENDPOINTS = 100


def check_key(requests: Requests, response: Response) -> tuple[Finding, Account | None]:
    """Check that the service accepts the key, and return its account as well; None if it has none."""
    if response.status_code == 401:
        advice = f"It may be incomplete, revoked, expired, or of another environment than {BASE_URL}: check {API_KEY}."
        return fail("key", f"the service rejects the key: {requests.error_in(response)}", advice), None
    try:
        account = decode(Account, json_of(response))
    except WireError as error:
        return fail("key", f"accepted, but the account does not match the specification: {error}", _UPGRADE), None
    return ok("key", f"{account.api_key.name!r} of {account.name} ({account.id})"), account


def check_mode(account: Account) -> Finding:
    """Say in plain words whether the key is for production."""
    if account.livemode:
        return ok("mode", "production (livemode true): the service writes to real patients")
    return ok("mode", "test environment (livemode false)")


def check_scopes(account: Account) -> Finding:
    """Find the scopes that the key lacks, and the operations that need them."""
    lacking: dict[str, list[str]] = {}
    for operation in _operations():
        scope = scope_of(operation)
        if scope is not None and scope not in account.api_key.scopes:
            lacking.setdefault(scope, []).append(operation.name)
    if not lacking:
        return ok("scopes", "the key has the scopes of all operations")
    shown = "; ".join(f"{scope} ({', '.join(names)})" for scope, names in lacking.items())
    advice = "If you use these operations, ask your organization for a key with these scopes."
    return Finding("scopes", "WARN", f"the key lacks {shown}", advice)


def check_lines(account: Account) -> Finding:
    """Find out whether the organization has the service line that most writing operations need."""
    if _FOLLOW_UP in account.service_lines:
        return ok("lines", ", ".join(redacted(each, max_length=40) for each in account.service_lines))
    names = ", ".join(each.name for each in _operations() if needs_follow_up(each))
    advice = "If you use these operations, ask the service to enable this line."
    return Finding("lines", "WARN", f"the organization lacks the service line {_FOLLOW_UP} ({names})", advice)


def check_version(response: Response, rejected: Response | None, requests: Requests) -> Finding:
    """Check that the service has the version that this package is made for.

    Args:
        response: the response to a request with the version.
        rejected: the response to a request with the version, if the service rejects it.
        requests: sent the requests.
    """
    if rejected is not None:
        return fail("version", f"the service rejects {SERVICE_VERSION}: {requests.error_in(rejected)}", _UPGRADE)
    echoed = response.headers.get("service-version")
    if echoed == SERVICE_VERSION:
        return ok("version", f"{SERVICE_VERSION}, confirmed by the service")
    said = f"responds with {echoed[:40]}" if echoed else "does not confirm it"
    return fail("version", f"requested {SERVICE_VERSION}, but the service {said}", _UPGRADE)


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


def check_endpoints(requests: Requests, base_url: str) -> Iterator[Finding]:
    """Check each endpoint, of at most 100: paused ones, and those that reject what the service sends."""
    outcome = requests.get(f"{base_url}/v1/webhook_endpoints?limit={_MOST_ENDPOINTS}").outcome
    if isinstance(outcome, NoResponse):
        yield _not_listed(f"no response ({outcome.name})")
        return
    if outcome.status_code != 200:
        yield _not_listed(requests.error_in(outcome))
        return
    try:
        page = decode_envelope(WebhookEndpoint, json_of(outcome))
    except WireError as error:
        yield _not_listed(str(error))
        return
    if not page.data:
        yield ok("endpoints", "none: the service sends no webhooks")
    yield from map(_check_endpoint, page.data)
    if page.has_more:
        yield ok("endpoints", f"only the newest {_MOST_ENDPOINTS} endpoints were checked")


def _not_listed(reason: str) -> Finding:
    return fail("endpoints", f"cannot be listed: {reason}", "Run: followup webhook-endpoints list")


def _check_endpoint(endpoint: WebhookEndpoint) -> Finding:
    # Neither path nor query is shown: receivers have their secrets in them.
    shown = f"{endpoint.id} ({host_of(endpoint.url)})"
    if endpoint.status == "disabled":
        advice = f"Enable it: followup webhook-endpoints update {endpoint.id} --no-disabled"
        return fail("endpoints", f"{shown} is disabled: nothing is sent to it", advice)
    error, delivered = endpoint.last_error, endpoint.last_delivered_at
    since = f"last delivered {_time(delivered)}" if delivered else "never delivered"
    if error is not None and (delivered is None or delivered < error.at):
        see = f"See: followup webhook-deliveries list --webhook-endpoint {endpoint.id}"
        problem = f"fails: {redacted(error.message, max_length=200)} ({_time(error.at)}; {since})"
        return fail("endpoints", f"{shown} {problem}", f"It must respond with 2xx within 10 s. {see}")
    return ok("endpoints", f"{shown}: {since}")


def host_of(url: str) -> str:
    """Return the host of a URL that somebody else wrote."""
    try:
        return (urlsplit(url).hostname or "")[:100] or "nowhere"
    except ValueError:
        return "an invalid URL"


def _time(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
