"""The webhook endpoints: paused ones, and those that reject what the service sends (specification, section 2)."""

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

from followup import WebhookEndpoint
from followup._codec.decode import WireError
from followup._outcomes import NoResponse
from followup._pagination import decode_envelope
from followup._redaction import redacted
from followup.cli.doctor.findings import Finding, fail, ok
from followup.cli.doctor.requests import Requests, json_of

_MOST = 100


def check_endpoints(requests: Requests, base_url: str) -> Iterator[Finding]:
    """Check each endpoint, of at most 100."""
    outcome = requests.get(f"{base_url}/v1/webhook_endpoints?limit={_MOST}").outcome
    if isinstance(outcome, NoResponse):
        yield _not_listed(f"no response ({outcome.name})")
        return
    if outcome.status_code != 200:
        yield _not_listed(requests.error_in(outcome))
        return
    try:
        page = decode_envelope(WebhookEndpoint, json_of(outcome))
    except WireError as error:
        yield _not_listed(f"{error.path or 'the body'} {error.problem}")
        return
    if not page.data:
        yield ok("endpoints", "none: the service sends no webhooks")
    yield from map(_check_endpoint, page.data)
    if page.has_more:
        yield ok("endpoints", f"only the newest {_MOST} endpoints were checked")


def _not_listed(reason: str) -> Finding:
    return fail("endpoints", f"cannot be listed: {reason}", "Run: followup webhook-endpoints list")


def _check_endpoint(endpoint: WebhookEndpoint) -> Finding:
    # Neither path nor query is shown: receivers have their secrets in them.
    shown = f"{endpoint.id} ({_host_of(endpoint.url)})"
    if endpoint.status == "disabled":
        return fail(
            "endpoints",
            f"{shown} is disabled: nothing is sent to it",
            f"Enable it: followup webhook-endpoints update {endpoint.id} --no-disabled",
        )
    error, delivered = endpoint.last_error, endpoint.last_delivered_at
    if error is not None and (delivered is None or delivered < error.at):
        since = f"last delivered {_time(delivered)}" if delivered else "never delivered"
        return fail(
            "endpoints",
            f"{shown} fails: {redacted(error.message, max_length=200)} ({_time(error.at)}; {since})",
            "It must respond with 2xx within 10 s. See: followup webhook-deliveries list --webhook-endpoint "
            f"{endpoint.id}",
        )
    if delivered is None:
        return ok("endpoints", f"{shown}: nothing sent yet (try: followup webhook-endpoints ping {endpoint.id})")
    return ok("endpoints", f"{shown}: last delivered {_time(delivered)}")


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "")[:60]
    except ValueError:
        return "an invalid URL"


def _time(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
