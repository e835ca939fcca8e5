"""What the commands print: a table on a terminal, JSON in a pipe."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from followup._for_mockserver import visible
from followup.cli.lines import json_line, write_line
from followup.cli.output import table_of


def show(
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
    *,
    columns: Sequence[str] | None = None,
    whole: object = None,
    title: str | None = None,
) -> None:
    """Print rows.

    Args:
        as_json: whether JSON is wanted also on a terminal.
        columns: those to show in a table; all when left out.
        whole: what to print as JSON instead of the rows.
        title: a line above the table.
    """
    if as_json or not sys.stdout.isatty():
        write_line(json_line(rows if whole is None else whole))
        return
    console = Console()
    if title is not None:
        console.print(visible(title), highlight=False, markup=False)
    if not rows:
        console.print("Nothing.")
        return
    console.print(table_of(rows, columns or list(rows[0])))
