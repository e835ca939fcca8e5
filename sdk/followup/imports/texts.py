"""Reads texts with a table: CSV of any usual encoding and delimiter, in a stream, and HTML pages.

Also finds the encoding of what programs for DOS and Macs write, or what was encoded twice.
"""

import codecs
import contextlib
import csv
import io
import itertools
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import BinaryIO, Final

import attrs

from followup import ConfigurationError
from followup.imports.values import Cell, has_text, text_of, visible_part

DELIMITERS: Final = (",", ";", "\t", "|")

_LONGEST_LINE = 1_000_000
"""Characters. A file that is no CSV file may have no line end at all."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""The first line that Excel writes and reads to name the delimiter. No spreadsheet shows it."""

_LARGEST_PAGE = 64 << 20

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20

_TOLERATED = 1_000
"""A file is UTF-8 if fewer than one in this many characters outside of ASCII are not."""

TWICE: Final = "UTF-8 twice"
"""What is shown for a file in UTF-8 that was read in another encoding and written as UTF-8 again."""

_OTHERS = ("cp850", "cp437", "mac_roman")
_LETTERS = frozenset("áéíóúüñçãõâêôàäöèìòùîëïßÁÉÍÓÚÜÑÇÃÕÂÊÔÀÄÖÈÌÒÙÎËÏºª")
_IN_A_WORD = re.compile(rb"[A-Za-z]?[\x80-\xff][A-Za-z]?")
_ENCODED_TWICE = re.compile("[\u00c2-\u00c5][\u0080-\u00bf\u0152-\u2122]")
_OUTSIDE_ASCII = re.compile("[^\x00-\x7f]+")


@attrs.frozen
class Encoding:
    """The encoding of a file.

    Attributes:
        name: name of the codec.
        replaces: whether some bytes have to be replaced by ``�``.
        likely: what the file looks more like, such as ``cp850``; None if nothing does.
    """

    name: str
    replaces: bool
    likely: str | None = None


def encoding_of(stream: BinaryIO) -> Encoding:
    """Return the encoding of a text."""
    mark = stream.read(len(codecs.BOM_UTF8))
    if mark.startswith(_UTF_16):
        return Encoding("utf-16", replaces=True)
    stream.seek(0)
    # So each invalid byte is one character, which cannot be encoded again, and is counted by that.
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    others = invalid = runs = twice = 0
    words: Counter[bytes] = Counter()
    is_last = False
    while not is_last:
        chunk = stream.read(_CHUNK)
        is_last = not chunk
        text = decoder.decode(chunk, is_last)
        if not text.isascii():
            others += len(text) - len(text.encode("ascii", "ignore"))
            invalid += len(text) - len(text.encode("utf-8", "ignore").decode())
            if invalid:
                words.update(_IN_A_WORD.findall(chunk))
            runs += len(_OUTSIDE_ASCII.findall(text))
            twice += len(_ENCODED_TWICE.findall(text))
    if mark == codecs.BOM_UTF8 or invalid * _TOLERATED < others or not invalid:
        return Encoding("utf-8-sig", invalid > 0, TWICE if twice * 2 > runs else None)
    if invalid * 10 < others * 9:  # the files of two programs were joined
        return Encoding("cp1252", replaces=True, likely="utf-8")
    scores = {name: sum(map(words.__getitem__, (each for each in words if _is_word(each, name)))) for name in _OTHERS}
    best = max(_OTHERS, key=scores.__getitem__)
    usual = sum(count for each, count in words.items() if _is_word(each, "cp1252"))
    return Encoding("cp1252", replaces=True, likely=best if scores[best] > usual else None)


def _is_word(found: bytes, encoding: str) -> bool:
    """Return whether a letter outside of ASCII, with its neighbours, looks like a part of a word in an encoding."""
    text = found.decode(encoding, "replace")
    letter = next(each for each in text if each > "\x7f")
    before, _, after = text.partition(letter)
    is_odd = (letter.islower() and after.isupper()) or (letter.isupper() and before.islower())
    return letter in _LETTERS and bool(before or after) and not is_odd


