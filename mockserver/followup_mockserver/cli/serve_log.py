"""The log of ``followup-mock serve``: a line on standard output for each API call and each attempt of a delivery.

A reader that has stopped reading must not stop the mock: lines are written by a thread of their own, which drops lines
when it is too far behind.
"""

import os
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, TextIO

import attrs

from followup._for_mockserver import format_timestamp, redacted, visible
from followup.cli.output import painted, style_of, with_local_times
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state import observers
from followup_mockserver.world.state.observers import EndedAttempt, EndedCall
from followup_mockserver.world.state.outcomes import Kind, Outcome

_LONGEST_QUEUE = 10_000
"""Lines that wait for the reader of the output; further ones are dropped."""

_BETWEEN_WRITES = 0.05
"""Seconds. A thread that woke up for each line would delay each call, because Python runs one thread at a time."""

_LAST_LINES = 0.5
"""Seconds that the end waits for the lines that are still in the queue."""

_LONGEST_PARAM = 60
"""Characters of a parameter that are shown; a client can send any name."""
_LONGEST_PATH = 200
_MOST_SHOWN = 5
"""Ignored keys, and ids of events, that are shown; the journal has all."""

_Item = tuple[str, EndedCall | EndedAttempt]


class ServeLog:
    """Writes a line for each call and each attempt of the mocks in this process; a context manager.

    Args:
        output: where it writes them.
    """

    def __init__(self, output: TextIO) -> None:
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._dropped = 0
        self._ends = threading.Event()
        self._output = output.fileno()
        self._encoding = output.encoding or "utf-8"
        # A daemon, because it may be blocked by a pipe that nobody reads.
        self._thread = threading.Thread(target=self._write_all, name="followup-mock log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        observers.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        observers.remove(self)
        self._queue.put(None)
        self._ends.set()
        self._thread.join(_LAST_LINES)

    def call_ended(self, event: EndedCall | EndedAttempt, /) -> None:
        """Queue the line of a call or an attempt."""
        if self._queue.qsize() < _LONGEST_QUEUE:
            self._queue.put((time.strftime("%H:%M:%S"), event))
        else:
            self._dropped += 1

    attempt_ended = call_ended

    def _write_all(self) -> None:
        with suppress(OSError):  # the reader has closed the pipe
            while (item := self._queue.get()) is not None:
                self._ends.wait(_BETWEEN_WRITES)
                waiting = [item, *(self._queue.get() for _ in range(self._queue.qsize()))]
                lines = [f"{each[0]}  {_line_of(each[1])}\n" for each in waiting if each is not None]
                if self._dropped:
                    dropped, self._dropped = self._dropped, 0
                    lines.append(f"{item[0]}  {dropped} lines were dropped, because the output was not read\n")
                self._write("".join(lines))
                if waiting[-1] is None:
                    break

    def _write(self, lines: str) -> None:
        # Not through sys.stdout, whose lock a blocked thread would hold when the process ends.
        rest = lines.encode(self._encoding, "backslashreplace")
        while rest:
            rest = rest[os.write(self._output, rest) :]


def _line_of(event: EndedCall | EndedAttempt) -> str:
    if isinstance(event, EndedCall):
        status, line = event.status, line_of_call(event)
    else:
        status, line = event.attempt.status_code or 0, line_of_attempt(event)
    shown = str(status or "---")
    return f"{painted(shown, style_of(shown))}  {line}"


def line_of_call(call: EndedCall) -> str:
    """Return the line of a call, after the time and the status."""
    entry = call.entry
    path = redacted(entry.path, max_length=_LONGEST_PATH)  # of a client that takes a phone for an id
    parts = [f"{entry.method} {path}", entry.operation or "no operation", f"{call.seconds * 1000:.0f} ms"]
    return visible("  ".join([*parts, *remarks_on(attrs.asdict(entry, recurse=False))]))


def remarks_on(call: Mapping[str, Any]) -> list[str]:
    """Return what is special about a call, such as ``3 of 4 refused``; nothing for a plain success.

    Args:
        call: the fields of a ``JournalEntry``.
    """
    param = redacted(call.get("param") or "", max_length=_LONGEST_PARAM)
    remarks = [
        f"fault: {call['fault']}" if call.get("fault") else f"{call.get('error_code') or ''} {param}".strip(),
        f"{call['refused']} of {call['events']} refused" if call.get("refused") else "",
        f"attempt {call['attempt']}" if call.get("attempt", 1) > 1 else "",
        "replayed" if call.get("replayed") else "",
        f"duplicate of {call['possible_duplicate_of']}?" if call.get("possible_duplicate_of") else "",
        f"ignored: {_first(call['ignored_keys'])}" if call.get("ignored_keys") else "",
    ]
    if call.get("changed_duplicates"):
        outcome = Outcome(Kind.CHANGED_DUPLICATE)
        remarks.append(f"{outcome.what} ({_first(call['changed_duplicates'])}): {outcome.why}")
    return [each for each in remarks if each]


def _first(texts: Sequence[str]) -> str:
    shown = ", ".join(redacted(each, max_length=_LONGEST_PARAM) for each in texts[:_MOST_SHOWN])
    more = len(texts) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def line_of_attempt(ended: EndedAttempt) -> str:
    """Return the line of an attempt, after the time and the status."""
    attempt = ended.attempt
    again = "" if attempt.trigger == "schedule" else f" ({attempt.trigger})"
    parts = [f"webhook {attempt.event_type}", f"attempt {attempt.number}{again} to {without_query(ended.url)}"]
    if attempt.error is not None:
        parts.append(attempt.error)
    if ended.next_attempt_at is not None:
        parts.append(f"next attempt at {with_local_times(format_timestamp(ended.next_attempt_at))}")
    elif ended.exhausted:
        parts.append("that was the last attempt")
    return visible("  ".join(parts))
