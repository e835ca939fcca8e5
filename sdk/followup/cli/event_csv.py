"""CSV files of events: each row is an event, each column a field of it or of its data."""

import codecs
import csv
import io
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO

from followup import EventInput
from followup._codec.names import annotations_of, camel

DATA = "data."
"""Prefix of the columns that make up the data of an event; a dot separates levels."""

FIELDS = tuple(camel(name) for name in annotations_of(EventInput) if name != "data")
"""The other columns. The names of Python are accepted, too."""

REQUIRED = ("id", "type")

_DELIMITERS = (",", ";", "\t", "|")
"""The first is that of the standard; spreadsheets use the second where a comma separates decimals."""

_DEFAULT_ENCODING = "utf-8-sig"
"""UTF-8, with or without the byte order mark that spreadsheets write."""

_LONGEST_HEADER = 1_000_000
"""Characters. A file that is no CSV file may have no line end at all."""


class BadCsv(Exception):
    """The file cannot be read as CSV; the message names the line and the problem."""


def checked_encoding(name: str) -> str:
    """Return the name of an encoding.

    Raises:
        LookupError: there is no such encoding of text.
    """
    "".encode(name)  # rejects those that are codecs of bytes, such as hex
    return codecs.lookup(name).name


def rows_of(
    opened: BinaryIO, *, encoding: str | None, ignored: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a CSV file, each with its place, such as ``line 7``. The header is checked first.

    Args:
        opened: the open file.
        encoding: its encoding; by default UTF-8.
        ignored: the names of columns that are not read.

    Raises:
        BadCsv: the header or a row is invalid.
        csv.Error, UnicodeDecodeError: it is not CSV, or not in this encoding.
    """
    text = io.TextIOWrapper(opened, encoding=encoding or _DEFAULT_ENCODING, newline="")
    lines = 1
    while (header := text.readline(_LONGEST_HEADER)) and not header.strip():
        lines += 1
    if not header:
        return
    delimiter = delimiter_of(header, REQUIRED)
    names = [_field(name.strip(), ignored) for name in next(csv.reader([header], delimiter=delimiter))]
    _check(lines, names)
    rows = csv.reader(text, delimiter=delimiter)
    before = 0
    for row in rows:
        place, before = f"line {lines + before + 1}", rows.line_num
        if len(row) > len(names):  # a stray quote or delimiter: from here on, values may be in the wrong columns
            raise BadCsv(f"{place}: there are more values than columns")
        if row:
            yield place, _event(dict(zip(names, row, strict=False)))


def delimiter_of(header: str, required: Collection[str]) -> str:
    """Return the delimiter of a CSV file: the one with which its header has the required columns, else most columns.

    Args:
        header: the first line.
        required: names of columns.
    """

    def columns(delimiter: str) -> tuple[int, int]:
        names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
        return sum(name in names for name in required), len(names)

    return max(_DELIMITERS, key=columns)


def _field(name: str, ignored: Collection[str]) -> str:
    """Return the field of a column; empty if the column is not read."""
    if name in ignored:
        return ""
    return camel(name) if camel(name) in FIELDS else name


def _check(line: int, names: Sequence[str]) -> None:
    expected = f"the columns are {', '.join(FIELDS)}, and those of the data, such as {DATA}patient.phone"
    if missing := [name for name in REQUIRED if name not in names]:
        raise BadCsv(f"line {line}: missing the column {' and the column '.join(missing)}; {expected}")
    unknown = [name for name in names if name and name not in FIELDS and not name.startswith(DATA)]
    if unknown:
        noun = "the column" if len(unknown) == 1 else "the columns"
        raise BadCsv(
            f"line {line}: {noun} {', '.join(unknown)} cannot be sent; {expected}. "
            f"--ignore-columns {','.join(unknown)} sends the others"
        )
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise BadCsv(f"line {line}: two columns are named {twice}")
    if mixed := next((name for name in names if name and any(each.startswith(f"{name}.") for each in names)), None):
        raise BadCsv(f"line {line}: {mixed} is a column, and there are columns that begin with {mixed}.")


def _event(row: dict[str, str]) -> dict[str, Any]:
    event: dict[str, Any] = {"data": {}}
    for name, value in row.items():
        if not name or not value:
            continue
        if name == "schemaVersion" and value.isdecimal():
            event[name] = int(value)
        elif name.startswith(DATA):
            _put(event["data"], name.removeprefix(DATA).split("."), value)
        else:
            event[name] = value
    return event


def _put(data: dict[str, Any], path: list[str], value: str) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    data[path[-1]] = value
