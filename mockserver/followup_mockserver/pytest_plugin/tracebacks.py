"""The tracebacks of mounted receivers, for the report of a failing test."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from followup import WebhookDelivery
from followup._for_mockserver import redacted
from followup_mockserver.state.records import Attempt

MAX_TRACEBACKS = 3
"""Tracebacks in a report."""

MAX_TRACEBACK_LINES = 24
"""Lines of a traceback that are shown, the last."""

_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


class Tracebacks:
    """The tracebacks of one report, each of them only once.

    Args:
        shown_already: the rest of the report. pytest itself shows the traceback of an exception that ended the test.
    """

    def __init__(self, shown_already: str) -> None:
        self._shown_already = shown_already
        self._seen: set[str] = set()

    def of(self, delivery: WebhookDelivery, attempts: Sequence[Attempt]) -> Iterator[str]:
        """Yield the lines of the last traceback among the attempts of a delivery."""
        last = next((each for each in reversed(attempts) if each.traceback), None)
        if last is None or last.traceback is None or last.traceback in self._seen or self._is_shown(last.traceback):
            return
        self._seen.add(last.traceback)
        if len(self._seen) > MAX_TRACEBACKS:
            return
        yield f"receiver of {delivery.event_type} ({delivery.id}), attempt {last.number}:"
        # Numbers and addresses in it may be personal data: the exception may quote the payload.
        lines = [f"  {redacted(line)}" for line in last.traceback.rstrip().split("\n")]
        if len(lines) > MAX_TRACEBACK_LINES:
            yield f"  … {len(lines) - MAX_TRACEBACK_LINES} lines omitted"
        yield from lines[-MAX_TRACEBACK_LINES:]

    def _is_shown(self, traceback: str) -> bool:
        """Return whether the rest of the report has the exception, and the line that raised it."""
        *_, raised = traceback.rstrip().split("\n")
        frames = [*_FRAME.finditer(traceback)]
        place = f"{PurePath(frames[-1]['file']).name}:{frames[-1]['line']}" if frames else ""
        return raised in self._shown_already and place in self._shown_already
