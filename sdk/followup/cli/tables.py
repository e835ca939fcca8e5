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

from followup._codec.encode import encode
from followup._codec.names import parse_timestamp
from followup._privacy.redaction import visible
from followup._results.results import Model
from followup.cli.values import zone_of

_BETWEEN = 3
"""Characters between two columns: a space on each side of a line."""

_ENOUGH = 20
"""The width that a column of text keeps while other columns need room."""

_LEAST = 12
"""The width in which a column that is wrapped is still worth reading."""

_LONGEST_WORD = 30
"""Longer cells are text, even without a space. Ids and times are shorter."""

_PRIORITIES: Mapping[str, Sequence[str]] = {
    "Patient": ("fullName", "phone", "id", "stage", "externalId", "dni", "email", "optedOut", "dateOfBirth"),
    "Doctor": ("fullName", "specialty", "active", "externalId", "id", "licenseNumber"),
    "Appointment": ("startAt", "status", "externalId", "patient", "id", "type", "doctor", "source", "cancelledAt"),
    "Visit": ("visitedAt", "externalId", "patient", "id", "type", "doctor", "appointment", "source", "diagnosis"),
    "IntakeRequest": ("status", "createdAt", "patient", "id", "missing", "summary", "discardReason", "readyAt"),
    "Treatment": ("name", "kind", "active", "patient", "id", "dosage", "frequency", "startDate", "endDate"),
    "Event": ("type", "status", "sourceRef", "error", "receivedAt", "id", "occurredAt", "source", "result"),
    "EventResult": ("id", "status", "error", "event"),
    "WebhookEndpoint": ("url", "status", "enabledEvents", "id", "lastError", "lastDeliveredAt", "description"),
    "WebhookDelivery": ("eventType", "status", "lastStatusCode", "attempts", "lastError", "nextAttemptAt", "id"),
}
"""The most important fields of each class. Those that are missing here follow in the order of their declaration."""

_NEVER = ("object", "updatedAt")

_ID = re.compile(r"^([a-z]+_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{4})[A-Za-z0-9]{4,}([A-Za-z0-9]{4})$")
"""An id, and its parts that are shown where there is little room. in_conversation is a stage, not an id."""

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def print_one(result: Model) -> None:
    """Print the fields of an object, one per row."""
    table = Table(show_header=False, show_edge=False)
    for name, value in encode(result).items():
        table.add_row(Text(visible(name)), Text(_cell(value)))
    Console().print(table)


def print_many(results: Sequence[Model], chosen: Sequence[str] | None = None) -> None:
    """Print objects of one class, one per row, in the chosen columns or in as many as fit."""
    if not results:
        Console().print("No results.")
        return
    rows = [encode(result) for result in results]
    first = _PRIORITIES.get(type(results[0]).__name__, ())
    rest = [name for name in rows[0] if name not in first and name not in _NEVER]
    filled = [name for name in (*first, *rest) if any(row.get(name) for row in rows)]
    print_rows(rows, chosen or filled, all_of_them=chosen is not None, local_times=True)


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    *,
    all_of_them: bool = False,
    local_times: bool = False,
    wrapped: str | None = None,
) -> None:
    """Print rows in as many columns as fit, and name the columns that do not.

    Args:
        rows: the rows; at least one.
        names: the columns, the most important first.
        all_of_them: whether all columns are printed. Then cells are wrapped where they do not fit, and never cut.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
        wrapped: the column whose cells are wrapped, and not cut.
    """
    console = Console()
    columns = [_Column.of(name, rows, local_times=local_times) for name in names]
    is_cut = not all_of_them and sum(column.width + _BETWEEN for column in columns) > console.width + 1
    if is_cut:
        short = [attrs.evolve(each, texts=[_ID.sub(r"\1…\2", text) for text in each.texts]) for each in columns]
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
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]], *, local_times: bool) -> "_Column":
        """Create the column of a field."""
        texts = [_brief(row.get(name)) for row in rows]
        is_text = any(" " in text or len(text) > _LONGEST_WORD for text in texts)
        heading = visible(re.sub(r"([A-Z])", lambda found: f" {found[1].lower()}", name))
        times = {each: parse_timestamp(each).astimezone() for each in texts if _TIMESTAMP.fullmatch(each)}
        if local_times and times:
            zone = zone_of(next(iter(times.values())))
            heading = f"{heading} ({zone})"
            shown = {text: (f"{time:%Y-%m-%d %H:%M}", zone_of(time)) for text, time in times.items()}
            # A cell on the other side of a change of the clocks names its own zone.
            locally = {text: time if its == zone else f"{time} {its}" for text, (time, its) in shown.items()}
            texts = [locally.get(text, text) for text in texts]
        return cls(name, heading, texts, is_text)

    @property
    def width(self) -> int:
        """The width at which no cell is cut. A heading wraps between words."""
        return max(cell_len(text) for text in (*self.heading.split(), *self.texts))


def _fitting(columns: Sequence[_Column], width: int, wrapped: str | None) -> list[_Column]:
    """Return as many of the columns, in their order, as fit side by side; at least the first.

    A column that does not fit is skipped, and a narrower one after it may take its place. rich cuts texts, the longest
    first.
    """
    fitting: list[_Column] = []
    room = width + 1  # the last column has no line after it
    for column in columns:
        needed = min(column.width, _ENOUGH) if column.is_text else column.width
        least = min(needed, _LEAST) if column.name == wrapped else needed
        if not fitting or least + _BETWEEN <= room:
            fitting.append(column)
            room -= needed + _BETWEEN
    return fitting


def _table(columns: Sequence[_Column], wrapped: Collection[str | None]) -> Table:
    """Return a table whose cells are wrapped in some columns, and cut in the others."""
    table = Table(show_edge=False)
    for column in columns:
        is_wrapped = column.name in wrapped
        width = None if is_wrapped or column.is_text else column.width
        overflow: Any = "fold" if is_wrapped else "ellipsis"
        table.add_column(Text(column.heading), width=width, max_width=column.width, overflow=overflow)
    for row in zip(*(column.texts for column in columns), strict=True):
        cells = zip(columns, row, strict=True)
        table.add_row(*(Text(text, no_wrap=column.name not in wrapped) for column, text in cells))
    return table


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
