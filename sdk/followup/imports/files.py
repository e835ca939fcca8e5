"""Reads tables in files: CSV of any usual encoding and delimiter, and Excel workbooks (``.xlsx``)."""

import codecs
import csv
import difflib
import io
import itertools
import os
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final

from followup import ConfigurationError

Cell = str | datetime | date | time | int | float | None
"""A cell: of a CSV file always a text."""

Record = tuple[int, Sequence[Cell]]
"""The number of a row, as a spreadsheet shows it, and its cells."""

DELIMITERS: Final = (",", ";", "\t", "|")

_WORKBOOK = b"PK\x03\x04"
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20

_TOLERATED = 1_000
"""A file is UTF-8 if fewer than one in this many characters outside of ASCII are not."""

_LONGEST_LINE = 1_000_000
"""Characters. A file that is no CSV file may have no line end at all."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""The first line that Excel writes and reads to name the delimiter. No spreadsheet shows it."""

_MOST_EXPANDED = 2 << 30
_MOST_HELD = 256 << 20
"""Bytes of all parts of a workbook, and of those parts that are held in memory; others are read in a stream."""

_BATCH = 500
"""Rows of a workbook that are read at a time."""

_HALF_A_SECOND = timedelta(microseconds=500_000)
"""To round: a workbook has times as fractions of a day, which are not exact."""

_PROGRESS_STEP = 1_000
"""Rows between two reports of the progress."""

_END_OF_FILE = "\x1a"
"""Old programs end a text file with it."""

_END_MARK = "\0the end of the file\0"
"""A line after the last one. It becomes part of a cell whose quote is not closed."""


