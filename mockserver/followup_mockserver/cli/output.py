"""The output of commands: a table on a terminal, JSON Lines with ``--json`` or in a pipe."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from followup._for_mockserver import visible
from followup.cli.lines import flush, json_line, write_line
from followup.cli.output import limited_to


def show(
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
    *,
    columns: Sequence[str] | None = None,
    chosen: Sequence[str] | None = None,
    wrap: bool = False,
    wrapped: str | None = None,
    whole: object = None,
    title: str | None = None,
    nothing: str = "No results.",
) -> None:
    """Print rows as a table or as JSON Lines.

    Args:
        rows: the rows.
        as_json: whether to print JSON on a terminal, too.
        columns: the columns of the table, the most important first; by default all. Those without a value in any row
            are omitted.
        chosen: the fields to print instead, in a table and in JSON.
        wrap: whether long cells are wrapped; by default, only the columns that fit side by side are shown.
        wrapped: the only column whose cells are wrapped, among those that fit.
        whole: the value to print as one line of JSON instead of the rows.
        title: a line above the table.
        nothing: the line that is printed if there are no rows; may be empty.
    """
    if as_json or not sys.stdout.isatty():
        for value in (limited_to(chosen, row) for row in rows) if whole is None else (whole,):
            write_line(json_line(value))
        return
    # Imported late, because a pipe and a help page need no tables.
    from rich.console import Console

    from followup.cli.tables import print_chosen, print_rows, table_of

    console = Console()
    if title is not None:
        console.print(visible(title), highlight=False, markup=False)
    if not rows:
        if nothing:
            console.print(nothing, highlight=False, markup=False)
        return
    if chosen is not None:
        print_chosen(rows, chosen, local_times=False)
        return
    filled = [name for name in columns or list(rows[0]) if any(row.get(name) for row in rows)]
    if wrap:
        console.print(table_of(rows, filled))
    else:
        # The times of the mock are compared with its clock, which is UTC.
        print_rows(rows, filled, local_times=False, wrapped=wrapped)


def write_followed(
    row: Mapping[str, Any], as_json: bool, *, columns: Sequence[str], chosen: Sequence[str] | None
) -> None:
    """Print a row of a list that is followed: its values side by side, or JSON.

    Args:
        row: the row.
        as_json: whether to print JSON on a terminal, too.
        columns: the fields to print; in JSON all.
        chosen: the fields to print instead, also in JSON.
    """
    if as_json or not sys.stdout.isatty():
        write_line(json_line(limited_to(chosen, row)))
    else:
        values = (row.get(name) for name in chosen or columns)
        write_line(visible("  ".join(str(value) for value in values if value is not None)))
    flush()