class File:
    """A regular file that must not change while it is read.

    Raises:
        OSError: it cannot be read.
        ConfigurationError: it is no regular file; or, later, it changed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        information = self.path.stat()
        if not stat.S_ISREG(information.st_mode):  # before it is opened, because opening a FIFO blocks
            raise ConfigurationError(f"{path}: this must be a regular file")
        self._version = _version(information)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._version[0]

    @contextlib.contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open it."""
        with self.path.open("rb") as stream:
            self._check(os.fstat(stream.fileno()))  # another file may have taken its name since it was looked at
            yield stream
            self._check(os.fstat(stream.fileno()))
            self._check(self.path.stat())  # an export may put a new file in its place

    def _check(self, information: os.stat_result) -> None:
        if _version(information) != self._version:
            raise ConfigurationError(
                f"{self.path} changed while it was read. Let the export finish first: write it under another name, "
                "and rename it at the end"
            )


def _version(information: os.stat_result) -> tuple[int, int, int, int]:
    return information.st_size, information.st_mtime_ns, information.st_ino, information.st_dev


class Misquoted(list[str]):
    """The cells of a line of CSV in which a quoted cell has more text after its quotes, so that none is certain."""


class CsvText:
    """A text in CSV. It has the attributes of a ``workbooks.Sheet``.

    Args:
        file: the file.
        encoding: its encoding.
        headers: headers that the table has, which decide the delimiter.
        first: number of the first rows, one of which has the headers.

    Attributes:
        is_cut_off: whether the row that was read last ends without a line end, or within quotes.
    """

    name: str = ""
    is_visible: bool = True
    hidden: Sequence[int] = ()

    def __init__(self, file: File, encoding: str, headers: Sequence[str], first: int) -> None:
        self._file = file
        self._encoding = encoding
        self.is_cut_off: bool = False
        self._line = ""
        self._delimiter = ","
        self._lines_before = 0
        with file.opened() as stream:
            named = _SEPARATOR_LINE.fullmatch(next(self._lines(stream), ""))
        if named:
            self._lines_before, self._delimiter = 1, named[1]
        else:
            self._delimiter = max(DELIMITERS, key=lambda each: self._fit(each, headers, first))

    def records(self) -> Iterator[Sequence[Cell]]:
        """Iterate over the rows, with the empty ones, from the first."""
        with self._file.opened() as stream:
            lines = itertools.islice(self._lines(stream), self._lines_before, None)
            # Strict, because otherwise csv takes what stands after a closing quote into the cell without a word.
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            for number in itertools.count(1):
                start = reader.line_num
                try:
                    record = next(reader, None)
                except csv.Error as error:
                    if reader.line_num > start + 1 or "field larger" in str(error):  # the quote took in later rows
                        raise self._open_quote(number) from None
                    record = Misquoted(next(csv.reader([self._line], delimiter=self._delimiter)))
                    if "end of data" in str(error):  # the file was cut off in its last cell
                        self.is_cut_off, record = True, record[:-1] or [*record]
                if record is None:
                    return
                yield record

    def height_at(self, number: int) -> int:
        """Return the likely number of all rows, from the part of the file that so many rows took."""
        return round(number * self._file.size / self._stream.tell())

    def _fit(self, delimiter: str, headers: Sequence[str], first: int) -> tuple[int, int]:
        """Return how many of the headers, and how many columns, the file has with a delimiter."""
        self._delimiter = delimiter
        records: list[Sequence[Cell]] = []
        with contextlib.suppress(ConfigurationError):  # a quote may be closed by another delimiter only
            records.extend(filter(has_text, itertools.islice(self.records(), first)))
        widths = Counter(map(len, records))
        common = max((count * (width - 1) for width, count in widths.items()), default=0)
        return max((len({*headers} & {*names_of(each)}) for each in records), default=0), common

    def _open_quote(self, row: int) -> ConfigurationError:
        return ConfigurationError(
            f"{self._file.path}, row {row}: this is no CSV; a double quote may have been opened and not closed"
        )

    def _lines(self, stream: BinaryIO) -> Iterator[str]:
        self._stream = stream
        text = io.TextIOWrapper(stream, encoding=self._encoding, errors="replace", newline="")
        try:
            while line := text.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise ConfigurationError(
                        f"{self._file.path} is no CSV: a line has {_LONGEST_LINE:,} characters or more"
                    )
                self.is_cut_off = line[-1] not in "\r\n"
                self._line = visible_part(line)
                yield self._line
        finally:
            if not stream.closed:
                text.detach()  # else it closes the stream when it is garbage


