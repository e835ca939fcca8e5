"""Whether what responds is the service, and how far its clock is from ours."""

from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from followup._annotations import WEBHOOK_TOLERANCE
from followup._outcomes import NoResponse, Response
from followup._redaction import redacted
from followup.cli.doctor.findings import Finding, fail, ok
from followup.cli.doctor.requests import Exchange, Requests, json_of
from followup.cli.doctor.targets import Target

_CHECK_URL = "Check the host, the port and the path in FOLLOWUP_BASE_URL."
_LOGIN = "a login page of the network, a proxy or another web server responds instead of the service"
_TRY_AGAIN = "Try again later; if it stays, contact whoever runs the service."


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
        advice = f"{_LOGIN[0].upper()}{_LOGIN[1:]}. Log in to the network, or check FOLLOWUP_BASE_URL."
    return fail("service", f"redirects{to} ({response.status_code})", advice)


def _not_the_service(target: Target, response: Response) -> Finding:
    kind = redacted(response.headers.get("content-type", "no content type"), max_length=60)
    detail = f"the response ({response.status_code}, {kind}) is not that of the service{target.through}"
    return fail("service", detail, f"{_LOGIN[0].upper()}{_LOGIN[1:]}. {_CHECK_URL}")


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
