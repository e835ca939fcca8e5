"""Finds the tables in files: which sheets, and which row has the headers."""

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import attrs

from followup import ConfigurationError
from followup.imports.texts import TWICE, CsvText, File, Page, encoding_of, names_of
from followup.imports.values import Cell, has_text, text_of
from followup.imports.workbook_checks import OLD_WORKBOOK, ZIPPED
from followup.imports.workbooks import Sheet, sheets_of

OnProgress = Callable[[int, int], object]
"""Is called now and then with the number of rows that were read, and of all rows, which of a text is an estimate."""

Record = tuple[int, str, Sequence[Cell]]
"""The number of a row, as a spreadsheet shows it, the sheet if several are read, and the cells."""

_HEADER_ROWS = 30
"""The header is in one of so many first rows."""

_PROGRESS_STEP = 1_000
"""Rows between two reports of the progress."""

_FULL_HEADER = 0.6
"""The part of the widest row's cells that a header has."""

_DATA = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}\b.*|\d{1,2}[:.]\d\d\b.*|\d{4}-\d\d-\d\d.*|\+?[\d\s().-]{6,}")
"""What a date, a time of day or a phone looks like."""

_KINDS: Final = {
    rb"%PDF": "is a PDF: export the table as .xlsx or CSV",
    rb"BEGIN:VCALENDAR": "is a calendar (iCalendar): export the appointments as a table, .xlsx or CSV",
    rb"(\x0b?MSH\||FHS\||BHS\|)": "is an HL7 message: export the appointments as a table, .xlsx or CSV",
    rb"[\[{]\s*[\"{\[\]}]": "is JSON: export a table, .xlsx or CSV",
    rb"MIME-Version:": "is a web archive (MHT): open it in a spreadsheet, and save it as .xlsx",
    rb"\x1f\x8b": "is compressed (gzip): unpack it",
    rb"\{\\rtf": "is a text with formats (RTF): save its table as .xlsx",
}
_HTML = re.compile(rb"<(!doctype|html|head|body|meta|table|\?xml|!--)", re.IGNORECASE)


class EncodingDoubtfulError(Exception):
    """The letters of a file make no words in its encoding, but in another."""

    def __init__(self, likely: str) -> None:
        super().__init__(likely)
        self.likely = likely


