"""The lists that commands print: as a table on a terminal, as JSON Lines in a pipe, as CSV, or as ids alone.

A command that is decorated with a ``Listing`` has the options ``--json``, ``--csv`` and ``--ids``. rich, which draws
tables and progress, is imported late, because it is slow to import.
"""

import csv
import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import attrs
import typer

from followup._core.codec.kinds import wire_fields
from followup._core.redaction import visible
from followup.cli.options import AsJson, keyword
from followup.cli.output import json_line, reject, say, short_ids, style_of, with_local_times, write_line, zone_at

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")
Row = Mapping[str, Any]

OPTIONS = (
    keyword("as_json", AsJson, default=False),
    keyword("as_csv", Annotated[bool, typer.Option("--csv", help="Print CSV, with a header.")], False),
    keyword("as_ids", Annotated[bool, typer.Option("--ids", help="Print only the ids, one a line.")], default=False),
)
"""The options that choose the output, as parameters of a command."""

_IMPORTANT: Mapping[str, Sequence[str]] = {
    "Patient": ("fullName", "phone", "id", "stage", "externalId", "dni", "email", "optedOut", "dateOfBirth"),
    "Doctor": ("fullName", "specialty", "active", "externalId", "id", "licenseNumber"),
    "Appointment": ("startAt", "status", "externalId", "patient", "id", "type", "doctor", "source", "cancelledAt"),
    "Visit": ("visitedAt", "externalId", "patient", "id", "type", "doctor", "appointment", "source", "diagnosis"),
    "IntakeRequest": ("status", "createdAt", "patient", "id", "missing", "summary", "discardReason", "readyAt"),
    "Treatment": ("name", "kind", "active", "patient", "id", "dosage", "frequency", "startDate", "endDate"),
    "Event": ("type", "status", "sourceRef", "error", "receivedAt", "id", "occurredAt", "source", "result"),
    "WebhookEndpoint": ("url", "status", "enabledEvents", "id", "lastError", "lastDeliveredAt", "description"),
    "WebhookDelivery": ("eventType", "status", "id", "lastStatusCode", "lastError", "attempts", "webhookEndpoint"),
}
"""The most important fields of each class. In a table, those that are missing here follow in their order."""

_NEVER = ("object", "updatedAt", "payload")
"""Fields that are in no table."""