class Table:
    """The table in a file. Each iteration opens the file and reads it in a stream.

    Args:
        path: path of the file.
        headers: headers that the table has; with them the delimiter of a CSV file is found.
        sheet: name of the sheet of a workbook; None for the first.

    Attributes:
        header: the cells of the first row that is not empty, without the empty ones at its end.
        replaces: whether bytes may have been replaced by ``�``, because the file is not all in one encoding.
        is_workbook: whether it is an Excel workbook.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: it is neither CSV nor ``.xlsx``, lacks one of the headers, or changed meanwhile.
    """

    def __init__(self, path: str | Path, headers: Collection[str] = (), *, sheet: str | None = None) -> None:
        self._path = Path(path)
        self._sheet = sheet
        information = self._path.stat()
        if not stat.S_ISREG(information.st_mode):  # before it is opened, because opening a FIFO blocks
            raise ConfigurationError(f"{path}: this must be a regular file")
        self._version = _version(information)
        self.is_workbook: bool = False
        self.replaces: bool = False
        self._detect(headers)
        self.header: list[str] = self._checked_header(headers)

    def rows(self, on_progress: Callable[[float], object] | None = None) -> Iterator[Record]:
        """Iterate over the rows after the header; those with no text in any cell are skipped.

        Args:
            on_progress: called now and then with the part of the file that has been read, from 0 to 1.

        Raises:
            ConfigurationError: the file cannot be read further, or it changed since it was opened first.
        """
        records = ((number, each) for number, each in enumerate(self._records(on_progress), 1) if _has_text(each))
        next(records, None)
        return records

    @contextmanager
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

    def _detect(self, headers: Collection[str]) -> None:
        """Find the format of the file, and the encoding and delimiter of a CSV file."""
        with self._opened() as stream:
            start = stream.read(512)
            stream.seek(0)
            if start.startswith(_OLD_WORKBOOK):
                raise ConfigurationError(f"{self._path} is an old or encrypted workbook: save it as .xlsx or CSV")
            if start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<"):
                raise ConfigurationError(f"{self._path} is HTML or XML: open it in a spreadsheet, and save it as .xlsx")
            self.is_workbook = start.startswith(_WORKBOOK)
            if self.is_workbook:
                self._check_size(stream)
                return
            self._encoding, self.replaces = _encoding_of(stream)
            stream.seek(0)
            named = _SEPARATOR_LINE.fullmatch(next(self._lines(stream), ""))
        self._has_separator_line = named is not None
        self._delimiter = named[1] if named else max(DELIMITERS, key=lambda each: self._fit(each, headers))

    def _fit(self, delimiter: str, headers: Collection[str]) -> tuple[int, int]:
        """Return how many of the headers, and how many columns, the file has with a delimiter."""
        self._delimiter = delimiter
        try:
            names = self._first_row()
        except ConfigurationError:  # a quote is closed by another delimiter only
            return 0, 0
        return sum(name in names for name in headers), len(names)

    def _first_row(self) -> list[str]:
        return [text_of(cell) for cell in next(filter(_has_text, self._records()), [])]

    def _checked_header(self, required: Collection[str]) -> list[str]:
        header = self._first_row()
        while header and not header[-1]:
            header.pop()
        if not header:
            raise ConfigurationError(f"{self._path} is empty; a table begins with a row of headers")
        if any("\0" in name for name in header):
            raise ConfigurationError(f"{self._path} is no text, or UTF-16 without its mark: save it as UTF-8")
        for name in required:
            if name not in header:
                close = difflib.get_close_matches(name, header, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigurationError(f"{self._path} has no column {name!r} in its first row{hint}")
            if header.count(name) > 1:
                raise ConfigurationError(f"{self._path} has two columns {name!r}: rename one of them in its first row")
        return header

    def _records(self, on_progress: Callable[[float], object] | None = None) -> Iterator[Sequence[Cell]]:
        size = max(self._version[0], 1)
        with self._opened() as stream:
            records = self._from_workbook(stream) if self.is_workbook else self._from_csv(stream)
            for position, record in enumerate(records):
                if on_progress and not position % _PROGRESS_STEP:
                    on_progress(min(stream.tell() / size, 1.0))
                yield record

    def _from_csv(self, stream: BinaryIO) -> Iterator[Sequence[str]]:
        lines = self._lines(stream)
        if self._has_separator_line:
            next(lines)
        reader = csv.reader(itertools.chain(lines, [_END_MARK]), delimiter=self._delimiter)
        for number in itertools.count(1):
            start = reader.line_num
            try:
                record = next(reader, [_END_MARK])
            except csv.Error:
                raise self._open_quote(number) from None
            is_open = record != [_END_MARK] and "".join(record[-1:]).endswith(_END_MARK)
            if is_open and reader.line_num > start + 2:  # the quote took in rows that follow
                raise self._open_quote(number)
            if record == [_END_MARK]:
                return
            if is_open:  # the file was cut off in its last cell
                record = record[:-1] or [record[0].removesuffix(_END_MARK)]
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
                yield line
        finally:
            if not stream.closed:
                text.detach()  # else it closes the stream when it is garbage

    def _check_size(self, stream: BinaryIO) -> None:
        with self._workbook_errors(), zipfile.ZipFile(stream) as archive:
            parts = [(each.filename.startswith("xl/worksheets/"), each.file_size) for each in archive.infolist()]
        held = sum(size for is_sheet, size in parts if not is_sheet)
        if held > _MOST_HELD or sum(size for _, size in parts) > _MOST_EXPANDED:
            raise ConfigurationError(f"{self._path} is too large for a workbook: save it as CSV")

    def _from_workbook(self, stream: BinaryIO) -> Iterator[Sequence[Cell]]:
        import openpyxl

        with self._workbook_errors():
            workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            sheets = {sheet.title: sheet for sheet in workbook.worksheets}
            title = next(iter(sheets)) if self._sheet is None else self._sheet
        if title not in sheets:
            raise ConfigurationError(f"{self._path} has no sheet {title!r}; its sheets are {', '.join(sheets)}")
        with self._workbook_errors():
            sheets[title].reset_dimensions()  # the declared ones may be wrong
            rows = sheets[title].iter_rows(values_only=True)
        while True:
            with self._workbook_errors():
                batch = [[_cell(value) for value in row] for row in itertools.islice(rows, _BATCH)]
            if not batch:
                return
            yield from batch

    @contextmanager
    def _workbook_errors(self) -> Iterator[None]:
        """Ignore warnings of openpyxl about what is no data; replace its errors, which may have any class."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except Exception as error:  # noqa: BLE001 - a damaged workbook
            reason = type(error).__name__
            raise ConfigurationError(
                f"{self._path} is no workbook that can be read ({reason}): save it again"
            ) from None


def _version(information: os.stat_result) -> tuple[int, int, int, int]:
    return information.st_size, information.st_mtime_ns, information.st_ino, information.st_dev


def _encoding_of(stream: BinaryIO) -> tuple[str, bool]:
    """Return the encoding of a text, and whether some bytes have to be replaced."""
    mark = stream.read(len(codecs.BOM_UTF8))
    if mark.startswith(_UTF_16):
        return "utf-16", True
    stream.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    others = invalid = 0
    is_last = False
    while not is_last:
        chunk = stream.read(_CHUNK)
        is_last = not chunk
        text = decoder.decode(chunk, is_last)
        if not text.isascii():
            others += len(text) - len(text.encode("ascii", "ignore"))
            invalid += len(text) - len(text.encode("utf-8", "ignore").decode())
    if mark == codecs.BOM_UTF8 or invalid * _TOLERATED < others or not invalid:
        return "utf-8-sig", invalid > 0
    return "cp1252", True


def _cell(value: Any) -> Cell:
    """Return the value of a cell as openpyxl returns it."""
    match value:
        case bool():
            return str(value).upper()
        case time():
            return time_of_day(timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour))
        case timedelta() if timedelta() <= value < timedelta(days=1):
            return time_of_day(value)
        case datetime():
            rounded = (value + _HALF_A_SECOND).replace(microsecond=0)
            return rounded.date() if rounded.time() == time() else rounded
        case None | str() | date() | int() | float():
            return value
    return str(value)


def time_of_day(since_midnight: timedelta) -> time:
    """Return the time of day, to the second, that is so long after midnight; a whole day after it is midnight."""
    return (datetime.min.replace(tzinfo=UTC) + since_midnight + _HALF_A_SECOND).time().replace(microsecond=0)


def text_of(cell: Cell) -> str:
    """Return a cell as text, without spaces around it."""
    match cell:
        case str():
            return cell.strip()
        case None:
            return ""
        case float():
            return str(int(cell)) if cell.is_integer() else f"{cell:.15g}"
        case datetime():
            return cell.isoformat(" ", "seconds")
        case time():
            return cell.isoformat("seconds")
    return str(cell)


def _has_text(cells: Sequence[Cell]) -> bool:
    return any(text_of(cell).strip(_END_OF_FILE) for cell in cells)
