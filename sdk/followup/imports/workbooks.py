"""Reads workbooks, ``.xlsx``, ``.xls``, ``.xlsb`` and ``.ods``, with calamine, which holds a sheet in memory.

Before, it looks into the file itself: calamine allocates as many cells as the largest row and column numbers say, and
ends the process if there is not so much memory; it does not say which rows are hidden; and it reads errors as nothing.
"""

import itertools
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO, Final, NoReturn
from xml.etree import ElementTree

import attrs
import python_calamine as calamine

from followup import ConfigurationError
from followup.imports.cells import Cell, rounded, time_of_day, visible_part
from followup.imports.old_workbooks import most_cells

OLD_WORKBOOK: Final = b"\xd0\xcf\x11\xe0"
ZIPPED: Final = b"PK\x03\x04"

_MOST_ROWS = 1_048_576
_MOST_CELLS = 20_000_000
"""Cells of a sheet, with the empty ones between others."""

_MOST_EXPANDED = 2 << 30
_MOST_HELD = 256 << 20
"""Bytes of all parts of a workbook, and of those that are held in memory; sheets are read in a stream."""

_LONGEST_CELL = 4 << 20
"""Bytes between two tags. A cell of a workbook has at most 32,767 characters."""

_CHUNK = 1 << 20
_LONGEST_TAG = 16_384
"""Bytes of a cell's tag and formula, which must be in one piece to be recognized."""

_TAG = re.compile(
    rb"<(?:[\w.-]+:)?(row|c)(?=[\s/>])([^>]*)>(?:<(?:[\w.-]+:)?f(?:/>|[\s>][^<]*(?:</(?:[\w.-]+:)?f>)?)"
    rb"(?:<(?:[\w.-]+:)?v\s*(?:/>|></(?:[\w.-]+:)?v>))?(</(?:[\w.-]+:)?c>))?"
)
_PLACE = re.compile(rb"(?:^|\s)r\s*=\s*[\"']([A-Za-z]*)([^\"']*)[\"']")
_IS_ERROR = re.compile(rb"\st\s*=\s*[\"']e[\"']")
_IS_HIDDEN = re.compile(rb"\shidden\s*=\s*[\"'](?:1|true)[\"']")
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT_RELATION = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"

ERROR: Final = "#N/A"
"""The text of a cell that has an error, or a formula that was never computed."""

_AS_CSV = "save it as CSV"
_IS_ENCRYPTED = "is encrypted: save it without a password"
_ENCRYPTED_PART = "EncryptedPackage".encode("utf-16-le")
"""The name of the part that has a workbook with a password."""


@attrs.define
class Seen:
    """What the file of a sheet says, and calamine does not: hidden rows, merged cells, and cells with an error."""

    hidden: set[int] = attrs.field(factory=set)
    merged: list[tuple[tuple[int, int], tuple[int, int]]] = attrs.field(factory=list)
    errors: dict[int, list[int]] = attrs.field(factory=dict)


@attrs.define
class Sheet:
    """A sheet of a workbook.

    Attributes:
        name: its name.
        is_visible: whether the spreadsheet shows it.
        height: the number of rows, once it is read.
    """

    name: str
    is_visible: bool
    _load: Callable[[str], Any]
    _seen: Seen
    _sheet: Any = None
    height: int = 0

    @property
    def hidden(self) -> set[int]:
        """The numbers of the hidden rows."""
        return self._seen.hidden

    def records(self) -> Iterator[Sequence[Cell]]:
        """Iterate over the rows, with the empty ones, from the first."""
        if self._sheet is None:
            self._sheet = self._load(self.name)
        self.height = self._sheet.total_height
        first = (self._sheet.start or (0, 0))[1]
        ranges = [*(self._sheet.merged_cell_ranges or ()), *self._seen.merged]
        merged = _merged(ranges, first, self._sheet.width)
        errors = self._seen.errors
        for number, row in enumerate(self._sheet.iter_rows(), 1):
            cells = [_CONVERSIONS[type(value)](value) for value in row]
            for column in errors.get(number, ()):
                if 0 <= column - first < len(cells):
                    cells[column - first] = ERROR
            for span in merged.pop(number, ()):
                if span.first == number:
                    span.value = cells[span.column]
                elif cells[span.column] is None:
                    cells[span.column] = span.value
                if number < span.last:
                    merged.setdefault(number + 1, []).append(span)
            yield cells


@attrs.define
class _Span:
    """Cells that are merged downwards."""

    first: int
    last: int
    column: int
    value: Cell = None


def _merged(ranges: Any, offset: int, width: int) -> dict[int, list[_Span]]:
    """Return the merged cells by their first rows."""
    found: dict[int, list[_Span]] = {}
    for (top, left), (bottom, _) in ranges:
        if top < bottom and 0 <= left - offset < width:
            found.setdefault(top + 1, []).append(_Span(top + 1, bottom + 1, left - offset))
    return found


