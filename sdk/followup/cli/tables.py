"""Tables and progress on a terminal, drawn with rich: objects, and lists with the most important columns first."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from followup._codec.encode import encode
from followup._codec.names import parse_timestamp
from followup._redaction import visible
from followup._results.results import Model
from followup.cli.values import zone_of

_BETWEEN = 3
"""Characters between two columns: a space on each side of a line."""

_TEXTS = (
    "text",
    "fullName",
    "specialty",
    "type",
    "diagnosis",
    "summary",
    "missing",
    "name",
    "dosage",
    "frequency",
    "url",
    "description",
    "error",
    "lastError",
    "enabledEvents",
    "result",
    "outcome",
)
"""The fields whose columns may be cut or wrapped; other columns are never cut."""

_ENOUGH = 20
"""The width that a column of text keeps while other columns need room."""

_LEAST = 12
"""The width in which a column that is wrapped is still worth reading."""

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

_ID = re.compile(r"[a-z]+_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{12,}")  # in_conversation is a stage, not an id
_ID_ENDS = 4
_COPIED = ("id", "about")
"""The columns whose ids a reader copies into another command; they are whole if there is room."""

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
    if chosen is None:
        print_rows(rows, _filled_columns(type(results[0]), rows), local_times=True)
    else:
        print_table(rows, chosen, local_times=True)


def print_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool = False, wrapped: str | None = None
) -> None:
    """Print rows in as many columns as fit, and name the columns that do not.

    Args:
        rows: the rows; at least one.
        names: the columns, the most important first.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
        wrapped: the column whose cells are wrapped, and not cut.
    """
    console = Console()
    columns = _fitting(rows, names, console.width, local_times=local_times, wrapped=wrapped)
    console.print(_table(columns, wrapped=() if wrapped is None else (wrapped,)))
    if note := _note(columns, names, console.width):
        console.print(Text(note, style="dim"))


def print_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool = False) -> None:
    """Print rows in all of these columns, as ``table_of`` arranges them."""
    Console().print(table_of(rows, names, local_times=local_times))


def table_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool = False) -> Table:
    """Return the rows as a table with these columns and whole ids. Cells are wrapped if they do not fit, never cut.

    Args:
        rows: the rows; at least one.
        names: the columns.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
    """
    columns = [_Column.of(name, rows, local_times=local_times, short_ids=False) for name in names]
    return _table(columns, wrapped=names)


def _table(columns: "Sequence[_Column]", wrapped: Collection[str]) -> Table:
    """Return a table whose cells are wrapped in some columns, and cut in the others."""
    table = Table(show_edge=False)
    for column in columns:
        is_wrapped = column.name in wrapped
        table.add_column(
            Text(column.heading),
            width=None if is_wrapped or column.name in _TEXTS else column.width,
            max_width=column.width,
            overflow="fold" if is_wrapped else "ellipsis",
        )
    for row in zip(*(column.texts for column in columns), strict=True):
        cells = zip(columns, row, strict=True)
        table.add_row(*(Text(text, no_wrap=column.name not in wrapped) for column, text in cells))
    return table


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


def _filled_columns(kind: type[Model], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the columns that have a value in any row, the most important first."""
    first = _PRIORITIES.get(kind.__name__, ())
    rest = [name for name in rows[0] if name not in first and name not in _NEVER]
    return [name for name in (*first, *rest) if any(row.get(name) for row in rows)]