@attrs.frozen(kw_only=True)
class Listing:
    """What a list has; the decorator of a command that prints it.

    Attributes:
        fields: names of the fields of a row, which are the columns of CSV.
        columns: the columns of a table, the most important first; by default all fields.
        id: the field that ``--ids`` prints.
        wrapped: the column of a table whose cells are wrapped, and not cut.
        nothing: the line on a terminal if there are no rows; may be empty.
    """

    fields: Sequence[str]
    columns: Sequence[str] = ()
    id: str = "id"
    wrapped: str | None = None
    nothing: str = "No results."

    @classmethod
    def of(cls, kind: type[Any], *more: str, columns: Sequence[str] = (), **options: Any) -> "Listing":
        """Return the listing of the objects of a class.

        Args:
            kind: the class.
            more: further fields.
            columns: the columns of a table; by default the most important fields of the class, then the others.
            options: the other attributes.
        """
        fields = [*wire_fields(kind).values(), *more]
        first = _IMPORTANT.get(kind.__name__, ())
        rest = (name for name in fields if name not in first and name not in _NEVER)
        return cls(fields=fields, columns=columns or (*first, *rest), **options)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a command that has these options, and passes their ``Output`` to a function as ``output``."""

        @functools.wraps(function)
        def command(*passed: Any, **values: Any) -> None:
            function(*passed, output=self.output(values), **values)

        signature = inspect.signature(function)
        own = (each for name, each in signature.parameters.items() if name != "output")
        command.__signature__ = signature.replace(parameters=[*own, *OPTIONS])  # type: ignore[attr-defined]
        return command

    def output(self, values: dict[str, Any]) -> "Output":
        """Remove the values of the options from those of a command, and return what they choose.

        Raises:
            CommandFailed: two of them exclude each other.
        """
        formats = [name for name in ("json", "csv", "ids") if values.pop(f"as_{name}")]
        if len(formats) > 1:
            reject(f"--{formats[0]} and --{formats[1]} cannot be combined")
        return Output(self, formats[0] if formats else "table" if sys.stdout.isatty() else "json")


@attrs.frozen
class Output:
    """The output of a list, as its options choose it.

    Attributes:
        listing: what the list has.
        format: ``table``, ``json``, ``csv`` or ``ids``.
    """

    listing: Listing
    format: str

    def print(self, rows: Iterable[Row], *, whole: object = None, title: str | None = None, unit: str = "") -> None:
        """Print rows; each at once, unless it is a table.

        Args:
            rows: the rows.
            whole: the value to print as one line of JSON instead of the rows.
            title: a line above a table.
            unit: what is counted while the rows come, on a terminal that has no lines of the output; empty: nothing.
        """
        # A bar and lines of output would overwrite each other on one terminal.
        if unit and sys.stderr.isatty() and (self.format == "table" or not sys.stdout.isatty()):
            rows = counted(rows, unit, "Fetching")
        if self.format == "table":  # whose columns are as wide as their longest cell
            self._print_table([*rows], title)
        elif self.format == "json" and whole is not None:
            write_line(json_line(whole))
        else:
            write = self.writer()
            for row in rows:
                write(row)

    def writer(self) -> Callable[[Row], None]:
        """Return the function that prints a row at once, instead of a table as a line. CSV begins with its header."""
        if self.format == "table":
            names = self.listing.columns
            joined = "  ".join
            return lambda row: say(with_local_times(joined(str(row[n]) for n in names if row.get(n)), live=True))
        if self.format == "ids":
            return lambda row: say(str(row[self.listing.id]))
        if self.format == "json":
            return lambda row: write_line(json_line(row))
        # The csv module ends lines with CRLF, as RFC 4180 says; a text stream of Windows would add another CR.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")  # type: ignore[union-attr]
        names, shown = self.listing.fields, visible if sys.stdout.isatty() else str
        output: Any = SimpleNamespace(write=functools.partial(write_line, end=""))  # a reader may stop early
        records = csv.writer(output)
        records.writerow(names)
        return lambda row: records.writerow([shown(_cell(row.get(name))) for name in names])

    def _print_table(self, rows: Sequence[Row], title: str | None) -> None:
        if title is not None:
            say(title)
        if rows:
            columns = self.listing.columns or self.listing.fields
            _print_rows(rows, [name for name in columns if any(row.get(name) for row in rows)], self.listing)
        elif self.listing.nothing:
            say(self.listing.nothing)


_FORMULA = re.compile(r"[=+\-@\t\r\n]")
"""The beginning of a cell that a spreadsheet may run as a formula."""

_HARMLESS = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?|\+\d[\d ().-]{4,}")
"""A number, or a phone."""


def _cell(value: object) -> str:
    """Return a value as a cell of CSV: nothing for null, JSON for what has no text, and no formula."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if _FORMULA.match(text) and not _HARMLESS.fullmatch(text) else text


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


