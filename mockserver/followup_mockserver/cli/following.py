"""Follows a list of a running mock, until Ctrl-C or SIGTERM."""

import contextlib
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from followup.cli.lines import end_quietly
from followup_mockserver.cli.remote import Remote
from followup_mockserver.http import control_routes as routes

Row = Mapping[str, Any]

_BETWEEN_LOOKS = 2.0
"""Seconds after which a command that writes to a pipe looks whether somebody still reads it."""


def follow(
    remote: Remote, fetch: Callable[[], Sequence[Row]], write: Callable[[Row], None], *, last: int | None = None
) -> None:
    """Report the rows of a list, and then each row that is new or has changed, until Ctrl-C or SIGTERM.

    It also ends, with success, when the reader of standard output has closed the pipe.

    Args:
        remote: the mock.
        fetch: fetches the list, the oldest row first.
        write: reports a row.
        last: number of rows that are reported of those that are there at first; None: all.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        version = remote.call(routes.changes)["version"]
        rows = fetch()
        for row in rows if last is None else rows[-last:]:
            write(row)
        while True:
            known: Counter[str] = Counter(map(str, rows))
            version = _changed(remote, version)
            rows = fetch()
            # Counted, because two rows can be equal while the clock is frozen.
            for row in rows:
                if known[str(row)]:
                    known[str(row)] -= 1
                else:
                    write(row)


def _changed(remote: Remote, version: int) -> int:
    """Wait until the state has another version, and return it."""
    while True:
        current: int = remote.call(routes.changes, since=version, wait=longest_wait())["version"]
        if current != version:
            return current
        end_if_unread()


def longest_wait() -> float:
    """Return the seconds to wait for news: in a pipe few, because its reader may be gone meanwhile."""
    return routes.LONGEST_WAIT if sys.stdout.isatty() else _BETWEEN_LOOKS


def end_if_unread() -> None:
    """End the command with success if nobody reads standard output any more.

    A write would find out, but there may be nothing to write. Windows cannot tell.
    """
    if not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(sys.stdout, 0)  # errors are always reported
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        end_quietly()
