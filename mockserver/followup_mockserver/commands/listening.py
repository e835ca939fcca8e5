"""A line for each attempt to deliver, as it happens."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from followup_mockserver.commands.remote import Remote
from followup_mockserver.wire.control import LONGEST_WAIT


def follow(remote: Remote, endpoint: str, tell: Callable[[str], None]) -> None:
    """Tell every attempt to deliver to an endpoint, until Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        for attempt in _attempts(remote, endpoint):
            tell(_line(attempt))


def _attempts(remote: Remote, endpoint: str) -> Iterator[Mapping[str, Any]]:
    told: set[tuple[str, int]] = set()
    while True:
        made = remote.get("/attempts", webhookEndpoint=endpoint, wait=LONGEST_WAIT, seen=len(told))["data"]
        for attempt in made:
            key = (attempt["delivery"], attempt["number"])
            if key not in told:
                told.add(key)
                yield attempt


def _line(attempt: Mapping[str, Any]) -> str:
    outcome = attempt["error"] or attempt["statusCode"]
    return f"{attempt['at']}  {attempt['eventType']}  {attempt['delivery']}  attempt {attempt['number']}  {outcome}"
