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
from followup.cli.columns import BETWEEN, Column, cell, filled_columns, fitting_columns, heading_of, whole_columns


def print_one(result: Model) -> None:
    """Print the fields of an object, one per row."""
    table = Table(show_header=False, show_edge=False)
    for name, value in encode(result).items():
        table.add_row(Text(visible(name)), Text(cell(value)))
    Console().print(table)


def print_many(results: Sequence[Model], chosen: Sequence[str] | None = None) -> None:
    """Print objects of one class, one per row, in the chosen columns or in as many as fit."""
    if not results:
        Console().print("No results.")
        return
    rows = [encode(result) for result in results]
    if chosen is None:
        print_rows(rows, filled_columns(type(results[0]), rows))
    else:
        print_chosen(rows, chosen)


def print_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool = True, wrapped: str | None = None
) -> None:
    """Print rows in as many columns as fit, and name the columns that do not.

    Args:
        rows: the rows; at least one.
        names: the columns, the most important first.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
        wrapped: the column whose cells are wrapped, and not cut.
    """
    columns = fitting_columns(rows, names, Console().width, local_times=local_times)
    Console().print(_table(columns, wrapped=wrapped))
    if note := _note(columns, names):
        Console().print(Text(note, style="dim"))


def print_chosen(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool = True) -> None:
    """Print rows in all of these columns, with whole ids. Cells wrap if the columns do not fit.

    Args:
        rows: the rows; at least one.
        names: the columns.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
    """
    columns = whole_columns(rows, names, local_times=local_times)
    needed = sum(column.width + BETWEEN for column in columns) - 1
    Console().print(_table(columns, fold=needed > Console().width))


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


def _table(columns: Sequence[Column], *, fold: bool = False, wrapped: str | None = None) -> Table:
    table = Table(show_edge=False)
    for column in columns:
        table.add_column(Text(column.heading), width=None if fold else column.width, overflow="fold")
    cells = (column.texts if column.name == wrapped else column.shown for column in columns)
    for row in zip(*cells, strict=True):
        table.add_row(*map(Text, row))
    return table


def _note(columns: Sequence[Column], names: Sequence[str]) -> str:
    """Return the line below a table about omitted columns and shortened cells."""
    shown = [column.name for column in columns]
    omitted = visible(", ".join(name for name in names if name not in shown))
    if omitted:
        return f"No room for {omitted}: choose with --columns. --json shows everything."
    if any(column.shown != column.full for column in columns if not column.zone):
        return "--json shows everything."
    return ""
