"""Tables and progress on a terminal, drawn with rich."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from followup._codec.encode import encode
from followup._model import Model
from followup._redaction import visible
from followup.cli.columns import Column, cell, filled_columns, fitting_columns, heading_of


def print_one(result: Model) -> None:
    """Print the fields of an object, one per row."""
    table = Table(show_header=False, show_edge=False)
    for name, value in encode(result).items():
        table.add_row(Text(visible(name)), Text(cell(value)))
    Console().print(table)


def print_many(results: Sequence[Model]) -> None:
    """Print objects of one class, one per row, in as many columns as fit."""
    if not results:
        Console().print("No results.")
        return
    rows = [encode(result) for result in results]
    print_rows(rows, filled_columns(type(results[0]), rows))


def print_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool = True) -> None:
    """Print rows in as many columns as fit, and name the columns that do not.

    Args:
        rows: the rows; at least one.
        names: the columns, the most important first.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
    """
    columns = fitting_columns(rows, names, Console().width, local_times=local_times)
    Console().print(_table(columns))
    if note := _note(columns, names):
        Console().print(Text(note, style="dim"))


def progress(*columns: ProgressColumn | str) -> Progress:
    """Return a progress display on standard error that disappears when it is done.

    It does not redirect standard output: by default, rich would write the output of the command to its own console,
    and not to the pipe.
    """
    shown = Console(stderr=True).is_interactive
    return Progress(
        *columns,
        # Quiet, because some versions of rich end a disabled display with an empty line.
        console=Console(stderr=True, quiet=not shown),
        disable=not shown,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Return the rows as a table, whose cells are wrapped and never cut."""
    table = Table(show_edge=False)
    for column in columns:
        table.add_column(Text(heading_of(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row.get(column))) for column in columns))
    return table


def _table(columns: Sequence[Column]) -> Table:
    table = Table(show_edge=False)
    for column in columns:
        table.add_column(Text(column.heading), width=column.width, no_wrap=False)
    for row in zip(*(column.shown for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _note(columns: Sequence[Column], names: Sequence[str]) -> str:
    """Return the line below a table about omitted columns, shortened cells and local times."""
    shown = [column.name for column in columns]
    parts = ["Times are local."] if any(column.has_local_times for column in columns) else []
    if omitted := [name for name in names if name not in shown]:
        parts.append(f"No room for {visible(', '.join(omitted))}.")
    if omitted or any(column.shown != column.full for column in columns):
        parts.append("--json shows everything.")
    return " ".join(parts)
