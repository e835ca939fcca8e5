"""What the commands print: tables on a terminal, JSON Lines with ``--json`` or in a pipe."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from followup.models import Model
from followup.wire import encode

_BETWEEN_COLUMNS = 3
"""Characters: a space on both sides, and a line."""


def fail(message: str) -> NoReturn:
    """End the command with one clear line."""
    sys.exit(f"followup: {message}")


def show_one(result: Model, *, as_json: bool) -> None:
    """Print an object."""
    fields = encode(result)
    if as_json or not sys.stdout.isatty():
        _print_json(fields)
        return
    table = Table(show_header=False, show_edge=False)
    for name, value in fields.items():
        table.add_row(name, Text(_cell(value)))
    Console().print(table)


def show_many(results: Iterable[Model], *, as_json: bool) -> None:
    """Print objects, each as it comes; a table waits for all of them."""
    if as_json or not sys.stdout.isatty():
        for result in results:
            _print_json(encode(result))
        return
    rows = [encode(result) for result in results]
    if not rows:
        Console().print("Nothing.")
        return
    columns = _telling_columns(rows)
    shown = _fitting(rows, columns, Console().width)
    Console().print(table_of(rows, shown))
    if left_out := [name for name in columns if name not in shown]:
        Console().print(f"No room for {', '.join(left_out)}; --json shows everything.", style="dim", highlight=False)


def progress(*columns: ProgressColumn | str) -> Progress:
    """A display on standard error that goes when it is done, and leaves standard output alone.

    Unless told so, rich takes what is printed meanwhile to its own console: out of the pipe that it was meant for.
    """
    console = Console(stderr=True)
    return Progress(
        *columns,
        console=console,
        disable=not console.is_terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _telling_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns in which something stands, without those that are the same for every object or of little use."""
    return [name for name in rows[0] if name not in ("object", "updatedAt") and any(row.get(name) for row in rows)]


def _fitting(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], width: int) -> list[str]:
    """As many of the columns, in their order, as stand side by side without a cell in two lines; at least the first."""
    fitting: list[str] = []
    for column in columns:
        wide = max(cell_len(text) for text in (column, *(_cell(row.get(column)) for row in rows)))
        if not fitting or wide + _BETWEEN_COLUMNS <= width:
            fitting.append(column)
            width -= wide + _BETWEEN_COLUMNS
    return fitting


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Rows as a table."""
    table = Table(show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")  # an id that is cut short cannot be copied
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    return table


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
