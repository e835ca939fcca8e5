"""The probe: a URL of the receiver's side that responds with how often each event was handled."""

import json
import threading
from collections.abc import Collection, Mapping
from typing import Any

from followup_mockserver.receiver_check.connecting import Origin, Unreachable
from followup_mockserver.state.clock import RealTime

EXPECTED = '200 and {"handled": {EVENT_ID: TIMES}}'
MAX_BYTES = 16 * 1024 * 1024

_BETWEEN_REQUESTS = 0.1
"""Seconds."""


class Probe:
    """A probe.

    Args:
        url: an https URL, or an http URL of a loopback address.
        timeout: seconds that it has for a response.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._origin = Origin(url, "probe", timeout)

    def handled(self) -> Mapping[str, int]:
        """Return how often each event was handled, by id; events that were not may be missing.

        Raises:
            Unreachable: the probe cannot be reached, or its response is invalid.
        """
        status, body = self._origin.get({"accept": "application/json", "user-agent": "followup-mock"}, MAX_BYTES)
        if status != 200:
            raise Unreachable(f"the probe responded with status {status}; expected {EXPECTED}")
        if len(body) > MAX_BYTES:
            raise Unreachable(f"the response of the probe has more than {MAX_BYTES} bytes; expected {EXPECTED}")
        handled = _decoded(body)
        if problem := _problem_of(handled):
            raise Unreachable(f"the response of the probe {problem}; expected {EXPECTED}")
        return dict(handled)

    def handled_at_last(self, wanted: Collection[str], *, patience: float, settling: float) -> Mapping[str, int]:
        """Wait until events have been handled, then a little for what is handled again, and return the counts.

        Args:
            wanted: ids of the events.
            patience: seconds after which the counts are returned in any case.
            settling: seconds to wait after all were handled.

        Raises:
            Unreachable: the probe cannot be reached, or its response is invalid.
        """
        pause = threading.Event()
        ends = RealTime.monotonic() + patience
        settled = False
        while True:
            handled = self.handled()
            if not settled and all(handled.get(each) for each in wanted):
                settled, ends = True, min(ends, RealTime.monotonic() + settling)
            if RealTime.monotonic() >= ends:
                return handled
            pause.wait(_BETWEEN_REQUESTS)


def _decoded(body: bytes) -> Any:
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return decoded.get("handled") if isinstance(decoded, dict) else None


def _problem_of(handled: Any) -> str:
    """Return what is wrong with the counts; empty if nothing is."""
    if not isinstance(handled, dict):
        return 'is not a JSON object with an object "handled"'
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in handled.values()):
        return "has a count that is not a whole number, 0 or more"
    return ""
