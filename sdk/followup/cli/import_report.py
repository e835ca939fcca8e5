"""What the commands show of an import: the doubts grouped by code, as text, as JSON, or as one HTML page.

Values are personal data unless they are times, statuses or ids; those of all other columns are masked.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import attrs
from rich.cells import cell_len, set_cell_size

from followup._core.package_data import package_text
from followup._core.privacy.redaction import HIDDEN, visible
from followup.cli.output import json_line, say, say_wrapped, write_line

if TYPE_CHECKING:
    from followup.imports import Doubt, Import, Report

_FIRST = 5
"""Rows of each group in a text."""

_FIRST_ON_PAGE = 200
"""Rows of each group on a page, for the person who corrects them."""

_TEXTS = 3
"""Texts of one code that have a group of their own."""

_LONGEST_VALUE = 60
_LONGEST_LINE = 200

_MASKED = "<p>Values that may be personal data are masked. --show-personal-data shows them.</p>"


@attrs.define
class _Group:
    """Doubts with the same code and text; the first of them, and their number."""

    code: str
    text: str
    rejects: bool
    count: int = 0
    first: list["Doubt"] = attrs.field(factory=list)

    @property
    def counted(self) -> str:
        """How many there are, and what became of their rows."""
        return _count(self.count, "row" if self.rejects else "doubt") + (" rejected" if self.rejects else "")


def _grouped(report: "Report", most: int) -> list[_Group]:
    """Return the doubts in groups: those that reject rows first, then the largest."""
    groups: dict[str, dict[str, _Group]] = {}
    for each in report.doubts:
        of_code = groups.setdefault(each.code, {})
        text = each.text if each.text in of_code or len(of_code) < _TEXTS else next(reversed(of_code))
        group = of_code.setdefault(text, _Group(each.code, text, each.rejects))
        group.count += 1
        if len(group.first) < most:
            group.first.append(each)
    found = [group for of_code in groups.values() for group in of_code.values()]
    return sorted(found, key=lambda group: (not group.rejects, -group.count))


@attrs.define
class Shown:
    """The report of a file, and how it is shown.

    Attributes:
        report: the report.
        job: the import.
        file: the file.
        is_recorded: whether the run recorded the events, or too much was rejected or gone; None for a check.
        shows_values: whether the values of all columns are shown.
    """

    report: "Report"
    job: "Import"
    file: Path
    is_recorded: bool | None
    shows_values: bool
    events: Counter[str] = attrs.field(init=False)
    _open: set[str | None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.events = Counter(each["type"] for each in self.report.events)
        columns = self.job.map.columns
        open_fields = {self.job.map.id_field, "start_at", "visited_at", "status"} & columns.keys()
        personal = {header for field in columns.keys() - open_fields for header in columns[field].headers}
        self._open = {
            self.job.map.column_of(each) for each in open_fields if personal.isdisjoint(columns[each].headers)
        }

    def value_of(self, doubt: "Doubt") -> str | None:
        """Return the value of a doubt; a mask instead if it may be personal data."""
        column = self.job.map.column_of(self.job.map.id_field) if doubt.code == "gone" else doubt.column
        is_open = self.shows_values or column in self._open
        return doubt.value if is_open or doubt.value is None else HIDDEN

    def print(self, *, as_json: bool) -> None:
        """Print the report, as a JSON object or for a person."""
        if as_json:
            self._print_json()
            return
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _LONGEST_LINE
        for line in self.summary():
            say_wrapped("", line)
        for group in _grouped(self.report, _FIRST):
            self._print_group(group, width)

    def _print_json(self) -> None:
        # The doubts are written one by one, because there may be millions.
        numbers = {name: getattr(self.report, name) for name in ("rows", "rejected", "unchanged", "gone")}
        write_line(json_line({**numbers, "events": self.events, "doubts": []})[:-2], end="")
        between = ""
        for each in self.report.doubts:
            place = {"row": each.row, "column": each.column, "code": each.code}
            doubt = json_line({**place, "value": self.value_of(each), "text": each.text})
            write_line(between + doubt, end="")
            between = ", "
        write_line("]}")

    def _print_group(self, group: _Group, width: int) -> None:
        say("")
        say(f"{group.code}: {group.counted}")
        say_wrapped("  ", group.text)
        rows = [self._cells(each) for each in group.first]
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (set_cell_size(cell, length) for cell, length in zip(row, widths, strict=True))
            line = "    " + "  ".join(cells).rstrip()
            say(line if cell_len(line) <= width else set_cell_size(line, width - 1) + HIDDEN)
        if more := group.count - len(rows):
            say(f"    and {more:,} more")

    def page(self) -> str:
        """Return the report as an HTML page without any other file."""
        template = Template(package_text(__name__, "import_report.html"))
        groups = "".join(map(self._section, _grouped(self.report, _FIRST_ON_PAGE)))
        summary = "".join(f"<li>{escape(visible(line))}</li>" for line in self.summary())
        return template.substitute(
            title=escape(visible(self.file.name)),
            summary=summary,
            groups=groups or "<p>There are no doubts.</p>",
            values="" if self.shows_values else _MASKED,
            time=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        )

    def summary(self) -> Iterator[str]:
        """Yield what the file is, and what is or would be sent."""
        report, limit = self.report, self.job.map.max_rejected
        yield f"{self.file.name}: {_count(report.rows, 'row')}, {report.rejected:,} rejected."
        events = ", ".join(f"{count:,} {kind}" for kind, count in self.events.items()) or "nothing"
        if self.is_recorded is not None:
            verb = "Recorded" if self.is_recorded else "Not recorded"
            yield f"{verb}: {events}. Unchanged: {report.unchanged:,}. Gone: {report.gone:,}."
        else:
            yield f"A first run would record: {events}."
            if report.rejected * 100 > limit * report.rows:
                yield f"But more than {limit:g} % of the rows are rejected (max_rejected), so it would record nothing."

    def _cells(self, doubt: "Doubt") -> tuple[str, str, str]:
        place = "file" if doubt.row is None else f"row {doubt.row}"
        value = visible(self.value_of(doubt) or "")
        cut = value if len(value) <= _LONGEST_VALUE else value[:_LONGEST_VALUE] + HIDDEN
        return place, visible(doubt.column or ""), cut

    def _section(self, group: _Group) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in self._cells(each)) + "</tr>" for each in group.first
        )
        more = group.count - len(group.first)
        return (
            f'<section class="{"rejects" if group.rejects else "doubts"}"><h2><code>{group.code}</code> '
            f"{group.counted}</h2><p>{escape(visible(group.text))}</p><table><tr><th>Row<th>Column<th>Value</tr>{rows}"
            f"</table>{f'<p>and {more:,} more</p>' if more else ''}</section>"
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
