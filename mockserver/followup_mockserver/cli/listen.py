"""``followup-mock listen``, which prints a line for each attempt to deliver a webhook to a URL."""

import contextlib
import hashlib
import signal
import textwrap
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, WEBHOOK_RETRY_WAITS, format_timestamp, visible
from followup.cli.application import Application
from followup.cli.exits import reject
from followup.cli.output import flush, warn, write_line
from followup.cli.values import parts_of
from followup_mockserver.cli.generated import control, reject_unless_one_of
from followup_mockserver.cli.lists import end_if_unread, longest_wait
from followup_mockserver.cli.remote import Remote
from followup_mockserver.http import control_routes as routes
from followup_mockserver.schema.formats import SECRET_RULE, is_valid_secret, is_webhook_target
from followup_mockserver.webhooks.payloads import EVERY_TYPE, OUTBOUND_TYPES

commands = Application()

_LONGEST_RESPONSE = 100
"""Characters of the first line of a response that are shown."""


@control(commands)
def listen(
    remote: Remote,
    forward_to: Annotated[str, typer.Option(help="URL of the receiver that you are developing.")],
    events: Annotated[
        list[str] | None,
        typer.Option(
            help="Event types; * for all. Separated by commas; the option can be repeated.",
            metavar="LIST",
            show_default="*",
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="Signing secret of the receiver; by default one that stays the same for this URL."),
    ] = None,
) -> None:
    """Deliver webhooks to a receiver, and print a line for each attempt.

    Registers an endpoint for the receiver and prints its signing secret, which stays the same for this URL. Each line
    has the status and the first line of the response, and the time of the next attempt. The endpoint is removed when
    the command is stopped with Ctrl-C or SIGTERM.
    """
    chosen = parts_of(events or (EVERY_TYPE,))
    for each in chosen:
        reject_unless_one_of("--events", each, [EVERY_TYPE, *OUTBOUND_TYPES], "event types, or * for all")
    if not is_webhook_target(forward_to):
        reject("--forward-to must be an https URL, or an http URL of a loopback address such as http://127.0.0.1:8000")
    if secret is not None and not is_valid_secret(secret):
        reject(f"--secret must be {SECRET_RULE}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = {"url": forward_to, "enabled_events": chosen, "secret": secret or _secret_of(forward_to)}
    endpoint = remote.call(routes.add_webhook_endpoint, **settings)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):  # Ctrl-C, or the reader of the pipe is gone
        _write_now(f"signing secret  {endpoint['secret']}")
        warn(f"Forwarding {', '.join(endpoint['enabledEvents'])} to {forward_to}. Ctrl-C stops it.")
        for attempt in _attempts(remote, endpoint["id"]):
            _write_now(visible(_line_of(attempt)))
    # Otherwise the next run would receive each webhook twice.
    remote.call(routes.delete_webhook_endpoint, endpoint["id"])


def _secret_of(url: str) -> str:
    """Return a secret that stays the same for a URL on this computer, so that a receiver is configured once."""
    return "whsec_" + hashlib.sha256(f"{uuid.getnode()} {url}".encode()).hexdigest()[:32]


def _write_now(line: str) -> None:
    write_line(line)
    flush()


def _attempts(remote: Remote, endpoint: str) -> Iterator[Mapping[str, Any]]:
    reported: Counter[str] = Counter()
    while True:
        query = {"webhook_endpoint": endpoint, "wait": longest_wait(), "seen": reported.total()}
        attempts = remote.call(routes.attempts, **query)["data"]
        end_if_unread()
        # Counted, because a repeated attempt can equal the one that it repeats.
        known = reported.copy()
        reported = Counter(map(_identity, attempts))
        for attempt in attempts:
            if known[_identity(attempt)]:
                known[_identity(attempt)] -= 1
            else:
                yield attempt


def _identity(attempt: Mapping[str, Any]) -> str:
    """Return what identifies an attempt: all but the response, which the mock does not keep for ever."""
    return str({**attempt, "response": None})


def _line_of(attempt: Mapping[str, Any]) -> str:
    """Return the line of an attempt: what the receiver responded, and when the next attempt is due."""
    number, is_scheduled = attempt["number"], attempt["trigger"] == "schedule"
    again = "" if is_scheduled else f" ({attempt['trigger']})"
    parts = [attempt["at"], attempt["eventType"], attempt["delivery"], f"attempt {number}{again}"]
    parts.append(str(attempt["error"] or attempt["statusCode"]))
    body = (attempt["response"] or {}).get("body", "").strip()
    if body:
        parts.append(textwrap.shorten(body.splitlines()[0], _LONGEST_RESPONSE, placeholder="…"))
    if attempt["error"] and is_scheduled and number >= MAX_WEBHOOK_ATTEMPTS:
        parts.append("that was the last attempt")
    elif attempt["error"] and is_scheduled:
        due = datetime.fromisoformat(attempt["at"]) + WEBHOOK_RETRY_WAITS[number - 1]
        parts.append(f"next attempt at {format_timestamp(due)}")
    return "  ".join(parts)
