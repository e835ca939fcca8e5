"""What responds: whether it is the service, its clock, and its contract (specification, section 9)."""

import json
import re
import time
from collections.abc import Generator, Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import attrs

from followup._annotations import SERVICE_VERSION, WEBHOOK_TOLERANCE
from followup._call.bodies import ACCEPT_ENCODING
from followup._call.steps import NoResponse, Outcome, Response, Send, Wait
from followup._declarations.operations import declarations_of
from followup._http.connections import Connections
from followup._http.drivers import drive
from followup._redaction import redacted
from followup._results.errors import APIStatusError
from followup._time import REAL_TIME
from followup._version import __version__
from followup.cli.doctor import Finding, fail, ok
from followup.cli.doctor.network import Target
from followup.resources import all_groups

_CHECK_URL = "Check the host, the port and the path in FOLLOWUP_BASE_URL."
_LOGIN = "A login page of the network, a proxy or another web server responds instead of the service."
_TRY_AGAIN = "Try again later; if it stays, contact whoever runs the service."

_CONTRACT = "/api/v1/openapi.json"
_METHODS = ("get", "post", "patch", "put", "delete")
_MOST_NAMED = 5


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
    status = response.status_code
    if 300 <= status < 400:
        return _redirected(target, response)
    if status == 407:
        return fail("service", "the proxy requires a user name and a password", "Set them in HTTP_PROXY.")
    body = json_of(response)
    if not isinstance(body, dict) or not (
        isinstance(body.get("error"), dict) if status >= 400 else body.get("object") == "account"
    ):
        return _not_the_service(target, response)
    error = requests.error_in(response)
    if status == 429:
        return fail("service", f"the rate limit is reached: {error}", "Wait a minute, and run this command again.")
    if status >= 500:
        return fail("service", f"the service fails: {error}", _TRY_AGAIN)
    if status in (200, 401):
        return ok("service", f"responds in {1000 * exchange.took:.0f} ms{target.through}")
    return fail("service", f"responds, but not with an account: {error}", _CHECK_URL)


def _no_response(target: Target, outcome: NoResponse, seconds: float) -> Finding:
    where = f"{target.first_hop.shown} accepts connections, but "
    if outcome.timed_out:
        detail = f"did not respond within {seconds:g} s"
        advice = "Try again; if it stays, check whether another program has this port, and contact whoever runs it."
    else:
        detail = f"sent no HTTP response ({outcome.name})"
        advice = _CHECK_URL + ("" if target.is_https else " If the port expects TLS, use https.")
    if target.proxy:
        advice += f" Or exclude the service from the proxy: export NO_PROXY={target.host.name}"
    return fail("service", where + detail, advice, unreachable=True)


def _redirected(target: Target, response: Response) -> Finding:
    try:
        location = urlsplit(response.headers.get("location", ""))
        host = location.hostname
    except ValueError:
        host = None
    to = f" to {host[:100]}" if host else ""
    if host == target.host.name:
        advice = "Set FOLLOWUP_BASE_URL to the URL that it redirects to, up to /v1; the clients follow no redirects."
    else:
        advice = f"{_LOGIN} Log in to the network, or check FOLLOWUP_BASE_URL."
    return fail("service", f"redirects{to} ({response.status_code})", advice)


def _not_the_service(target: Target, response: Response) -> Finding:
    kind = redacted(response.headers.get("content-type", "no content type"), max_length=60)
    detail = f"the response ({response.status_code}, {kind}) is not that of the service{target.through}"
    return fail("service", detail, f"{_LOGIN} {_CHECK_URL}")


def check_clock(exchange: Exchange, response: Response) -> Finding | None:
    """Compare the clock of this computer with the ``Date`` of a response. None if the response has none."""
    try:
        theirs = parsedate_to_datetime(response.headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    # The header has whole seconds, and was written at some time between sending and receiving.
    offset = exchange.sent_at + exchange.took / 2 - (theirs + 0.5)
    shown = f"{_duration(abs(offset))} {'ahead of' if offset > 0 else 'behind'} the service"
    if abs(offset) <= WEBHOOK_TOLERANCE:
        return ok("clock", "in time with the service" if abs(offset) < 2 else shown)
    return fail(
        "clock",
        f"this computer is {shown}; webhooks whose timestamp is more than {WEBHOOK_TOLERANCE} s off are rejected",
        "Synchronize its clock (NTP).",
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


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
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        return _not_served("the response is not an OpenAPI document")
    served = {*_operations_in(document)}
    missing = [
        operation.name
        for group in all_groups()
        for operation in declarations_of(group).values()
        if (operation.method, _plain(operation.path)) not in served
    ]
    info = document.get("info")
    version = str(info.get("version") if isinstance(info, dict) else None)[:40]
    if not missing:
        return ok("contract", f"version {version}, with all operations of this package")
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return fail(
        "contract",
        f"version {version} lacks {', '.join(missing[:_MOST_NAMED])}{more}",
        "Do not use these operations, and look for a new version: python -m pip install --upgrade followup",
    )


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