def show_one(fields: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an object: on a terminal one line for each field, else JSON."""
    if as_json or not sys.stdout.isatty():
        write_line(json_line(fields))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, _BETWEEN, 0, 0))
    for name, value in fields.items():
        table.add_row(Text(_heading(name)), _styled(name, _full(value)))
    Console().print(table)


def _print_rows(rows: Sequence[Row], names: Sequence[str], listing: Listing) -> None:
    """Print rows in as many of the columns as fit, with local times, and name the columns that do not fit."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    columns = [_Column.of(name, rows, is_own_id=name == listing.id) for name in names]
    # No space follows the last column.
    is_cut = sum(column.width + _BETWEEN for column in columns) > console.width + _BETWEEN
    if is_cut:
        columns = _fitting(columns, console.width, listing)
    console.print(_table(columns, listing))
    shown = [column.name for column in columns]
    omitted = visible(", ".join(name for name in names if name not in shown))
    if is_cut:
        note = f"No room for {omitted}. " if omitted else ""
        console.print(Text(f"{note}--json shows everything.", style="dim"))


def counted(items: Iterable[T], unit: str, doing: str) -> Iterator[T]:
    """Iterate over items whose number is not known, and show how many there were so far."""
    with progress(unit) as bar:
        yield from bar.track(items, description=doing)


def progress(unit: str) -> "Progress":
    """Return a progress display on standard error that disappears when it is done.

    It shows the description of a task, a bar, and the numbers, such as "rows: 12,400 of about 50,000, 63 s left".

    Args:
        unit: what is counted.

    It does not redirect standard output: by default, rich would write the output of the command to its own console,
    and not to the pipe.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Numbers(ProgressColumn):
        def render(self, task: Task) -> Text:
            total = "" if task.total is None else f" of about {task.total:,.0f}"
            left = "" if task.time_remaining is None else f", {task.time_remaining:,.0f} s left"
            return Text(f"{unit}: {task.completed:,.0f}{total}{left}")

    shown = Console(stderr=True).is_interactive
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        Numbers(),
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
    def of(cls, name: str, rows: Sequence[Row], *, is_own_id: bool) -> "_Column":
        """Create the column of a field."""
        texts = [_brief(row.get(name)) for row in rows]
        is_text = not is_own_id and any(" " in text or len(text) > _LONGEST_WORD for text in texts)
        heading = _heading(name)
        zone = next(filter(None, map(zone_at, texts)), None)
        if zone is not None:
            heading, texts = f"{heading} ({zone})", [with_local_times(text, zone) for text in texts]
        return cls(name, heading, texts, is_text)

    @property
    def width(self) -> int:
        """The width at which no cell is cut, and the heading has two lines at most."""
        from rich.cells import cell_len

        words = self.heading.split(" ")
        lines = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words) + 1))
        heading = min(max(map(cell_len, each)) for each in lines)
        return max(heading, *map(cell_len, self.texts))


def _fitting(columns: Sequence[_Column], width: int, listing: Listing) -> list[_Column]:
    """Return as many of the columns, in their order, as fit side by side; at least that of the ids, or the first.

    A column that does not fit is skipped, and a narrower one after it may take its place. Ids of other objects are
    shortened if they do not fit otherwise. rich cuts texts, the longest first.
    """
    fitting: dict[str, _Column] = {}
    room = width + _BETWEEN
    for column in sorted(columns, key=lambda each: each.name != listing.id):
        short = attrs.evolve(column, texts=[*map(short_ids, column.texts)])
        # Whole ids first, since a row is copied to find the other object.
        for each in [short] if column.is_text else [column, short]:
            needed = min(each.width, _ENOUGH) if each.is_text else each.width
            least = min(needed, _LEAST) if each.name == listing.wrapped else needed
            if each.name not in fitting and (not fitting or least + _BETWEEN <= room):
                fitting[each.name] = each
                room -= needed + _BETWEEN
    return [fitting[each.name] for each in columns if each.name in fitting]


def _table(columns: Sequence[_Column], listing: Listing) -> "Table":
    """Return a table whose cells are wrapped in one column, and in that of the ids, and cut in the others."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0))
    whole = (listing.id, listing.wrapped)
    for column in columns:
        width = None if column.name == listing.wrapped or column.is_text else column.width
        overflow: Any = "fold" if column.name in whole else "ellipsis"
        table.add_column(Text(column.heading), width=width, max_width=column.width, overflow=overflow)
    for row in zip(*(column.texts for column in columns), strict=True):
        cells = zip(columns, row, strict=True)
        table.add_row(*(_styled(each.name, text, no_wrap=each.name not in whole) for each, text in cells))
    return table


def _heading(name: str) -> str:
    return visible(re.sub("[A-Z]", lambda found: f" {found[0].lower()}", name))


def _styled(name: str, text: str, **options: Any) -> "Text":
    from rich.text import Text

    return Text(text, style_of(text) if name in _STATES else "", **options)


def _full(value: object) -> str:
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
    return _full(value)