def names_of(record: Sequence[Cell]) -> list[str]:
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


class Page:
    """The table of an HTML page, which many programs write under the name of a workbook. As a ``workbooks.Sheet``.

    Raises:
        ConfigurationError: the page is too large, or has another number of tables.
    """

    name: str = ""
    is_visible: bool = True
    hidden: Sequence[int] = ()

    def __init__(self, path: object, stream: BinaryIO, encoding: str) -> None:
        content = stream.read(_LARGEST_PAGE + 1)
        if len(content) > _LARGEST_PAGE:
            raise ConfigurationError(f"{path} is too large for an HTML page: save it as CSV")
        parser = _PageParser()
        parser.feed(visible_part(content.decode(encoding, "replace")))
        parser.close()
        tables = [each for each in parser.tables if len(each) > 1 and max(map(len, each)) > 1]
        if len(tables) != 1:
            count = f"{len(tables)} tables" if tables else "no table"
            raise ConfigurationError(f"{path} is HTML or XML with {count}: open it in a spreadsheet, save as .xlsx")
        self._rows = tables[0]

    def records(self) -> Iterator[Sequence[Cell]]:
        """Iterate over the rows."""
        return iter(self._rows)

    def height_at(self, number: int) -> int:  # noqa: ARG002 - as that of a text
        """Return the number of rows."""
        return len(self._rows)


class _PageParser(HTMLParser):
    """The tables of an HTML page, as rows of texts. A cell over several rows has its text in each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._open: list[list[list[str]]] = []
        self._text: list[str] | None = None
        self._spans: dict[int, tuple[int, str]] = {}
        self._shape = (1, 1)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._end_cell()  # of a table around this one
            self.tables.append([])
            self._open.append(self.tables[-1])
            self._spans = {}
        elif tag == "tr" and self._open:
            self._end_cell()
            self._open[-1].append([])
        elif tag in ("td", "th") and self._open and self._open[-1]:
            self._end_cell()
            found = dict(attrs)
            self._shape = _span(found.get("rowspan")), _span(found.get("colspan"))
            self._text = []
        elif tag == "br" and self._text is not None:
            self._text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        if tag == "tr" and self._open and self._open[-1]:
            self._fill(self._open[-1][-1])
        if tag == "table" and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _end_cell(self) -> None:
        if self._text is None:
            return
        row, text, self._text = self._open[-1][-1], " ".join("".join(self._text).split()), None
        rows, columns = self._shape
        self._fill(row)
        if rows > 1:
            self._spans[len(row)] = (rows - 1, text)
        row += [text, *[""] * (columns - 1)]

    def _fill(self, row: list[str]) -> None:
        while (span := self._spans.pop(len(row), None)) is not None:
            left, text = span
            if left > 1:
                self._spans[len(row)] = (left - 1, text)
            row.append(text)


def _span(text: str | None) -> int:
    # A page may name any number, and all these cells would be made.
    return min(int(text), 1_000) if text and text.isdecimal() else 1