@attrs.frozen(kw_only=True)
class Layout:
    """Where the table of a file is, as far as it is known before the file is read.

    Attributes:
        encoding: name of the codec of a text.
        sheet: name of the sheet.
        sheets: names of sheets, or ``*`` for all; none: the first visible one that has the headers.
        header: names of the columns of a file that has no row with them.
        header_row: number of the row with the headers.
    """

    encoding: str | None = None
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    header_row: int | None = None

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that the file must have. They decide the delimiter, the row of the header and the sheet."""
        return ()


@attrs.frozen
class _Part:
    """A table in the file, the number of the row that has its header, and the names of the columns."""

    source: CsvText | Page | Sheet
    row: int
    names: list[str]


class Table:
    """The table in a file. Each iteration reads a text in a stream.

    Attributes:
        header: the names of the columns, without the empty ones at the end; the second of two is ``Name#2``.
        header_row: the number of its row; 0 if the file has none.
        replaces: whether bytes may have been replaced by ``�``, because the file is not all in one encoding.
        likely_encoding: what the letters look more like than like the encoding in which they are read, if anything.
        unread: names of visible sheets that have the headers, too, and are not read.
        hidden: number of hidden rows that are read.
        sheet_names: names of the sheets that are read; none if the file is no workbook.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: it is no table, lacks one of the headers, or changed meanwhile.
        EncodingDoubtfulError: its letters look like those of another encoding.
    """

    def __init__(self, path: str | Path, layout: Layout = Layout(), *, accepts_doubtful: bool = False) -> None:
        self._path = Path(path)
        self._layout = layout
        self._headers = layout.headers
        self.replaces: bool = layout.encoding is not None
        self.likely_encoding: str | None = None
        self.unread: list[str] = []
        self.hidden: int = 0
        self._sources = self._found_sources(File(path), accepts_doubtful)
        self._parts = self._chosen_parts()
        self.header: list[str] = self._parts[0].names
        self.header_row: int = self._parts[0].row
        self.sheet_names: list[str] = [each.source.name for each in self._parts if each.source.name]

    def rows(self, on_progress: OnProgress | None = None) -> Iterator[Record]:
        """Iterate over the rows after the header; those with no text in any cell, and repeated headers, are skipped.

        Args:
            on_progress: called now and then.

        Raises:
            ConfigurationError: the file cannot be read further, or it changed since it was opened first.
        """
        self.hidden = 0
        for part in self._parts:
            sheet = part.source.name if len(self._parts) > 1 else ""
            order = None if part.names == self.header else [part.names.index(each) for each in self._shared(part)]
            wanted = self._headers or part.names
            first = wanted[0].partition("#")[0]  # to look closely only at rows that may be a header
            for number, record in enumerate(part.source.records(), 1):
                if on_progress and not number % _PROGRESS_STEP:
                    on_progress(number, part.source.height_at(number))
                if number <= part.row or not has_text(record):
                    continue
                is_like_header = first in record or text_of(record[0]) == part.names[0]
                if is_like_header and part.row and self._is_header(number, record, part, wanted):
                    continue
                self.hidden += number in part.source.hidden
                cells = record if order is None else [record[each] if each < len(record) else None for each in order]
                yield number, sheet, cells

    @property
    def is_cut_off(self) -> bool:
        """Whether the file ends within the row that was read last."""
        source = self._parts[0].source
        return isinstance(source, CsvText) and source.is_cut_off

    def _shared(self, part: _Part) -> Iterator[str]:
        """Iterate over the headers of the first sheet; where this one has it not, and no map names it, any stands."""
        return (each if each in part.names else part.names[0] for each in self.header)

    def _is_header(self, number: int, record: Sequence[Cell], part: _Part, wanted: Sequence[str]) -> bool:
        """Return whether a row has the header once more."""
        names = names_of(record)
        if not set(wanted) <= set(names):
            return False
        if [names.index(each) for each in wanted] != [part.names.index(each) for each in wanted]:
            raise ConfigurationError(
                f"{self._path}, row {number}: a second header has another order: save each table in its own file"
            )
        return True

    def _found_sources(self, file: File, accepts_doubtful: bool) -> Sequence[CsvText | Page | Sheet]:
        """Return the sheets of a workbook, or what reads the one table of a text."""
        layout = self._layout
        with file.opened() as stream:
            start = stream.read(512)
            stream.seek(0)
            if start.startswith((OLD_WORKBOOK, ZIPPED)):
                if sheets := sheets_of(stream, self._path):
                    return sheets
                raise ConfigurationError(f"{self._path} has no sheet with cells")
            self._check_kind(start)  # before the letters of what is no text are judged
            encoding = layout.encoding or self._found_encoding(stream, accepts_doubtful)
            text = start.decode(encoding, "replace").lstrip("\ufeff \t\r\n").encode("utf-8", "replace")
            self._check_kind(text)  # again, because a mark or UTF-16 may have hidden it
            stream.seek(0)
            if _HTML.match(text):
                return [Page(self._path, stream, encoding)]
        return [CsvText(file, encoding, self._headers, self._first_rows)]

    def _check_kind(self, start: bytes) -> None:
        for kind, advice in _KINDS.items():
            if re.match(kind, start):
                raise ConfigurationError(f"{self._path} {advice}")

    def _found_encoding(self, stream: BinaryIO, accepts_doubtful: bool) -> str:
        found = encoding_of(stream)
        self.replaces, self.likely_encoding = found.replaces, found.likely
        if found.likely and not accepts_doubtful:
            raise EncodingDoubtfulError(found.likely)
        return found.likely if found.likely and found.likely != TWICE else found.name

    @property
    def _first_rows(self) -> int:
        return max(_HEADER_ROWS, self._layout.header_row or 0)

    def _first(self, source: CsvText | Page | Sheet) -> list[tuple[int, Sequence[Cell]]]:
        """Return the first rows that have text, with their numbers."""
        numbered = itertools.islice(enumerate(source.records(), 1), self._first_rows)
        return [(number, record) for number, record in numbered if has_text(record)]

    def _found_headers(self, record: Sequence[Cell]) -> int:
        return len({*self._headers} & {*names_of(record)})

    def _chosen_parts(self) -> list[_Part]:
        """Return the sheets that are read."""
        by_name = {each.name: each for each in self._sources}
        sheets = (self._layout.sheet,) if self._layout.sheet else self._layout.sheets
        wanted = sheets if "" not in by_name else ()  # a text has one table, whose name is empty
        for name in wanted:
            if name != "*" and name not in by_name:
                raise ConfigurationError(f"{self._path} has no sheet {name!r}; its sheets are {', '.join(by_name)}")
        visible = [each for each in self._sources if each.is_visible] or self._sources
        chosen = [by_name[each] for each in wanted if each != "*"]
        others = [each for each in visible if each not in chosen]
        fitting = [each for each in others if self._fits(each)]
        if "*" in wanted or not wanted:
            chosen += fitting if wanted else (fitting or others)[:1]
        self.unread = [each.name for each in fitting if each not in chosen]
        return [self._part(each) for each in chosen or visible[:1]]

    def _fits(self, source: CsvText | Page | Sheet) -> bool:
        first = self._first(source)
        if not self._headers:
            return len(first) > 1 and max(len(names_of(record)) for _, record in first) > 1
        if self._layout.header:
            return bool(first)
        return any(self._found_headers(record) == len(self._headers) for _, record in first)

    def _part(self, source: CsvText | Page | Sheet) -> _Part:
        """Find the header of the table, and check it."""
        layout = self._layout
        if layout.header:
            self._check_header(0, list(layout.header))
            return _Part(source, layout.header_row or 0, list(layout.header))
        first = self._first(source)
        if not first:
            raise ConfigurationError(f"{self._path} is empty; a table begins with a row of headers")
        if layout.header_row is not None:
            row, record = next((each for each in first if each[0] == layout.header_row), (layout.header_row, []))
        elif self._headers:
            row, record = max(first, key=lambda each: self._found_headers(each[1]))
        else:
            row, record = _likely_header(first)
        names = names_of(record)
        self._check_header(row, names)
        return _Part(source, row, names)

    def _check_header(self, row: int, names: list[str]) -> None:
        if any("\0" in name for name in names):
            raise ConfigurationError(f"{self._path} is no text, or UTF-16 without its mark: save it as UTF-8")
        place = "in its first row" if row == 1 else f"in row {row}" if row else 'in "header" of the map'
        for name in self._headers:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigurationError(f"{self._path} has no column {name!r} {place}{hint}")
        if len(self._headers) > 1 and all(f"{each}#2" in names for each in self._headers):
            raise ConfigurationError(
                f"{self._path} has each column twice {place}: save each of the two tables in its own file"
            )
        if row and any(_DATA.fullmatch(each) for each in self._headers or names):
            raise ConfigurationError(
                f"{self._path} has dates, times or phones {place}, so it has no row of headers. Name its columns in "
                f'the map: header = ["Turno", …], one name for each of its {len(names)} columns'
            )


def _likely_header(first: Sequence[tuple[int, Sequence[Cell]]]) -> tuple[int, Sequence[Cell]]:
    """Return the first row that names nearly as many columns as the widest has cells."""
    widest = max(sum(map(bool, names_of(record))) for _, record in first)
    for number, record in first:
        texts = [each for each in names_of(record) if each]
        if len(texts) >= _FULL_HEADER * widest and not any(map(_DATA.fullmatch, texts)):
            return number, record
    return first[0]
