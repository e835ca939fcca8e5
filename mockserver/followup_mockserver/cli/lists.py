"""The commands that list, and follow, what a mock has recorded: API calls, messages, webhook deliveries, reminders."""

import contextlib
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import typer

from followup._for_mockserver import annotations_of, visible
from followup.cli.application import Application
from followup.cli.options import AsJson, Columns, chosen_columns
from followup.cli.output import end_quietly, flush, json_line, limited_to, show_rows, warn, write_line
from followup_mockserver.cli.generated import control
from followup_mockserver.cli.remote import Remote
from followup_mockserver.cli.serve_log import remarks_on
from followup_mockserver.http import control_routes as routes

commands = Application()

Row = Mapping[str, Any]

_BETWEEN_LOOKS = 2.0
"""Seconds after which a command that writes to a pipe looks whether somebody still reads it."""

_DEFAULT_LIMIT = 20

_Limit = Annotated[int, typer.Option(min=1, help="Show the last N only.")]
_All = Annotated[bool, typer.Option("--all", help="Show all.")]
_Follow = Annotated[bool, typer.Option("--follow", help="Go on with a line for each new one, until Ctrl-C.")]


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
            before = version
            while version == before:
                version = remote.call(routes.changes, since=before, wait=longest_wait())["version"]
                end_if_unread()
            rows = fetch()
            # Counted, because two rows can be equal while the clock is frozen.
            for row in rows:
                if known[str(row)]:
                    known[str(row)] -= 1
                else:
                    write(row)


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


def _add(
    route: Callable[..., Any],
    fields: Sequence[str],
    *,
    newest_first: bool,
    wrapped: str | None = None,
    outcome: Callable[[Mapping[str, Any]], str] | None = None,
) -> None:
    """Add the command that lists what a route returns, the oldest first: the end of the output is the latest.

    Args:
        route: a function of the control API that returns a list.
        fields: the columns of the table, the most important first.
        newest_first: whether the route returns the newest first.
        wrapped: the column whose cells are wrapped, and not cut.
        outcome: returns the cell of the column ``outcome``, which JSON has only if it is chosen.
    """
    (kind,) = get_args(annotations_of(route)["return"])

    def command(
        remote: Remote,
        arguments: Mapping[str, Any],
        limit: _Limit = _DEFAULT_LIMIT,
        all_of_them: _All = False,
        follow_new: _Follow = False,
        columns: Columns = None,
        as_json: AsJson = False,
    ) -> None:
        chosen = chosen_columns(columns, kind, ("outcome",) if outcome is not None else ()) if columns else None

        def fetch() -> list[Mapping[str, Any]]:
            rows: list[Mapping[str, Any]] = remote.call(route, **arguments)["data"]
            if outcome is not None and (chosen is not None or (not as_json and sys.stdout.isatty())):
                rows = [{**row, "outcome": outcome(row) or None} for row in rows]
            return rows[::-1] if newest_first else rows

        def write(row: Row) -> None:
            if as_json or not sys.stdout.isatty():
                write_line(json_line(limited_to(chosen, row)))
            else:
                values = (row.get(name) for name in chosen or fields)
                write_line(visible("  ".join(str(value) for value in values if value is not None)))
            flush()

        if follow_new:
            follow(remote, fetch, write, last=None if all_of_them else limit)
            return
        rows = fetch()
        last = rows if all_of_them else rows[-limit:]
        show_rows(last, as_json, columns=fields, chosen=chosen, wrapped=wrapped)
        if len(last) < len(rows):
            warn(f"Showing the last {len(last)} of {len(rows)}; --all or --limit shows further ones.")

    command.__doc__ = (route.__doc__ or "").partition("\n")[0].replace("newest first", "oldest first")
    control(commands, route, name=route.__name__)(command)


_add(routes.reminders, ("sendAt", "patient", "appointment"), newest_first=False)
_add(routes.messages, ("sentAt", "kind", "phone", "text", "about"), newest_first=False, wrapped="text")
_add(
    routes.requests,
    ("at", "operation", "status", "outcome", "requestId"),
    newest_first=True,
    wrapped="outcome",
    outcome=lambda row: ", ".join(
        remarks_on({**row, "error_code": row.get("errorCode"), "ignored_keys": row.get("ignoredKeys")})
    ),
)
_add(
    routes.deliveries,
    ("eventType", "status", "lastStatusCode", "attempts", "lastError", "nextAttemptAt", "id"),
    newest_first=True,
)
