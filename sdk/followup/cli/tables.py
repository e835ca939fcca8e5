"""Tables and progress on a terminal, drawn with rich: objects, and lists with the most important columns first."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from followup._core.privacy.redaction import visible
from followup.cli.texts import short_ids, style_of, with_local_times, zone_at

_BETWEEN = 2
"""Spaces between two columns; without lines, a row can be copied."""

_ENOUGH = 20
"""The width that a column of text keeps while other columns need room."""

_LEAST = 12
"""The width in which a column that is wrapped is still worth reading."""

_LONGEST_WORD = 30
"""Longer cells are text, even without a space. Ids and times are shorter."""

_STATES = ("status", "state", "lastStatusCode", "outcome")
"""Columns whose cells have a colour that says how good they are."""


def print_one(fields: Mapping[str, Any]) -> None:
    """Print the fields of an object, one per row."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, _BETWEEN, 0, 0))
    for name, value in fields.items():
        table.add_row(Text(_heading(name)), _styled(name, _cell(value)))
    Console().print(table)


def print_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, all_of_them: bool = False, wrapped: str | None = None
) -> None:
    """Print rows in as many columns as fit, with local times, and name the columns that do not fit.

    Args:
        rows: the rows; at least one.
        names: the columns, the most important first.
        all_of_them: whether all columns are printed. Then cells are wrapped where they do not fit, and never cut.
        wrapped: the column whose cells are wrapped, and not cut.
    """
    console = Console()
    columns = [_Column.of(name, rows) for name in names]
    is_cut = not all_of_them and sum(column.width + _BETWEEN for column in columns) > console.width + _BETWEEN
    if is_cut:
        short = [attrs.evolve(each, texts=[*map(short_ids, each.texts)]) for each in columns]
        columns = _fitting(short, console.width, wrapped)
    console.print(_table(columns, names if all_of_them else (wrapped,)))
    shown = [column.name for column in columns]
    omitted = visible(", ".join(name for name in names if name not in shown))
    if is_cut:
        note = f"No room for {omitted}: choose with --columns. " if omitted else ""
        console.print(Text(f"{note}--json shows everything.", style="dim"))


def progress(*columns: ProgressColumn) -> Progress:
    """Return a progress display on standard error that disappears when it is done.

    It shows the description of a task, a bar, these columns, and the time that is left.

    It does not redirect standard output: by default, rich would write the output of the command to its own console,
    and not to the pipe.
    """
    shown = Console(stderr=True).is_interactive
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        # Quiet, because some versions of rich end a disabled display with an empty line.
        console=Console(stderr=True, quiet=not shown),
        disable=not shown,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


@attrs.frozen
class _Column:
    """A column of a table on a terminal.

    Attributes:
        heading: the name in words, with the time zone of its times; it may wrap.
        texts: its cells.
        is_text: whether cells may be cut or wrapped; ids, times and single words never are.
    """

    name: str
    heading: str
    texts: list[str]
    is_text: bool

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> "_Column":
        """Create the column of a field."""
        texts = [_brief(row.get(name)) for row in rows]
        is_text = any(" " in text or len(text) > _LONGEST_WORD for text in texts)
        heading = _heading(name)
        zone = next(filter(None, map(zone_at, texts)), None)
        if zone is not None:
            heading, texts = f"{heading} ({zone})", [with_local_times(text, zone) for text in texts]
        return cls(name, heading, texts, is_text)

    @property
    def width(self) -> int:
        """The width at which no cell is cut, and the heading has two lines at most."""
        words = self.heading.split(" ")
        lines = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words) + 1))
        heading = min(max(map(cell_len, each)) for each in lines)
        return max(heading, *map(cell_len, self.texts))


def _fitting(columns: Sequence[_Column], width: int, wrapped: str | None) -> list[_Column]:
    """Return as many of the columns, in their order, as fit side by side; at least the first.

    A column that does not fit is skipped, and a narrower one after it may take its place. rich cuts texts, the longest
    first.
    """
    fitting: list[_Column] = []
    room = width + _BETWEEN
    for column in columns:
        needed = min(column.width, _ENOUGH) if column.is_text else column.width
        least = min(needed, _LEAST) if column.name == wrapped else needed
        if not fitting or least + _BETWEEN <= room:
            fitting.append(column)
            room -= needed + _BETWEEN
    return fitting


def _table(columns: Sequence[_Column], wrapped: Collection[str | None]) -> Table:
    """Return a table whose cells are wrapped in some columns, and cut in the others."""
    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0))
    for column in columns:
        is_wrapped = column.name in wrapped
        width = None if is_wrapped or column.is_text else column.width
        overflow: Any = "fold" if is_wrapped else "ellipsis"
        table.add_column(Text(column.heading), width=width, max_width=column.width, overflow=overflow)
    for row in zip(*(column.texts for column in columns), strict=True):
        cells = zip(columns, row, strict=True)
        table.add_row(*(_styled(column.name, text, no_wrap=column.name not in wrapped) for column, text in cells))
    return table


def _heading(name: str) -> str:
    """Return the name of a field in words."""
    return visible(re.sub("[A-Z]", lambda found: f" {found[0].lower()}", name))


def _styled(name: str, text: str, **options: Any) -> Text:
    return Text(text, style_of(text) if name in _STATES else "", **options)


def _cell(value: object) -> str:
    """Return a value as the text of a cell, in full and on one line."""
    if value is None:
        return "-"
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _brief(value: object) -> str:
    """Return a value in a short form: the message of an error, the items of a list."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return visible(", ".join(value))
    if isinstance(value, Mapping) and isinstance(value.get("message"), str):
        return visible(value["message"])
    return _cell(value)
