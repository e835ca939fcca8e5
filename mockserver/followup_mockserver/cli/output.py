"""The output of commands: a table on a terminal, JSON with ``--json`` or in a pipe."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from followup._for_mockserver import visible
from followup.cli.lines import json_line, write_line


def show(
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
    *,
    columns: Sequence[str] | None = None,
    wrap: bool = False,
    whole: object = None,
    title: str | None = None,
    nothing: str = "No results.",
) -> None:
    """Print rows as a table or as JSON.

    Args:
        rows: the rows.
        as_json: whether to print JSON on a terminal, too.
        columns: the columns of the table, the most important first; by default all. Those without a value in any row
            are omitted.
        wrap: whether long cells are wrapped; by default, only the columns that fit side by side are shown.
        whole: the value to print as JSON instead of the rows.
        title: a line above the table.
        nothing: the line that is printed if there are no rows; may be empty.
    """
    if as_json or not sys.stdout.isatty():
        write_line(json_line(rows if whole is None else whole))
        return
    # Imported late, because a pipe and a help page need no tables.
    from rich.console import Console

    from followup.cli.tables import print_rows, table_of

    console = Console()
    if title is not None:
        console.print(visible(title), highlight=False, markup=False)
    if not rows:
        if nothing:
            console.print(nothing, highlight=False, markup=False)
        return
    filled = [name for name in columns or list(rows[0]) if any(row.get(name) for row in rows)]
    if wrap:
        console.print(table_of(rows, filled))
    else:
        print_rows(rows, filled, local_times=False)  # the times of the mock are compared with its clock, which is UTC