def _moment(value: datetime) -> Cell:
    moment = rounded(value)
    if moment.year in (1899, 1900) and moment.time() != time():
        return moment.time()  # the day 0 of spreadsheets and databases: only the time was written
    return moment.date() if moment.time() == time() else moment


def _since_midnight(value: timedelta) -> Cell:
    return time_of_day(value) if timedelta() <= value < timedelta(days=1) else str(value)


_CONVERSIONS: Final[dict[type, Callable[[Any], Cell]]] = {
    bool: lambda value: str(value).upper(),
    str: lambda value: visible_part(value) or None,
    float: lambda value: value,
    int: lambda value: value,
    date: lambda value: value,
    datetime: _moment,
    time: lambda value: time_of_day(timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)),
    timedelta: _since_midnight,
}


def sheets_of(stream: BinaryIO, path: object) -> list[Sheet]:
    """Return the sheets of a workbook.

    Raises:
        ConfigurationError: it is another kind of file, damaged, encrypted, or too large.
    """
    is_zipped = stream.read(len(ZIPPED)) == ZIPPED
    seen = _checked_archive(stream, path) if is_zipped else {}
    if not is_zipped:
        stream.seek(0)
        _check_old(stream.read(), path)
    stream.seek(0)
    with _errors(path):
        workbook = calamine.CalamineWorkbook.from_filelike(stream)
        tables = [each for each in workbook.sheets_metadata if each.typ == calamine.SheetTypeEnum.WorkSheet]

    def load(name: str) -> Any:
        with _errors(path):
            return workbook.get_sheet_by_name(name)

    return [
        Sheet(each.name, each.visible == calamine.SheetVisibleEnum.Visible, load, seen.get(each.name, Seen()))
        for each in tables
    ]


def _fail(path: object, problem: str) -> NoReturn:
    raise ConfigurationError(f"{path} {problem}")


@contextmanager
def _errors(path: object) -> Iterator[None]:
    """Replace the errors of what reads a file, which may have any class."""
    try:
        yield
    except ConfigurationError:
        raise
    except calamine.PasswordError:
        reason = _IS_ENCRYPTED
    except BaseException as error:  # a damaged workbook; a panic of calamine is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = f"is no workbook that can be read ({type(error).__name__}): save it again, or save it as CSV"
    else:
        return
    raise ConfigurationError(f"{path} {reason}")


def _check_old(content: bytes, path: object) -> None:
    if _ENCRYPTED_PART in content:
        _fail(path, _IS_ENCRYPTED)
    with _errors(path):
        if most_cells(content) > _MOST_CELLS:
            _fail(path, f"is too large for a workbook: {_AS_CSV}")


def _checked_archive(stream: BinaryIO, path: object) -> dict[str, Seen]:
    """Check the parts of a zipped workbook, and return what was seen, by the name of the sheet."""
    stream.seek(0)
    with _errors(path), zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
        names = {each.filename for each in parts}
        is_open = "content.xml" in names
        if not is_open and not any(each.startswith("xl/workbook.") for each in names):
            is_text = any(each.startswith("word/") for each in names)
            _fail(path, "is a Word document: save its table as .xlsx" if is_text else "is a zip archive: unpack it")
        held = sum(each.file_size for each in parts if not _is_sheet(each.filename))
        if held > _MOST_HELD or sum(each.file_size for each in parts) > _MOST_EXPANDED:
            _fail(path, f"is too large for a workbook: {_AS_CSV}")
        seen = {each.filename: _look_at(archive, each, path) for each in parts}
        if is_open:
            return _look_at_tables(archive, path)
        if "xl/workbook.xml" not in names:
            return {}
        return {name: seen.get(part) or Seen() for name, part in _parts_of_sheets(archive)}


def _is_sheet(name: str) -> bool:
    return name.startswith("xl/worksheets/")


def _look_at(archive: zipfile.ZipFile, part: zipfile.ZipInfo, path: object) -> Seen | None:
    """Read a part to its end, which checks its size and its checksum; look at the places of its cells."""
    with archive.open(part) as stream:
        chunks = iter(lambda: stream.read(_CHUNK), b"")
        first = next(chunks, b"")
        if b"<!DOCTYPE" in first:  # entities of a DTD could expand without end
            _fail(path, "has a part that no spreadsheet writes: save it again")
        chunks = itertools.chain([first], chunks)
        if not _is_sheet(part.filename):
            for _ in chunks:
                pass
            return None
        if part.filename.endswith(".bin"):
            _check_records(b"".join(chunks), path)
            return None
        return _look_at_cells(chunks, path)


