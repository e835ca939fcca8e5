"""Reads tables in files: CSV of any usual encoding and delimiter, workbooks, and HTML pages with one table."""

import contextlib
import csv
import difflib
import io
import itertools
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import attrs

from followup import ConfigurationError
from followup.imports.cells import Cell, has_text, text_of, visible_part
from followup.imports.encodings import TWICE, encoding_of
from followup.imports.pages import tables_of
from followup.imports.workbooks import OLD_WORKBOOK, ZIPPED, Sheet, sheets_of

OnProgress = Callable[[int, int], object]
"""Is called now and then with the number of rows that were read, and of all rows, which of a text is an estimate."""

Record = tuple[int, str, Sequence[Cell]]
"""The number of a row, as a spreadsheet shows it, the sheet if several are read, and the cells."""

DELIMITERS: Final = (",", ";", "\t", "|")

_LONGEST_LINE = 1_000_000
"""Characters. A file that is no CSV file may have no line end at all."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""The first line that Excel writes and reads to name the delimiter. No spreadsheet shows it."""

_HEADER_ROWS = 30
"""The header is in one of so many first rows."""

_PROGRESS_STEP = 1_000
"""Rows between two reports of the progress."""

_LARGEST_PAGE = 64 << 20
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


class Misquoted(list[str]):
    """The cells of a line of CSV in which a quoted cell has more text after its quotes, so that none is certain."""


class EncodingDoubtfulError(Exception):
    """The letters of a file make no words in its encoding, but in another."""

    def __init__(self, likely: str) -> None:
        super().__init__(likely)
        self.likely = likely


@attrs.frozen(kw_only=True)
class Layout:
    """Where the table of a file is, as far as it is known before the file is read.

    Attributes:
        headers: headers that the table has. They decide the delimiter, the row of the header and the sheet.
        sheets: names of sheets, or ``*`` for all; none: the first visible one that has the headers.
        header: names of the columns of a file that has no row with them.
        header_row: number of the row with the headers.
        encoding: name of the codec of a text.
    """

    headers: Sequence[str] = ()
    sheets: Sequence[str] = ()
    header: Sequence[str] = ()
    header_row: int | None = None
    encoding: str | None = None


