"""What the commands show of an import: the doubts grouped by code, as text, as JSON, or as one HTML page.

Values are personal data unless they are times, statuses or ids; those of all other columns are masked.
"""

import itertools
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import attrs
from rich.cells import cell_len, set_cell_size

from followup._core.codec.kinds import camel
from followup._core.package_data import package_text
from followup._core.redaction import HIDDEN, visible
from followup.cli.output import json_line, local_time, say, say_wrapped, terminal_width, write_line, zone_of

if TYPE_CHECKING:
    from followup.imports import Doubt, Import, Report
    from followup.imports.report import Summary, Understood

_FIRST = 5
"""Rows of each group in a text."""

_FIRST_ON_PAGE = 200
"""Rows of each group on a page, for the person who corrects them."""

_AT_ONCE = 500
"""Doubts that are encoded at once."""

_NUMBERS = ("rows", "rejected", "ignored", "unchanged", "gone")
_LONGEST_VALUE = 60
_LONGEST_LINE = 200

_DOUBTS: dict[str, dict[str, str]] = tomllib.loads(package_text(__name__, "import_doubts.toml"))
_WORDS: dict[str, dict[str, str]] = tomllib.loads(package_text(__name__, "import_report.toml"))


@attrs.define
class _Group:
    """The first doubts with the same code and text, and the number of all."""

    count: int = 0
    first: list["Doubt"] = attrs.field(factory=list)


def _grouped(report: "Report", most: int) -> list[_Group]:
    """Return the doubts in groups: those that reject rows first, then the largest."""
    groups: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)
    for each in report.doubts:
        group = groups[each.code, each.text]
        group.count += 1
        if len(group.first) < most:
            group.first.append(each)
    return sorted(groups.values(), key=lambda group: (not group.first[0].rejects, -group.count))


