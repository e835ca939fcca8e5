"""What the commands print: a table on a terminal, JSON in a pipe."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


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
        sys.stdout.write(json.dumps(rows if whole is None else whole, ensure_ascii=False) + "\n")
        return
    console = Console()
    if title is not None:
        console.print(title, highlight=False, markup=False)
    if not rows:
        console.print("Nothing.")
        return
    table = Table(show_edge=False)
    shown = columns or list(rows[0])
    for column in shown:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in shown))
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
