"""The commands that list what a mock has recorded: API calls, messages, webhook deliveries, and pending reminders."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import typer

from followup._for_mockserver import annotations_of
from followup.cli.application import Application
from followup.cli.options import AsJson, Columns, chosen_columns
from followup.cli.output import warn
from followup_mockserver.cli.control_commands import control
from followup_mockserver.cli.following import follow
from followup_mockserver.cli.output import show, write_followed
from followup_mockserver.cli.remote import Remote
from followup_mockserver.cli.serve_log import remarks_on
from followup_mockserver.http import control_routes as routes

commands = Application()

_DEFAULT_LIMIT = 20

_Limit = Annotated[int, typer.Option(min=1, help="Show the last N only.")]
_All = Annotated[bool, typer.Option("--all", help="Show all.")]
_Follow = Annotated[bool, typer.Option("--follow", help="Go on with a line for each new one, until Ctrl-C.")]


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

        if follow_new:
            follow(
                remote,
                fetch,
                lambda row: write_followed(row, as_json, columns=fields, chosen=chosen),
                last=None if all_of_them else limit,
            )
            return
        rows = fetch()
        last = rows if all_of_them else rows[-limit:]
        show(last, as_json, columns=fields, chosen=chosen, wrapped=wrapped)
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