@attrs.define
class Shown:
    """The report of a file, and how it is shown.

    Attributes:
        report: the report.
        job: the import.
        file: the file.
        is_recorded: whether the run recorded the events, or too much was rejected or gone; None for a check.
        shows_values: whether the values of all columns are shown.
        language: ``es``, ``pt`` or ``en``.
    """

    report: "Report"
    job: "Import"
    file: Path
    is_recorded: bool | None
    shows_values: bool
    language: str = "en"
    _open: set[str | None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        columns = self.job.map.columns
        open_fields = {self.job.map.id_field, "start_at", "visited_at", "status"} & columns.keys()
        personal = {header for field in columns.keys() - open_fields for header in columns[field].headers}
        # A column that a personal field has, too, is masked.
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
        width = terminal_width() if sys.stdout.isatty() else _LONGEST_LINE
        for indent, line in self.lines():
            say_wrapped(indent, line)
        for group in _grouped(self.report, _FIRST):
            self._print_group(group, width)

    def _print_json(self) -> None:
        # There may be millions of doubts, which take too much memory at once, and too much time one by one.
        report = self.report
        numbers = {name: getattr(report, name) for name in _NUMBERS}
        about = {"preview": [*map(self._understood, report.preview)], "summary": _summary_of(report)}
        write_line(json_line({**numbers, "events": report.types, **about, "doubts": []})[:-2], end="")
        doubts, between = map(self._doubt, report.doubts), ""
        while batch := list(itertools.islice(doubts, _AT_ONCE)):
            write_line(between + json_line(batch)[1:-1], end="")
            between = ", "
        write_line("]}")

    def _doubt(self, doubt: "Doubt") -> dict[str, object]:
        """Return a doubt in JSON."""
        row, column, code, _, text = doubt
        return {"row": row, "column": column, "code": code, "value": self.value_of(doubt), "text": text}

    def _print_group(self, group: _Group, width: int) -> None:
        say("")
        say(f"{group.first[0].code}: {self._counted(group)}")
        say_wrapped("  ", self._text_of(group.first[0]))
        for each in group.first:
            line = "    " + "  ".join(self._cells(each)).rstrip()
            say(line if cell_len(line) <= width else set_cell_size(line, width - 1) + HIDDEN)
        if more := group.count - len(group.first):
            say("    " + self._say("more", count=f"{more:,}"))

    def page(self) -> str:
        """Return the report as an HTML page without any other file."""
        template = Template(package_text(__name__, "import_report.html"))
        groups = "".join(map(self._section, _grouped(self.report, _FIRST_ON_PAGE)))
        heading = self._say("understood")
        lines = [line for indent, line in self.lines() if not indent and line != heading]
        preview = [[str(each.row), *self._words_of(each)] for each in self.report.preview]
        now = local_time(datetime.now(UTC))
        return template.substitute(
            language=self.language,
            title=escape(visible(self.file.name)),
            summary="".join(f"<li>{escape(visible(line))}</li>" for line in lines),
            preview=f"<h2>{heading}</h2>{self._table('preview_headings', preview)}" if preview else "",
            groups=groups or f"<p>{self._say('no_doubts')}</p>",
            values="" if self.shows_values else f"<p>{self._say('masked')}</p>",
            time=f"{now:%Y-%m-%d %H:%M} {zone_of(now)}",
        )

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what the file is, how it was understood, and what is or would be sent; each line with its indent."""
        report, limit = self.report, self.job.map.max_rejected
        numbers = {name: f"{getattr(report, name):,}" for name in _NUMBERS}
        yield "", self._say("rows", file=self.file.name, **numbers)
        events = ", ".join(f"{count:,} {self._say(kind)}" for kind, count in report.types.items())
        events = events or self._say("nothing")
        if self.is_recorded is not None:
            yield "", self._say("recorded" if self.is_recorded else "not_recorded", events=events, **numbers)
            return
        if report.preview:
            yield "", self._say("understood")
        for each in report.preview:
            yield "  ", self._say("row", row=each.row, what=", ".join(filter(None, self._words_of(each))))
        yield from (("", line) for line in self._about(report.summary))
        yield "", self._say("would", events=events)
        if report.rejected * 100 > limit * report.rows:
            yield "", self._say("too_many", limit=f"{limit:g}")

    def _say(self, name: str, **values: object) -> str:
        return _WORDS[self.language][name].format(**values)

    def _counted(self, group: _Group) -> str:
        name = "rejected" if group.first[0].rejects else "group"
        return self._say(name if group.count > 1 else f"{name}_one", count=f"{group.count:,}")

    def _text_of(self, doubt: "Doubt") -> str:
        """Return the text of a doubt in the language of the report, with the detail of the English one."""
        from followup.imports.report import CODES

        if self.language == "en":
            return doubt.text
        before, _, after = CODES[doubt.code].text.replace("{{", "{").replace("}}", "}").partition("{detail}")
        detail = doubt.text.removeprefix(before).removesuffix(after)
        for words, others in _DOUBTS[f"{self.language}_details"].items():
            detail = re.sub(words, others, detail)
        return _DOUBTS[self.language][doubt.code].replace("{detail}", detail)

    def _words_of(self, understood: "Understood") -> list[str]:
        """Return name, day and time, phone and status of a row, as it was understood."""
        start = understood.start
        weekdays = _WORDS[self.language]["weekdays"].split()
        when = f"{weekdays[start.weekday()]} {self._day(start)} {start:%H:%M}" if start else ""
        texts = [self._shown(understood.name, "no_name"), when, self._shown(understood.phone, "no_phone")]
        return [*texts, self._say(understood.status)]

    def _shown(self, value: str, absent: str) -> str:
        if not value:
            return self._say(absent)
        return visible(value) if self.shows_values else HIDDEN

    def _day(self, day: date) -> str:
        month = _WORDS[self.language]["months"].split()[day.month - 1]
        return self._say("day", day=day.day, month=month, year=day.year)

    def _about(self, summary: "Summary") -> Iterator[str]:
        numbers = {name: f"{value:,}" for name, value in attrs.asdict(summary).items() if isinstance(value, int)}
        if summary.first and summary.last:
            times = {"first_time": f"{summary.first_time:%H:%M}", "last_time": f"{summary.last_time:%H:%M}"}
            yield self._say("span", first=self._day(summary.first), last=self._day(summary.last), **times)
            yield self._say("odd", **numbers)
        if summary.patients:
            yield self._say("patients", **numbers)
        if summary.hidden_rows:
            yield self._say("hidden", **numbers)

    def _understood(self, each: "Understood") -> dict[str, object]:
        """Return a row of the preview in JSON."""
        name, phone = (each.name, each.phone) if self.shows_values else (each.name and HIDDEN, each.phone and HIDDEN)
        start = each.start.isoformat(timespec="minutes") if each.start else None
        weekday = _WORDS["en"]["weekdays"].split()[each.start.weekday()] if each.start else None
        about = {"row": each.row, "name": name or None, "weekday": weekday, "start": start}
        return {**about, "phone": phone or None, "status": each.status}

    def _cells(self, doubt: "Doubt") -> tuple[str, str, str]:
        place = self._say("place_file") if doubt.row is None else self._say("place_row", row=doubt.row)
        value = visible(self.value_of(doubt) or "")
        cut = value if len(value) <= _LONGEST_VALUE else value[:_LONGEST_VALUE] + HIDDEN
        return place, visible(doubt.column or ""), cut

    def _section(self, group: _Group) -> str:
        more, doubt = group.count - len(group.first), group.first[0]
        rest = f"<p>{self._say('more', count=f'{more:,}')}</p>" if more else ""
        return (
            f'<section class="{"rejects" if doubt.rejects else "doubts"}"><h2><code>{doubt.code}</code> '
            f"{self._counted(group)}</h2><p>{escape(visible(self._text_of(doubt)))}</p>"
            f"{self._table('headings', map(self._cells, group.first))}{rest}</section>"
        )

    def _table(self, headings: str, rows: Iterable[Sequence[str]]) -> str:
        cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        head = "".join(f"<th>{each}" for each in self._say(headings).split("|"))
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f'<table class="{headings}"><tr>{head}</tr>{body}</table>'


def _summary_of(report: "Report") -> dict[str, object]:
    """Return the summary in JSON."""
    found = report.summary
    days = {"firstDay": found.first and found.first.isoformat(), "lastDay": found.last and found.last.isoformat()}
    times = (("firstTime", found.first_time), ("lastTime", found.last_time))
    clocks = {name: each and each.isoformat("minutes") for name, each in times}
    numbers = {camel(name): value for name, value in attrs.asdict(found).items() if isinstance(value, int)}
    return {**days, **clocks, **numbers}
