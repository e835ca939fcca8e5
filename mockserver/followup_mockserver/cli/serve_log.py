"""The log of a mock: a line for each API call, webhook attempt and test control, in columns.

The time at the beginning of a line is the real one. That of the mock's clock is named as such, or relative.
"""

import os
import queue
import threading
import time
from contextlib import suppress
from typing import Self, TextIO

from followup._for_mockserver import visible
from followup.cli.output import painted, style_of, terminal_width
from followup_mockserver.control.log_lines import columns_of
from followup_mockserver.world.state.journal import OBSERVERS, Ended, EndedAttempt

_LONGEST_QUEUE = 10_000
"""Lines that wait for the reader of the output; further ones are dropped."""

_BETWEEN_WRITES = 0.05
"""Seconds. A thread that woke up for each line would delay each call, because Python runs one thread at a time."""

_LAST_LINES = 0.5
"""Seconds that the end waits for the lines that are still in the queue."""


class ServeLog:
    """Writes a line for each call, attempt and test control of the mocks in this process; a context manager.

    A reader that has stopped reading must not stop the mock: a thread of its own writes the lines, and drops some when
    it is too far behind.

    Args:
        output: where it writes them.
    """

    def __init__(self, output: TextIO) -> None:
        self._queue: queue.SimpleQueue[tuple[str, Ended] | None] = queue.SimpleQueue()
        self._dropped = 0
        self._ends = threading.Event()
        self._width = terminal_width() if output.isatty() else None
        self._output = output.fileno()
        self._encoding = output.encoding or "utf-8"
        # A daemon, because it may be blocked by a pipe that nobody reads.
        self._thread = threading.Thread(target=self._write_all, name="followup-mock log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        OBSERVERS.append(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        OBSERVERS.remove(self._take)
        self._queue.put(None)
        self._ends.set()
        self._thread.join(_LAST_LINES)

    def _take(self, event: Ended) -> None:
        if self._queue.qsize() < _LONGEST_QUEUE:
            self._queue.put((time.strftime("%H:%M:%S"), event))
        else:
            self._dropped += 1

    def _write_all(self) -> None:
        with suppress(OSError):  # the reader has closed the pipe
            while (item := self._queue.get()) is not None:
                self._ends.wait(_BETWEEN_WRITES)
                waiting = [item, *(self._queue.get() for _ in range(self._queue.qsize()))]
                taken = (each for each in waiting if each is not None)
                lines = [f"{at}  {line}\n" for at, event in taken if (line := _line_of(event, self._width))]
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


_TIME = len("00:00:00  ")
_TITLE = len("webhook_deliveries.retrieve")
_ABOUT = len("apt_LtcE")
"""The width of a column on a terminal. So much of an id is enough for the commands that take one."""


def _line_of(event: Ended, width: int | None) -> str:
    """Return the line of what has ended, after the time; empty if it has none.

    Args:
        event: what has ended.
        width: the columns of the terminal, which cut the line; None for another output, which gets all of it.
    """
    status, title, about, remarks = columns_of(event)
    if not title:
        return ""
    shown = about if width is None else f"{about[:_ABOUT]:{_ABOUT}}"
    line = visible("  ".join([f"{status:3}", f"{title:{_TITLE}}", shown, *filter(None, remarks)]).rstrip())
    if width is not None and len(line) > width - _TIME:
        line = f"{line[: width - _TIME - 1]}…"
    if isinstance(event, EndedAttempt) and event.attempt.number > 1:
        return painted(line, "dim")
    return painted(status, style_of(status)) + line[len(status) :]
