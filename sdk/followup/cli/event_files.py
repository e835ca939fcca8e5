"""Files of events: JSON, JSON Lines and CSV of any length, read while their events are sent."""

import csv
import functools
import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import attrs
import ijson

from followup import EventInput
from followup._codec.names import annotations_of, camel

STANDARD_INPUT = Path("-")

MAX_DEPTH = 200
"""Levels of nesting that a file of events may have; the service accepts far fewer. The memory that a parser takes grows
with the square of the depth."""

REJECTED = {"event", "error"}
"""The keys of each line in a file of rejected events. Such a file can be sent again once its events are fixed."""

_DATA = "data."
"""Prefix of the columns that make up the data of an event; a dot separates levels."""

_FIELDS = tuple(camel(name) for name in annotations_of(EventInput) if name != "data")
"""The other columns. The names of Python are accepted, too."""

_REQUIRED = ("id", "type")

_DELIMITERS = (",", ";", "\t", "|")
"""The first is that of the standard; spreadsheets use the second where a comma separates decimals."""

_DEFAULT_ENCODING = "utf-8-sig"
"""UTF-8, with or without the byte order mark that spreadsheets write."""

_LONGEST_HEADER = 1_000_000
"""Characters. A file that is no CSV file may have no line end at all."""


@attrs.frozen
class FileEvent:
    """A value in a file where an event is expected; it may be invalid.

    Attributes:
        place: its place in the file, such as ``line 7`` or ``event 7``.
        event: the value.
    """

    place: str
    event: Any


class UnreadableFile(Exception):
    """The file does not have the format of its extension; the message names the problem."""


def is_csv(file: Path) -> bool:
    """Return whether the extension of a file is that of CSV."""
    return file.suffix.lower() == ".csv"


def read_events(
    file: Path, opened: BinaryIO, *, encoding: str | None = None, ignored: Collection[str] = ()
) -> Iterator[FileEvent]:
    """Yield the events of a file one by one.

    Args:
        file: path of the file, whose extension names the format; ``-`` is JSON if it begins with ``[``, else JSON
            Lines.
        opened: the open file.
        encoding: encoding of a CSV file; by default UTF-8.
        ignored: columns of a CSV file that are not read.

    Raises:
        UnreadableFile: the file does not have the format of its extension, or the extension is unknown.
    """
    is_input = file == STANDARD_INPUT
    name, reader = _FORMATS.get(file.suffix.lower(), ("JSON Lines", _from_input))
    if is_csv(file):
        name, reader = "CSV", functools.partial(_from_csv, encoding=encoding, ignored=ignored)
    elif not is_input and reader is _from_input:
        raise UnreadableFile(f"{file} must end in .json, .jsonl or .csv")
    shown = "standard input" if is_input else file
    try:
        yield from reader(opened)
    except UnicodeDecodeError:
        cure = "pass its encoding, such as --encoding cp1252" if is_csv(file) else "save it with this encoding"
        raise UnreadableFile(f"{shown} is not {encoding or 'UTF-8'}; {cure}, and send it again") from None
    except _BadCsv as error:
        raise UnreadableFile(f"{shown}, {error}") from None
    except RecursionError:
        raise UnreadableFile(f"{shown} is nested too deeply") from None
    except (ijson.JSONError, csv.Error, ValueError, _BadLine) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(f"{shown} is not {name}: {reason}") from None


class _BadCsv(Exception):
    """The file cannot be read as CSV; the message names the line and the problem."""


class _BadLine(Exception):
    """A line does not have the format of the file; the message names the line and the problem."""


def _from_input(opened: BinaryIO) -> Iterator[FileEvent]:
    """Read JSON or JSON Lines from standard input, which can be peeked at but not read twice."""
    if cast("io.BufferedReader", opened).peek().lstrip()[:1] == b"[":
        yield from _numbered(ijson.items(_parsed(opened), "item"))
    else:
        yield from _from_json_lines(opened)


def _from_json(opened: BinaryIO) -> Iterator[FileEvent]:
    """Read an array of events, or the body of ``events.create``: one event, or an object with an array of them."""
    if _first_character(opened) == b"[":
        yield from _numbered(ijson.items(_parsed(opened), "item"))
    elif any((place, kind) == ("events", "start_array") for place, kind, _ in _parsed(opened)):
        opened.seek(0)
        yield from _numbered(ijson.items(_parsed(opened), "events.item"))
    else:
        opened.seek(0)
        yield FileEvent("event 1", json.load(opened))


def _parsed(opened: BinaryIO) -> Iterator[tuple[str, str, Any]]:
    """Yield the tokens of a JSON file: the place of each, its kind and its value.

    Raises:
        RecursionError: it is nested too deeply.
    """
    # The depth is checked before ``parse``, which makes a text of the place of each token.
    parsed: Iterator[tuple[str, str, Any]] = ijson.parse(_tokens(opened))
    return parsed


