"""What the key is for and what it must not do (specification, section 5), and the endpoints of its organization."""

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

from followup import Account, WebhookEndpoint
from followup._annotations import SERVICE_VERSION
from followup._call.pagination import decode_envelope
from followup._call.steps import NoResponse, Response
from followup._codec.decode import WireError, decode
from followup._declarations.declarations import Declaration
from followup._declarations.operations import declarations_of
from followup._redaction import redacted
from followup.cli.doctor import Finding, fail, ok, warn
from followup.cli.doctor.service import Requests, json_of
from followup.resources import all_groups

LISTS_ENDPOINTS = "webhooks:read"
"""The scope that listing endpoints needs."""

_FOLLOW_UP = "follow_up"

_MOST_ENDPOINTS = 100


def check_key(requests: Requests, response: Response) -> Finding:
    """Check that the service accepts the key."""
    if response.status_code == 401:
        return fail(
            "key",
            f"the service rejects the key: {requests.error_in(response)}",
            "Check FOLLOWUP_API_KEY: the key may be incomplete, revoked, expired, or of another environment than "
            "FOLLOWUP_BASE_URL.",
        )
    try:
        account = decode(Account, json_of(response))
    except WireError as error:
        return fail(
            "key",
            f"accepted, but the account does not match the specification: {error.path or 'the body'} {error.problem}",
            "Check whether this version of followup is the current one: python -m pip install --upgrade followup",
        )
    return ok("key", f"{account.api_key.name!r} of {account.name} ({account.id})")


def account_in(response: Response) -> Account | None:
    """Return the account in a response; None if there is none."""
    if response.status_code != 200:
        return None
    try:
        return decode(Account, json_of(response))
    except WireError:
        return None


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
    return warn(
        "scopes",
        f"the key lacks {shown}",
        "If you use these operations, ask your organization for a key with these scopes.",
    )


def check_lines(account: Account) -> Finding:
    """Find out whether the organization has the service line that most writing operations need."""
    if _FOLLOW_UP in account.service_lines:
        return ok("lines", ", ".join(redacted(each, max_length=40) for each in account.service_lines))
    names = ", ".join(each.name for each in _operations() if needs_follow_up(each))
    return warn(
        "lines",
        f"the organization lacks the service line {_FOLLOW_UP} ({names})",
        "If you use these operations, ask the service to enable this line.",
    )


def check_version(response: Response, rejected: Response | None, requests: Requests) -> Finding:
    """Check that the service has the version that this package is made for.

    Args:
        response: the response to a request with the version.
        rejected: the response to a request with the version, if the service rejects it.
        requests: sent the requests.
    """
    upgrade = "Upgrade followup: python -m pip install --upgrade followup"
    if rejected is not None:
        return fail("version", f"the service rejects {SERVICE_VERSION}: {requests.error_in(rejected)}", upgrade)
    echoed = response.headers.get("service-version")
    if echoed == SERVICE_VERSION:
        return ok("version", f"{SERVICE_VERSION}, confirmed by the service")
    said = f"responds with {echoed[:40]}" if echoed else "does not confirm it"
    return fail("version", f"requested {SERVICE_VERSION}, but the service {said}", upgrade)


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
        yield _not_listed(f"{error.path or 'the body'} {error.problem}")
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
