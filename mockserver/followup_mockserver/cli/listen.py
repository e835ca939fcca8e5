"""``followup-mock listen``, which prints a line for each attempt to deliver a webhook to a URL."""

import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, WEBHOOK_RETRY_WAITS, format_timestamp, visible
from followup.cli.output import warn
from followup_mockserver.cli.following import end_if_unread, longest_wait
from followup_mockserver.cli.remote import Remote
from followup_mockserver.http import control_routes as routes

_LONGEST_RESPONSE = 100
"""Characters of the first line of a response that are shown."""


def listen_until_stopped(
    remote: Remote, url: str, events: Sequence[str], secret: str, write: Callable[[str], None]
) -> None:
    """Create an endpoint for a URL and report each delivery attempt, until Ctrl-C or SIGTERM; then remove it.

    Args:
        remote: the mock.
        url: URL that the webhooks are delivered to.
        events: the event types; ``*`` for all.
        secret: signing secret of the endpoint.
        write: prints a line.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    endpoint = remote.call(routes.add_webhook_endpoint, url=url, enabled_events=list(events), secret=secret)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):  # Ctrl-C, or the reader of the pipe is gone
        write(f"signing secret  {endpoint['secret']}")
        warn(f"Forwarding {', '.join(endpoint['enabledEvents'])} to {url}. Ctrl-C stops it.")
        for attempt in _attempts(remote, endpoint["id"]):
            write(visible(line_of(attempt)))
    # Otherwise the next run would receive each webhook twice.
    remote.call(routes.delete_webhook_endpoint, endpoint["id"])


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


def line_of(attempt: Mapping[str, Any]) -> str:
    """Return the line of an attempt: what the receiver responded, and when the next attempt is due."""
    again = "" if attempt["trigger"] == "schedule" else f" ({attempt['trigger']})"
    parts = [attempt["at"], attempt["eventType"], attempt["delivery"], f"attempt {attempt['number']}{again}"]
    parts.append(str(attempt["error"] or attempt["statusCode"]))
    body = (attempt["response"] or {}).get("body", "").strip()
    if body:
        first = body.splitlines()[0]
        parts.append(first if len(first) <= _LONGEST_RESPONSE else first[: _LONGEST_RESPONSE - 1] + "…")
    if attempt["error"] and attempt["trigger"] == "schedule":
        parts.append(_what_follows(attempt["number"], datetime.fromisoformat(attempt["at"])))
    return "  ".join(parts)


def _what_follows(number: int, at: datetime) -> str:
    if number >= MAX_WEBHOOK_ATTEMPTS:
        return "that was the last attempt"
    return f"next attempt at {format_timestamp(at + WEBHOOK_RETRY_WAITS[number - 1])}"
