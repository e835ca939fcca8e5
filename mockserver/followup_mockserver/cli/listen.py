"""``followup-mock listen``, which prints a line for each attempt to deliver a webhook to a URL."""

import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from followup._for_mockserver import visible
from followup_mockserver.cli.remote import Remote
from followup_mockserver.http import control_routes as routes


def listen_until_stopped(remote: Remote, url: str, events: Sequence[str], write: Callable[[str], None]) -> None:
    """Create an endpoint for a URL and report each delivery attempt, until Ctrl-C or SIGTERM; then remove it.

    Args:
        remote: the mock.
        url: URL that the webhooks are delivered to.
        events: the event types; ``*`` for all.
        write: prints a line.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    endpoint = remote.call(routes.add_webhook_endpoint, url=url, enabled_events=list(events))
    with contextlib.suppress(KeyboardInterrupt):
        write(f"signing secret  {endpoint['secret']}")
        for attempt in _attempts(remote, endpoint["id"]):
            write(visible(_line(attempt)))
    # Otherwise the next run would receive each webhook twice, one of them signed with the secret of this endpoint.
    remote.call(routes.delete_webhook_endpoint, endpoint["id"])


def _attempts(remote: Remote, endpoint: str) -> Iterator[Mapping[str, Any]]:
    reported: Counter[str] = Counter()
    while True:
        query = {"webhook_endpoint": endpoint, "wait": routes.LONGEST_WAIT, "seen": reported.total()}
        attempts = remote.call(routes.attempts, **query)["data"]
        # Counted, because a repeated attempt can equal the one that it repeats.
        known = reported.copy()
        reported = Counter(map(str, attempts))
        for attempt in attempts:
            if known[str(attempt)]:
                known[str(attempt)] -= 1
            else:
                yield attempt


def _line(attempt: Mapping[str, Any]) -> str:
    outcome = attempt["error"] or attempt["statusCode"]
    again = "" if attempt["trigger"] == "schedule" else f" ({attempt['trigger']})"
    return (
        f"{attempt['at']}  {attempt['eventType']}  {attempt['delivery']}  attempt {attempt['number']}{again}  {outcome}"
    )