def _tokens(opened: BinaryIO) -> Iterator[tuple[str, Any]]:
    depth = 0
    for kind, value in ijson.basic_parse(opened, use_float=True):
        if kind in ("start_map", "start_array"):
            depth += 1
            if depth > MAX_DEPTH:
                raise RecursionError
        elif kind in ("end_map", "end_array"):
            depth -= 1
        yield kind, value


def _numbered(events: Iterator[Any]) -> Iterator[FileEvent]:
    return (FileEvent(f"event {number}", event) for number, event in enumerate(events, start=1))


def _first_character(opened: BinaryIO) -> bytes:
    character = opened.read(1)
    while character.isspace():
        character = opened.read(1)
    opened.seek(0)
    return character


def _from_json_lines(opened: BinaryIO) -> Iterator[FileEvent]:
    for number, line in enumerate(_text(opened), start=1):
        if line.strip():
            try:
                event = json.loads(line)
            except json.JSONDecodeError as error:
                raise _BadLine(f"line {number}, column {error.colno}: {error.msg}") from None
            except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
                raise _BadLine(f"line {number}: a number is too long, or it is nested too deeply") from None
            is_rejected = isinstance(event, dict) and event.keys() == REJECTED
            yield FileEvent(f"line {number}", event["event"] if is_rejected else event)


def _text(opened: BinaryIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(opened, encoding="utf-8-sig", newline="")


def _from_csv(opened: BinaryIO, *, encoding: str | None, ignored: Collection[str]) -> Iterator[FileEvent]:
    """Yield the events of a CSV file, whose header is checked first.

    Args:
        opened: the open file.
        encoding: its encoding; by default UTF-8.
        ignored: the names of columns that are not read.

    Raises:
        _BadCsv: the header or a row is invalid.
        csv.Error, UnicodeDecodeError: it is not CSV, or not in this encoding.
    """
    text = io.TextIOWrapper(opened, encoding=encoding or _DEFAULT_ENCODING, newline="")
    lines = 1
    while (header := text.readline(_LONGEST_HEADER)) and not header.strip():
        lines += 1
    if not header:
        return
    delimiter = delimiter_of(header, _REQUIRED)
    names = [_field(name.strip(), ignored) for name in next(csv.reader([header], delimiter=delimiter))]
    _check(lines, names)
    rows = csv.reader(text, delimiter=delimiter)
    before = 0
    for row in rows:
        place, before = f"line {lines + before + 1}", rows.line_num
        if len(row) > len(names):  # a stray quote or delimiter: from here on, values may be in the wrong columns
            raise _BadCsv(f"{place}: there are more values than columns")
        if row:
            yield FileEvent(place, _event(dict(zip(names, row, strict=False))))


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
    return camel(name) if camel(name) in _FIELDS else name


def _check(line: int, names: Sequence[str]) -> None:
    expected = f"the columns are {', '.join(_FIELDS)}, and those of the data, such as {_DATA}patient.phone"
    if missing := [name for name in _REQUIRED if name not in names]:
        raise _BadCsv(f"line {line}: missing the column {' and the column '.join(missing)}; {expected}")
    unknown = [name for name in names if name and name not in _FIELDS and not name.startswith(_DATA)]
    if unknown:
        noun = "the column" if len(unknown) == 1 else "the columns"
        raise _BadCsv(
            f"line {line}: {noun} {', '.join(unknown)} cannot be sent; {expected}. "
            f"--ignore-columns {','.join(unknown)} sends the others"
        )
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise _BadCsv(f"line {line}: two columns are named {twice}")
    if mixed := next((name for name in names if name and any(each.startswith(f"{name}.") for each in names)), None):
        raise _BadCsv(f"line {line}: {mixed} is a column, and there are columns that begin with {mixed}.")


def _event(row: dict[str, str]) -> dict[str, Any]:
    event: dict[str, Any] = {"data": {}}
    for name, value in row.items():
        if not name or not value:
            continue
        if name == "schemaVersion" and value.isdecimal():
            event[name] = int(value)
        elif name.startswith(_DATA):
            _put(event["data"], name.removeprefix(_DATA).split("."), value)
        else:
            event[name] = value
    return event


def _put(data: dict[str, Any], path: list[str], value: str) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    data[path[-1]] = value


_FORMATS: dict[str, tuple[str, Callable[[BinaryIO], Iterator[FileEvent]]]] = {
    ".jsonl": ("JSON Lines", _from_json_lines),
    ".ndjson": ("JSON Lines", _from_json_lines),
    ".json": ("JSON", _from_json),
}