@attrs.frozen
class _Part:
    """A table in the file: its header, the number of the row that has it, and where the header's columns are."""

    sheet: Sheet | None
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
        is_cut_off: whether the row that was read last ends without a line end, or within quotes.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: it is no table, lacks one of the headers, or changed meanwhile.
        EncodingDoubtfulError: its letters look like those of another encoding.
    """

    def __init__(self, path: str | Path, layout: Layout = Layout(), *, accepts_doubtful: bool = False) -> None:
        self._path = Path(path)
        self._layout = layout
        information = self._path.stat()
        if not stat.S_ISREG(information.st_mode):  # before it is opened, because opening a FIFO blocks
            raise ConfigurationError(f"{path}: this must be a regular file")
        self._version = _version(information)
        self.replaces: bool = layout.encoding is not None
        self.likely_encoding: str | None = None
        self.unread: list[str] = []
        self.hidden: int = 0
        self.is_cut_off: bool = False
        self._sheets: list[Sheet] = []
        self._page: list[list[str]] | None = None
        self._detect(accepts_doubtful)
        self._parts = self._chosen_parts() if self._sheets else [self._part(None)]
        self.header: list[str] = self._parts[0].names
        self.header_row: int = self._parts[0].row
        self.sheet_names: list[str] = [each.sheet.name for each in self._parts if each.sheet]

    def rows(self, on_progress: OnProgress | None = None) -> Iterator[Record]:
        """Iterate over the rows after the header; those with no text in any cell, and repeated headers, are skipped.

        Args:
            on_progress: called now and then.

        Raises:
            ConfigurationError: the file cannot be read further, or it changed since it was opened first.
        """
        self.hidden = 0
        for part in self._parts:
            sheet = part.sheet.name if part.sheet and len(self._parts) > 1 else ""
            hidden = part.sheet.hidden if part.sheet else ()
            order = None if part.names == self.header else [part.names.index(each) for each in self._shared(part)]
            for number, record in enumerate(self._records(part.sheet, on_progress), 1):
                if number <= part.row or not has_text(record) or self._is_header(number, record, part):
                    continue
                self.hidden += number in hidden
                cells = record if order is None else [record[each] if each < len(record) else None for each in order]
                yield number, sheet, cells

    def _shared(self, part: _Part) -> Iterator[str]:
        """Iterate over the headers of the first sheet; where this one has it not, and no map names it, any stands."""
        return (each if each in part.names else part.names[0] for each in self.header)

    def _is_header(self, number: int, record: Sequence[Cell], part: _Part) -> bool:
        """Return whether a row has the header once more."""
        wanted = self._layout.headers or part.names
        first = wanted[0].partition("#")[0]
        if part.row == 0 or (first not in record and text_of(record[0] if record else None) != part.names[0]):
            return False
        names = _names(record)
        if not set(wanted) <= set(names):
            return False
        if [names.index(each) for each in wanted] != [part.names.index(each) for each in wanted]:
            raise ConfigurationError(
                f"{self._path}, row {number}: a second header has another order: save each table in its own file"
            )
        return True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        with self._path.open("rb") as stream:
            self._check_version(os.fstat(stream.fileno()))
            yield stream
            self._check_version(os.fstat(stream.fileno()))
            self._check_version(self._path.stat())

    def _check_version(self, information: os.stat_result) -> None:
        if _version(information) != self._version:
            raise ConfigurationError(
                f"{self._path} changed while it was read. Let the export finish first: write it under another name, "
                "and rename it at the end"
            )

    def _detect(self, accepts_doubtful: bool) -> None:
        """Find the kind of the file, and the encoding and delimiter of a text."""
        with self._opened() as stream:
            start = stream.read(512)
            stream.seek(0)
            if start.startswith((OLD_WORKBOOK, ZIPPED)):
                self._sheets = sheets_of(stream, self._path)
                if not self._sheets:
                    raise ConfigurationError(f"{self._path} has no sheet with cells")
                return
            self._check_kind(start)  # before the letters of what is no text are judged
            self._encoding = self._layout.encoding or self._found_encoding(stream, accepts_doubtful)
            text = start.decode(self._encoding, "replace").lstrip("\ufeff \t\r\n").encode("utf-8", "replace")
            self._check_kind(text)
            stream.seek(0)
            if _HTML.match(text):
                self._page = self._table_of_page(stream)
                return
            named = _SEPARATOR_LINE.fullmatch(next(self._lines(stream), ""))
        self._has_separator_line = named is not None
        self._delimiter = named[1] if named else max(DELIMITERS, key=self._fit)

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

    def _table_of_page(self, stream: BinaryIO) -> list[list[str]]:
        content = stream.read(_LARGEST_PAGE + 1)
        if len(content) > _LARGEST_PAGE:
            raise ConfigurationError(f"{self._path} is too large for an HTML page: save it as CSV")
        tables = tables_of(visible_part(content.decode(self._encoding, "replace")))
        if len(tables) != 1:
            count = f"{len(tables)} tables" if tables else "no table"
            raise ConfigurationError(
                f"{self._path} is HTML or XML with {count}: open it in a spreadsheet, save as .xlsx"
            )
        return tables[0]

    def _fit(self, delimiter: str) -> tuple[int, int]:
        """Return how many of the headers, and how many columns, the file has with a delimiter."""
        self._delimiter = delimiter
        first: list[tuple[int, Sequence[Cell]]] = []
        with contextlib.suppress(ConfigurationError):  # a quote may be closed by another delimiter only
            first.extend(self._first_rows(None))
        widths = Counter(len(record) for _, record in first)
        common = max((count * (width - 1) for width, count in widths.items()), default=0)
        return max((self._found_headers(record) for _, record in first), default=0), common

    def _first(self, sheet: Sheet | None) -> list[tuple[int, Sequence[Cell]]]:
        return list(self._first_rows(sheet))

    def _first_rows(self, sheet: Sheet | None) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Iterate over the first rows that have text, with their numbers."""
        records = itertools.islice(enumerate(self._records(sheet), 1), max(_HEADER_ROWS, self._layout.header_row or 0))
        return ((number, record) for number, record in records if has_text(record))

    def _found_headers(self, record: Sequence[Cell]) -> int:
        names = _names(record)
        return sum(each in names for each in self._layout.headers)

    def _chosen_parts(self) -> list[_Part]:
        """Return the sheets that are read."""
        wanted = self._layout.sheets
        by_name = {each.name: each for each in self._sheets}
        for name in wanted:
            if name != "*" and name not in by_name:
                raise ConfigurationError(f"{self._path} has no sheet {name!r}; its sheets are {', '.join(by_name)}")
        visible = [each for each in self._sheets if each.is_visible] or self._sheets
        chosen = [by_name[each] for each in wanted if each != "*"]
        others = [each for each in visible if each not in chosen]
        fitting = [each for each in others if self._fits(each)]
        if "*" in wanted or not wanted:
            chosen += fitting if wanted else (fitting or others)[:1]
        self.unread = [each.name for each in fitting if each not in chosen]
        parts = [self._part(each) for each in chosen or visible[:1]]
        if not self._layout.headers:  # of a proposal, those count that have the same header as the first
            same = [each for each in fitting if self._part(each).names == parts[0].names]
            self.unread = [each.name for each in same if each not in chosen]
        return parts

    def _fits(self, sheet: Sheet) -> bool:
        first = self._first(sheet)
        if not self._layout.headers:
            return len(first) > 1 and max(len(_names(record)) for _, record in first) > 1
        if self._layout.header:
            return bool(first)
        return any(self._found_headers(record) == len(self._layout.headers) for _, record in first)

    def _part(self, sheet: Sheet | None) -> _Part:
        """Find the header of the table, and check it."""
        layout = self._layout
        if layout.header:
            self._check_header(0, list(layout.header))
            return _Part(sheet, layout.header_row or 0, list(layout.header))
        first = self._first(sheet)
        if not first:
            raise ConfigurationError(f"{self._path} is empty; a table begins with a row of headers")
        if layout.header_row is not None:
            row, record = next((each for each in first if each[0] == layout.header_row), (layout.header_row, []))
        elif layout.headers:
            row, record = max(first, key=lambda each: self._found_headers(each[1]))
        else:
            row, record = _likely_header(first)
        names = _names(record)
        self._check_header(row, names)
        return _Part(sheet, row, names)

    def _check_header(self, row: int, names: list[str]) -> None:
        if any("\0" in name for name in names):
            raise ConfigurationError(f"{self._path} is no text, or UTF-16 without its mark: save it as UTF-8")
        place = "in its first row" if row == 1 else f"in row {row}" if row else 'in "header" of the map'
        for name in self._layout.headers:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigurationError(f"{self._path} has no column {name!r} {place}{hint}")
        if len(self._layout.headers) > 1 and all(f"{each}#2" in names for each in self._layout.headers):
            raise ConfigurationError(
                f"{self._path} has each column twice {place}: save each of the two tables in its own file"
            )
        if row and any(_DATA.fullmatch(each) for each in self._layout.headers or names):
            raise ConfigurationError(
                f"{self._path} has dates, times or phones {place}, so it has no row of headers. Name its columns in "
                f'the map: header = ["Turno", …], one name for each of its {len(names)} columns'
            )

    def _records(self, sheet: Sheet | None, on_progress: OnProgress | None = None) -> Iterator[Sequence[Cell]]:
        if sheet is not None or self._page is not None:
            records: Iterator[Sequence[Cell]] = sheet.records() if sheet else iter(self._page or ())
            for number, record in enumerate(records, 1):
                if on_progress and not number % _PROGRESS_STEP:
                    on_progress(number, sheet.height if sheet else len(self._page or ()))
                yield record
            return
        with self._opened() as stream:
            for number, record in enumerate(self._from_csv(stream), 1):
                if on_progress and not number % _PROGRESS_STEP:
                    on_progress(number, round(number * self._version[0] / stream.tell()))
                yield record

    def _from_csv(self, stream: BinaryIO) -> Iterator[Sequence[str]]:
        lines = self._lines(stream)
        if self._has_separator_line:
            next(lines)
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        for number in itertools.count(1):
            start = reader.line_num
            try:
                record = next(reader, None)
            except csv.Error as error:
                is_at_end = "end of data" in str(error)
                if reader.line_num > start + 1 or "field larger" in str(error):  # the quote took in rows that follow
                    raise self._open_quote(number) from None
                record = Misquoted(next(csv.reader([self._line], delimiter=self._delimiter)))
                if is_at_end:  # the file was cut off in its last cell
                    self.is_cut_off = True
                    record = record[:-1] or [*record]
            if record is None:
                return
            yield record

    def _open_quote(self, row: int) -> ConfigurationError:
        return ConfigurationError(
            f"{self._path}, row {row}: this is no CSV; a double quote may have been opened and not closed"
        )

    def _lines(self, stream: BinaryIO) -> Iterator[str]:
        text = io.TextIOWrapper(stream, encoding=self._encoding, errors="replace", newline="")
        try:
            while line := text.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise ConfigurationError(f"{self._path} is no CSV: a line has {_LONGEST_LINE:,} characters or more")
                self.is_cut_off = line[-1] not in "\r\n"
                self._line = visible_part(line)
                yield self._line
        finally:
            if not stream.closed:
                text.detach()  # else it closes the stream when it is garbage


def _names(record: Sequence[Cell]) -> list[str]:
    """Return the names of a header, without the empty ones at its end; the second of two equal ones is ``Name#2``."""
    texts = [" ".join(text_of(cell).split()) for cell in record]
    while texts and not texts[-1]:
        texts.pop()
    count: Counter[str] = Counter()
    names = []
    for text in texts:
        count[text] += 1
        names.append(f"{text}#{count[text]}" if text and count[text] > 1 else text)
    return names


def _likely_header(first: Sequence[tuple[int, Sequence[Cell]]]) -> tuple[int, Sequence[Cell]]:
    """Return the first row that names nearly as many columns as the widest has cells."""
    widest = max(sum(map(bool, _names(record))) for _, record in first)
    for number, record in first:
        texts = [each for each in _names(record) if each]
        if len(texts) >= _FULL_HEADER * widest and not any(map(_DATA.fullmatch, texts)):
            return number, record
    return first[0]


def _version(information: os.stat_result) -> tuple[int, int, int, int]:
    return information.st_size, information.st_mtime_ns, information.st_ino, information.st_dev