def _look_at_cells(chunks: Iterator[bytes], path: object) -> Seen:
    """Check that row numbers grow, and that rows and columns are not too many; note errors and hidden rows."""
    seen = Seen()
    row = column = widest = 0
    rest = b""
    for chunk in itertools.chain(chunks, [b""]):
        text = rest + chunk
        if text.startswith((b"\xff\xfe", b"\xfe\xff")):
            _fail(path, f"has a sheet that is not in UTF-8: {_AS_CSV}")
        limit = max(len(text) - _LONGEST_TAG, 0)
        end = max(text.rfind(each, 0, limit) for each in (b"<c ", b"<row ", b":c ", b":row ")) if chunk else len(text)
        end = text.rfind(b"<", 0, max(end, 0) + 1) if chunk else end
        end = max(end, 0)
        if len(text) - end > _LONGEST_CELL:
            _fail(path, "has a cell with more characters than a workbook can have")
        for found in _TAG.finditer(text, 0, end):
            kind, attributes, is_formula = found.groups()
            place = _PLACE.search(attributes)
            letters, digits = place.groups() if place else (b"", b"")
            if kind == b"row":
                number = int(digits[:12]) if digits.isdigit() else 0 if digits else row + 1
                if number <= row:
                    _fail(path, f"has rows whose numbers repeat or go backwards, after row {row}: save it again")
                row, column = number, 0
                if _IS_HIDDEN.search(attributes):
                    seen.hidden.add(row)
                if row > _MOST_ROWS:
                    _fail(path, f"has a row number above {_MOST_ROWS:,}, which no workbook has: save it again")
                continue
            if digits and digits != b"%d" % row:
                _fail(path, f"has cells of another row in row {row}: save it again")
            column = _column(letters) if letters else column + 1
            widest = max(widest, column)
            if is_formula or _IS_ERROR.search(attributes):
                seen.errors.setdefault(row, []).append(column - 1)
        if row * widest > _MOST_CELLS:
            _fail(path, f"is too large for a workbook, with {row:,} rows and {widest:,} columns: {_AS_CSV}")
        rest = text[end:]
    return seen


def _column(letters: bytes) -> int:
    number = 0
    for each in letters.upper()[:4]:
        number = number * 26 + each - 64
    return number


def _check_records(content: bytes, path: object) -> None:
    """Check the row and column numbers of a binary sheet (.xlsb)."""
    position = row = widest = 0
    while position + 2 <= len(content):
        kind, position = content[position], position + 1
        if kind & 0x80:
            kind, position = kind & 0x7F | content[position] << 7, position + 1
        size = shift = 0
        for byte in content[position : position + 4]:
            size, shift, position = size | (byte & 0x7F) << shift, shift + 7, position + 1
            if byte < 0x80:
                break
        number = int.from_bytes(content[position : position + 4], "little")
        if kind == 0:
            if number < row - 1 or number >= _MOST_ROWS:
                _fail(path, "has row numbers that go backwards, or that no workbook has: save it again")
            row = number + 1
        elif kind <= 11:  # the kinds of cells begin with their column
            widest = max(widest, number + 1)
        if row * widest > _MOST_CELLS:
            _fail(path, f"is too large for a workbook, with {row:,} rows and {widest:,} columns: {_AS_CSV}")
        position += size


def _parts_of_sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Iterate over the names of the sheets of a workbook (.xlsx) with the names of their parts."""
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314 - without a DTD
    targets = {each.get("Id"): each.get("Target", "") for each in relations}
    for each in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter():  # noqa: S314 - without a DTD
        if each.tag.endswith("}sheet"):
            target = targets.get(each.get(_RELATION) or each.get(_STRICT_RELATION), "")
            yield each.get("name", ""), target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _look_at_tables(archive: zipfile.ZipFile, path: object) -> dict[str, Seen]:
    """Check how often rows and cells of an OpenDocument are repeated; note hidden rows."""
    found: dict[str, Seen] = {}
    seen, row, widest, column, is_filled = Seen(), 0, 0, 0, False
    with archive.open("content.xml") as stream:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):  # noqa: S314 - without a DTD
            if event == "start":
                if element.tag == f"{_TABLE}table":
                    seen, row, widest = found.setdefault(element.get(f"{_TABLE}name", ""), Seen()), 0, 0
                elif element.tag == f"{_TABLE}table-row":
                    column, is_filled = 0, False
            elif element.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                rows = int(element.get(f"{_TABLE}number-rows-spanned", 1))
                if rows > 1:
                    seen.merged.append(((row, column), (row + rows - 1, column)))
                column += int(element.get(f"{_TABLE}number-columns-repeated", 1))
                if len(element):
                    is_filled, widest = True, max(widest, column)
            elif element.tag == f"{_TABLE}table-row":
                repeated = int(element.get(f"{_TABLE}number-rows-repeated", 1))
                if is_filled and element.get(f"{_TABLE}visibility", "visible") != "visible":
                    seen.hidden.update(range(row + 1, row + 1 + min(repeated, _MOST_ROWS)))
                row += repeated
                if is_filled and (row > _MOST_ROWS or row * widest > _MOST_CELLS):
                    _fail(path, f"is too large for a workbook, with {row:,} rows: {_AS_CSV}")
                element.clear()
    return found
