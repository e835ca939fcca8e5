"""Looks into the file of a workbook before calamine reads it.

Calamine allocates as many cells as the largest row and column numbers say, and ends the process if there is not so much
memory. In a workbook of Excel 97 (``.xls``), it follows a chain of sectors until it ends. It does not say which rows
are hidden, and it reads errors as nothing.
"""

import itertools
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final, NoReturn
from xml.etree import ElementTree

import attrs
import python_calamine as calamine

from followup import ConfigurationError

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

_AS_CSV = "save it as CSV"
_IS_ENCRYPTED = "is encrypted: save it without a password"
_ENCRYPTED_PART = "EncryptedPackage".encode("utf-16-le")
"""The name of the part that has a workbook with a password."""

_HEADER = struct.Struct("<30xH16xI8xI4xI4x109I")
_END = 0xFFFF_FFFA
"""The first number that is no sector: it ends a chain, or means that a sector is unused."""

_ENTRY = struct.Struct("<64s52xII4x")
_SMALLEST = 4096
"""Bytes of a stream. Smaller ones are in sectors of 64 bytes within the stream of the first entry."""

_WORKBOOKS = tuple(f"{each}\0".encode("utf-16-le") for each in ("Workbook", "Book"))
_NEW_SHEET, _DIMENSIONS = 0x0809, 0x0200
_CELLS = frozenset((0x0006, 0x00BD, 0x00BE, 0x00D6, 0x00FD, 0x0201, 0x0203, 0x0204, 0x0205, 0x027E))
"""The kinds of records that begin with a row and a column."""


@attrs.define
class Seen:
    """What the file of a sheet says, and calamine does not: hidden rows, merged cells, and cells with an error."""

    hidden: set[int] = attrs.field(factory=set)
    merged: list[tuple[tuple[int, int], tuple[int, int]]] = attrs.field(factory=list)
    errors: dict[int, list[int]] = attrs.field(factory=dict)


@contextmanager
def errors_of(path: object) -> Iterator[None]:
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


def _fail(path: object, problem: str) -> NoReturn:
    raise ConfigurationError(f"{path} {problem}")


def look_into(stream: BinaryIO, path: object) -> dict[str, Seen]:
    """Check a workbook, and return what its sheets say that calamine does not, by their names.

    Raises:
        ConfigurationError: it is another kind of file, damaged, encrypted, or too large.
    """
    is_zipped = stream.read(len(ZIPPED)) == ZIPPED
    stream.seek(0)
    with errors_of(path):
        if is_zipped:
            return _look_into_archive(stream, path)
        content = stream.read()
        if _ENCRYPTED_PART in content:
            _fail(path, _IS_ENCRYPTED)
        if _most_cells(content) > _MOST_CELLS:
            _fail(path, f"is too large for a workbook: {_AS_CSV}")
        return {}


def _look_into_archive(stream: BinaryIO, path: object) -> dict[str, Seen]:
    with zipfile.ZipFile(stream) as archive:
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
                element.clear()  # iterparse keeps all that it has read
    return found


def _most_cells(content: bytes) -> int:
    """Return the number of cells of the largest sheet, with the empty ones between others.

    Raises:
        ValueError, IndexError, struct.error: the file is damaged.
    """
    power, directory, small, more, *numbers = _HEADER.unpack_from(content)
    size = 1 << power
    body = content[size:]
    while more < _END and len(numbers) < len(body):
        *found, more = _links(_joined(body, [more], size))
        numbers += found
    chain = _follower(_links(_joined(body, [each for each in numbers if each < _END], size)))
    chain_of_small = _follower(_links(_joined(body, chain(small), size)))
    entries = [*_ENTRY.iter_unpack(_joined(body, chain(directory), size))]
    within = _joined(body, chain(entries[0][1]), size)
    largest = 0
    for name, start, length in entries[1:]:
        is_small = length < _SMALLEST
        sectors = (chain_of_small if is_small else chain)(start if length else _END)
        if name.startswith(_WORKBOOKS):
            stream = _joined(within, sectors, 64) if is_small else _joined(body, sectors, size)
            largest = max(largest, *_sizes(stream))
    return largest


def _joined(content: bytes, sectors: Sequence[int], size: int) -> bytes:
    return b"".join(content[each * size : (each + 1) * size] for each in sectors)


def _links(content: bytes) -> list[int]:
    return [*struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4])]


def _follower(links: Sequence[int]) -> Callable[[int], list[int]]:
    """Return a function that follows chains; a sector that is in two of them, or twice in one, is an error."""
    left = set(range(len(links)))

    def follow(sector: int) -> list[int]:
        found = []
        while sector < _END:
            if sector not in left:
                raise ValueError("a chain of sectors does not end")
            left.remove(sector)
            found.append(sector)
            sector = links[sector]
        return found

    return follow


def _sizes(stream: bytes) -> Iterator[int]:
    """Iterate over the numbers of cells that the records of a workbook need."""
    yield 0
    position = rows = columns = 0
    while position + 8 <= len(stream):
        kind, length, row, column = struct.unpack_from("<4H", stream, position)
        if kind == _NEW_SHEET:
            rows = columns = 0
        elif kind in _CELLS:
            rows, columns = max(rows, row + 1), max(columns, column + 1)
            yield rows * columns
        elif kind == _DIMENSIONS:
            numbers = "<2I2H" if length >= 14 else "<4H"  # since Excel 97, and before
            first, last, left, right = struct.unpack_from(numbers, stream, position + 4)
            if last < first or right < left:
                raise ValueError("a sheet ends before it begins")
            yield (last - first) * (right - left)
        position += 4 + length