@attrs.frozen
class _Column:
    """A column of a table on a terminal.

    Attributes:
        texts: its cells, in a short form.
        full: its cells in full.
        zone: name of the time zone of the times in the column; empty if there are none.
    """

    name: str
    texts: list[str]
    full: list[str]
    zone: str = ""

    @classmethod
    def of(
        cls, name: str, rows: Sequence[Mapping[str, Any]], *, local_times: bool, short_ids: bool = True
    ) -> "_Column":
        """Create the column of a field."""
        values = [row.get(name) for row in rows]
        texts = [_brief(value, short_ids=short_ids) for value in values]
        zone = ""
        if local_times:
            texts, zone = _in_local_time(texts)
        return cls(name, texts, [_cell(value) for value in values], zone)

    @property
    def heading(self) -> str:
        """The name in words, with the time zone; it may wrap."""
        return f"{_heading(self.name)} ({self.zone})" if self.zone else _heading(self.name)

    @property
    def width(self) -> int:
        """The width at which no cell is cut. A heading wraps between words."""
        return max(cell_len(text) for text in (*self.heading.split(), *self.texts))


def _fitting(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], width: int, *, local_times: bool, wrapped: str | None
) -> list[_Column]:
    """Return as many of the columns, in their order, as fit side by side; at least the first.

    A column that does not fit is skipped, and a narrower one after it may take its place. Ids that a reader copies are
    whole if there is room without cutting anything. rich cuts texts, the longest first.
    """
    columns: list[_Column] = []
    room = width + 1  # the last column has no line after it
    for column in (_Column.of(name, rows, local_times=local_times) for name in names):
        needed = min(column.width, _ENOUGH) if column.name in _TEXTS else column.width
        least = min(needed, _LEAST) if column.name == wrapped else needed
        if not columns or least + _BETWEEN <= room:
            columns.append(column)
            room -= needed + _BETWEEN
    for index, column in enumerate(columns):
        if column.name in _COPIED:
            whole = attrs.evolve(column, texts=column.full)
            if _width_of(columns) + whole.width - column.width <= width:
                columns[index] = whole
    return columns


def _width_of(columns: Sequence[_Column]) -> int:
    """Return the width of a table in which nothing is cut."""
    return sum(column.width + _BETWEEN for column in columns) - 1


def _note(columns: Sequence[_Column], names: Sequence[str], width: int) -> str:
    """Return the line below a table about omitted columns and shortened cells."""
    shown = [column.name for column in columns]
    omitted = visible(", ".join(name for name in names if name not in shown))
    if omitted:
        return f"No room for {omitted}: choose with --columns. --json shows everything."
    if _width_of(columns) > width or any(column.texts != column.full for column in columns if not column.zone):
        return "--json shows everything."
    return ""


def _heading(name: str) -> str:
    """Return the name of a field in words, as the heading of a column; it may wrap."""
    return visible(re.sub(r"([A-Z])", lambda found: f" {found[1].lower()}", name))


def _cell(value: object) -> str:
    """Return a value as the text of a cell, in full and on one line."""
    if value is None:
        return "-"
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _brief(value: object, *, short_ids: bool) -> str:
    """Return a value in a short form: the message of an error, an id without its middle."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return visible(", ".join(value))
    if isinstance(value, Mapping) and isinstance(value.get("message"), str):
        return visible(value["message"])
    text = _cell(value)
    if short_ids and _ID.fullmatch(text):
        prefix, _, opaque = text.partition("_")
        return f"{prefix}_{opaque[:_ID_ENDS]}…{opaque[-_ID_ENDS:]}"
    return text


def _in_local_time(texts: Sequence[str]) -> tuple[list[str], str]:
    """Return the cells of a column with local times, to the minute, instead of timestamps.

    Args:
        texts: the cells; timestamps of the service and other texts.

    Returns:
        The cells, and the name of the time zone for the heading. It is empty if there is no timestamp, and if the
        times are on both sides of a change of the clocks: then each cell names its zone.
    """
    times: dict[str, datetime] = {
        text: parse_timestamp(text).astimezone() for text in texts if _TIMESTAMP.fullmatch(text)
    }
    zones = {zone_of(time) for time in times.values()}
    (zone,) = zones if len(zones) == 1 else ("",)
    ending = "" if zone else " {}"
    shown = {text: f"{time:%Y-%m-%d %H:%M}" + ending.format(zone_of(time)) for text, time in times.items()}
    return [shown.get(text, text) for text in texts], zone
