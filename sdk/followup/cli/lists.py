"""The lists that commands print: as a table on a terminal, as JSON Lines in a pipe, as CSV, or as ids alone.

A command that is decorated with a ``Listing`` has the options ``--json``, ``--csv``, ``--ids`` and ``--columns``. What
draws tables is imported late.
"""

import csv
import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import attrs
import typer

from followup._core.codec.kinds import wire_fields
from followup._core.privacy.redaction import visible
from followup.cli.options import AsJson, keyword, spelling
from followup.cli.output import json_line, limited_to, reject, say, write_line
from followup.cli.texts import with_local_times
from followup.cli.values import parts_of

Row = Mapping[str, Any]

OPTIONS = (
    keyword("as_json", AsJson, default=False),
    keyword("as_csv", Annotated[bool, typer.Option("--csv", help="Print CSV, with a header.")], False),
    keyword("as_ids", Annotated[bool, typer.Option("--ids", help="Print only the ids, one a line.")], default=False),
    keyword(
        "columns",
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="LIST",
                help="Fields to show, in this order, separated by commas, such as id,external-id. Ids are then whole. "
                "JSON and CSV are limited to them, too.",
            ),
        ],
        None,
    ),
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
    "WebhookDelivery": (
        *("eventType", "status", "id", "lastStatusCode", "lastError", "attempts", "webhookEndpoint", "nextAttemptAt"),
    ),
}
"""The most important fields of each class. In a table, those that are missing here follow in their order."""

_NEVER = ("object", "updatedAt", "payload")
"""Fields that are in no table unless they are chosen."""


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
            CommandFailed: two of them exclude each other, or there is no such column.
        """
        columns = values.pop("columns")
        formats = [name for name in ("json", "csv", "ids") if values.pop(f"as_{name}")]
        if len(formats) > 1:
            reject(f"--{formats[0]} and --{formats[1]} cannot be combined")
        default = "table" if sys.stdout.isatty() else "json"
        return Output(self, formats[0] if formats else default, self._chosen(columns) if columns else None)

    def _chosen(self, texts: Iterable[str]) -> list[str]:
        """Return the names in ``--columns``: ``external-id``, ``external_id`` and ``externalId`` are the same field."""
        spellings = {spelling(name): name for name in self.fields}
        names = parts_of(texts)
        unknown = [name for name in names if spelling(name) not in spellings]
        if unknown or not names:
            problem = f"there is no column {unknown[0]}" if unknown else "it names no column"
            reject(f"--columns: {problem}; the columns are {', '.join(self.fields)}")
        return list(dict.fromkeys(spellings[spelling(name)] for name in names))


@attrs.frozen
class Output:
    """The output of a list, as its options choose it.

    Attributes:
        listing: what the list has.
        format: ``table``, ``json``, ``csv`` or ``ids``.
        chosen: the fields to print; None for all in JSON and CSV, and for those that fit in a table.
    """

    listing: Listing
    format: str
    chosen: Sequence[str] | None

    def print(self, rows: Iterable[Row], *, whole: object = None, title: str | None = None) -> None:
        """Print rows; each at once, unless it is a table.

        Args:
            rows: the rows.
            whole: the value to print as one line of JSON instead of the rows.
            title: a line above a table.
        """
        if self.format == "table":
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
            names = self.chosen or self.listing.columns
            return lambda row: say(with_local_times("  ".join(str(row[name]) for name in names if row.get(name))))
        if self.format == "ids":
            return lambda row: say(str(row[self.listing.id]))
        if self.format == "json":
            return lambda row: write_line(json_line(limited_to(self.chosen, row)))
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")  # type: ignore[union-attr]
        names, shown = self.chosen or self.listing.fields, visible if sys.stdout.isatty() else str
        records = csv.writer(_StandardOutput())
        records.writerow(names)
        return lambda row: records.writerow([shown(_cell(row.get(name))) for name in names])

    def _print_table(self, rows: Sequence[Row], title: str | None) -> None:
        from followup.cli.tables import print_rows

        if title is not None:
            say(title)
        if rows:
            columns = self.listing.columns or self.listing.fields
            names = self.chosen or [name for name in columns if any(row.get(name) for row in rows)]
            print_rows(rows, names, all_of_them=self.chosen is not None, wrapped=self.listing.wrapped)
        elif self.listing.nothing:
            say(self.listing.nothing)


class _StandardOutput:
    def write(self, text: str) -> None:
        write_line(text, end="")  # which ends the command if the reader has closed the pipe


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
