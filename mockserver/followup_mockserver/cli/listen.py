"""A line for each attempt to deliver to a URL, as it happens."""

import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from followup._for_mockserver import visible
from followup_mockserver.cli.remote import Remote
from followup_mockserver.http.control import LONGEST_WAIT


def listen_until_stopped(remote: Remote, url: str, events: Sequence[str], tell: Callable[[str], None]) -> None:
    """Have webhooks sent to a URL, and tell of each attempt, until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    endpoint = remote.post("/webhook_endpoints", {"url": url, "enabledEvents": list(events)})
    with contextlib.suppress(KeyboardInterrupt):
        tell(f"signing secret  {endpoint['secret']}")
        for attempt in _attempts(remote, endpoint["id"]):
            tell(visible(_line(attempt)))
    # Left behind, it would get every webhook beside the endpoint of the next run, signed with another secret.
    remote.delete(f"/webhook_endpoints/{endpoint['id']}")


def _attempts(remote: Remote, endpoint: str) -> Iterator[Mapping[str, Any]]:
    told: Counter[str] = Counter()
    while True:
        made = remote.get("/attempts", webhookEndpoint=endpoint, wait=LONGEST_WAIT, seen=told.total())["data"]
        # Counted, for a repeated attempt may look like the one that it repeats.
        known = told.copy()
        told = Counter(map(str, made))
        for attempt in made:
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
