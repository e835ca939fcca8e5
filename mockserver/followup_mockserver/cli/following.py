"""Follows a list of a running mock, until Ctrl-C or SIGTERM."""

import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from followup_mockserver.cli.remote import Remote
from followup_mockserver.http import control_routes as routes

Row = Mapping[str, Any]


def follow(
    remote: Remote, fetch: Callable[[], Sequence[Row]], write: Callable[[Row], None], *, last: int | None = None
) -> None:
    """Report the rows of a list, and then each row that is new or has changed, until Ctrl-C or SIGTERM.

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
            version = remote.call(routes.changes, since=version, wait=routes.LONGEST_WAIT)["version"]
            rows = fetch()
            # Counted, because two rows can be equal while the clock is frozen.
            for row in rows:
                if known[str(row)]:
                    known[str(row)] -= 1
                else:
                    write(row)
