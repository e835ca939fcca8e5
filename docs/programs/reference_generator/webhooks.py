"""The page about webhooks: the request, its signature, its retries, and the functions that verify it."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import followup
from followup import WebhookEvent, WebhookSignatureError, construct_event, verify_signature
from followup._core.api_rules import MAX_WEBHOOK_ATTEMPTS, WEBHOOK_ATTEMPT_TIMEOUT, WEBHOOK_RETRY_WAITS
from followup.fastapi import inbox_router, webhook_event
from followup.webhooks import SIGNATURE_HEADER, TIMESTAMP_HEADER, WEBHOOK_TOLERANCE, sign
from followup_mockserver.gateway.openapi import document

from .entries import PythonNames, class_section, function_text, members_of
from .markdown import page, section, table

PATH = "webhooks"

_INTRODUCTION = """\
The service posts each event to every enabled endpoint that is subscribed to its type:
[the catalogue](events/index.md) has all types. [Receive webhooks](../how-to/receivers.md) shows a receiver, and
[Inbox](../how-to/inbox.md) one that loses no event.
"""

_REQUEST = """\
The body is JSON: its fields are those of [`WebhookEvent`](#webhookevent), in camelCase. These are the headers:
"""

_SIGNATURE = f"""\
The signed text is the timestamp, a dot, and the raw body. The signature is `sha256=` and the HMAC-SHA256 of this text
with the secret of the endpoint as its key, in lowercase hexadecimal digits. Compare it in constant time, and reject a
timestamp that is more than {WEBHOOK_TOLERANCE // 60} minutes off.
[`verify_signature`](#verify-signature) does all of this. [How webhooks work](../concepts/webhooks.md#the-signature) has
functions without dependencies in Python, JavaScript, Java, PHP and C#.
"""

_RETRIES = f"""\
An attempt succeeds if the endpoint responds with any 2xx status within {WEBHOOK_ATTEMPT_TIMEOUT:.0f} seconds.
Redirects are not followed. After the {MAX_WEBHOOK_ATTEMPTS}th failed attempt the delivery is `failed`. Disabling or
deleting the endpoint ends its retries. The same event may arrive twice, and events may arrive out of order: deduplicate
by `id`, and order by `occurredAt`.
"""

_REASONS = """\
A [`WebhookSignatureError`](error_classes.md#webhooksignatureerror) has one of these as its `reason`:
"""

_SECRET, _NOW, _BODY = "whsec_1", 1_790_000_000, b"{}"


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    yield (
        PATH,
        page(
            "Webhooks",
            _INTRODUCTION,
            section(2, "Request", _REQUEST, _headers()),
            section(2, "Signature", _SIGNATURE),
            section(2, "Attempts", _RETRIES, _attempts()),
            section(2, "verify_signature", function_text("verify_signature", verify_signature, PATH)),
            section(2, "construct_event", function_text("construct_event", construct_event, PATH)),
            section(2, "webhook_event", function_text("followup.fastapi.webhook_event", webhook_event, PATH)),
            section(2, "inbox_router", function_text("followup.fastapi.inbox_router", inbox_router, PATH)),
            section(2, "Reasons", _REASONS, _reasons()),
            class_section(WebhookEvent, "WebhookEvent", PATH, owner="WebhookEvent", members=_members()),
        ),
    )


def homes() -> Iterator[tuple[str, str]]:
    """Iterate over the classes: name and page."""
    yield "WebhookEvent", PATH


def python_names() -> PythonNames:
    """Iterate over the functions, the class and its members."""
    for name in ("verify_signature", "construct_event"):
        yield PATH, name, f"{followup.__name__}.{name}", "function"
    for name in ("webhook_event", "inbox_router"):
        yield PATH, name, f"{followup.__name__}.fastapi.{name}", "function"
    yield PATH, "WebhookEvent", "followup.WebhookEvent", "class"
    for name, _ in _members():
        yield PATH, f"WebhookEvent.{name}", f"followup.WebhookEvent.{name}", "method"


def _members() -> list[tuple[str, object]]:
    return [(name, value) for name, value in members_of(WebhookEvent) if name in vars(WebhookEvent)]


def _headers() -> str:
    parameters = document()["webhooks"]["event"]["post"]["parameters"]
    rows = [(f"`{each['name']}`", _quoted(each["description"])) for each in parameters]
    return table(["Header", "Content"], rows)


def _quoted(text: str) -> str:
    """Return a text whose placeholders in angle brackets are code, because Markdown would take them for HTML."""
    return re.sub(r"<\S.*>", lambda found: f"`{found[0]}`", text)


def _attempts() -> str:
    rows, since_first = [("1", "at once", "0")], timedelta()
    for number, wait in enumerate(WEBHOOK_RETRY_WAITS, start=2):
        since_first += wait
        rows.append((str(number), _duration(wait), _duration(since_first)))
    return table(["Attempt", "Wait after the previous one", "Time since the first"], rows)


def _duration(value: timedelta) -> str:
    hours, minutes = divmod(value.seconds // 60, 60)
    parts = ((value.days, "d"), (hours, "h"), (minutes, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _reasons() -> str:
    return table(["Reason", "Message"], [_reason(each) for each in _INVALID_REQUESTS])


def _reason(request: Callable[[], object]) -> tuple[str, str]:
    try:
        request()
    except WebhookSignatureError as error:
        return f"`{error.reason}`", str(error)
    raise AssertionError("the request is valid")


def _headers_of(body: bytes, secret: str, sent: int) -> dict[str, str]:
    return {SIGNATURE_HEADER: sign(body, secret, sent), TIMESTAMP_HEADER: str(sent)}


def _construct(headers: dict[str, str], body: bytes = _BODY) -> object:
    return construct_event(body, headers, _SECRET, now=_NOW)


_INVALID_REQUESTS: tuple[Callable[[], object], ...] = (
    lambda: _construct({}),
    lambda: _construct({SIGNATURE_HEADER: "x", TIMESTAMP_HEADER: str(_NOW)}),
    lambda: _construct(_headers_of(_BODY, "whsec_2", _NOW)),
    lambda: _construct(_headers_of(_BODY, _SECRET, _NOW - 2 * WEBHOOK_TOLERANCE)),
    lambda: _construct(_headers_of(_BODY, _SECRET, _NOW + 2 * WEBHOOK_TOLERANCE)),
    lambda: _construct(_headers_of(json.dumps([]).encode(), _SECRET, _NOW), b"[]"),
)
