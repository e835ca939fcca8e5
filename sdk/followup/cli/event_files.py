"""Files of events: JSON, JSON Lines and CSV of any length, read while their events are sent."""

import codecs
import csv
import io
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

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

_LONGEST_HEADER = 1_000_000
"""Characters. A file that is no CSV file may have no line end at all."""


class FileEvent(NamedTuple):
    """A value in a file where an event is expected, which may be invalid; and its place, such as ``line 7``."""

    place: str
    event: Any


class UnreadableFile(Exception):
    """The file does not have the format of its extension; the message names the problem."""


def is_csv(file: Path) -> bool:
    """Return whether the extension of a file is that of CSV."""
    return file.suffix.lower() == ".csv"


def read_events(
    file: Path, opened: io.BufferedReader, *, encoding: str | None = None, ignored: Collection[str] = ()
) -> Iterator[FileEvent]:
    """Yield the events of a file one by one.

    Args:
        file: path of the file, whose extension names the format; ``-`` is standard input. An array is JSON in any file.
        opened: the open file.
        encoding: encoding of a CSV file; by default UTF-8.
        ignored: columns of a CSV file that are not read.

    Raises:
        UnreadableFile: the file does not have the format of its extension, or the extension is unknown.
    """
    shown = "standard input" if file == STANDARD_INPUT else file
    if is_csv(file):
        name, events = "CSV", _from_csv(opened, encoding or "utf-8-sig", ignored)
    elif file != STANDARD_INPUT and file.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
        raise UnreadableFile(f"{file} must end in .json, .jsonl or .csv")
    elif _skip_mark(opened).peek().lstrip()[:1] == b"[":
        name, events = "JSON", _from_json(opened, "item")
    elif file.suffix.lower() == ".json":
        name, events = "JSON", _from_object(opened)
    else:
        name, events = "JSON Lines", _from_json_lines(opened)
    try:
        yield from events
    except UnicodeDecodeError:
        cure = "pass its encoding, such as --encoding cp1252" if is_csv(file) else "save it with this encoding"
        raise UnreadableFile(f"{shown} is not {encoding or 'UTF-8'}; {cure}, and send it again") from None
    except RecursionError:
        raise UnreadableFile(f"{shown} is nested too deeply") from None
    except UnreadableFile as error:
        raise UnreadableFile(f"{shown}{error}") from None
    except (ijson.JSONError, csv.Error, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(f"{shown} is not {name}: {reason}") from None


def _skip_mark(opened: io.BufferedReader) -> io.BufferedReader:
    """Skip the byte order mark that some programs write at the beginning."""
    if opened.peek().startswith(codecs.BOM_UTF8):
        opened.read(len(codecs.BOM_UTF8))
    return opened


def _tokens(opened: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield the tokens of a JSON file.

    Raises:
        RecursionError: it is nested too deeply. This is found here, before a text is made of the place of each token.
    """
    depth = 0
    for kind, value in ijson.basic_parse(opened, use_float=True):
        depth += kind.startswith("start_") - kind.startswith("end_")
        if depth > MAX_DEPTH:
            raise RecursionError
        yield kind, value


def _from_object(opened: BinaryIO) -> Iterator[FileEvent]:
    """Read the body of ``events.create``: one event, or an object with an array of them."""
    start = opened.tell()
    is_batch = any(token[:2] == ("events", "start_array") for token in ijson.parse(_tokens(opened)))
    opened.seek(start)
    yield from _from_json(opened, "events.item" if is_batch else "")


def _from_json(opened: BinaryIO, place: str) -> Iterator[FileEvent]:
    events = ijson.items(ijson.parse(_tokens(opened)), place)
    return (FileEvent(f"event {number}", event) for number, event in enumerate(events, start=1))


def _from_json_lines(opened: BinaryIO) -> Iterator[FileEvent]:
    for number, line in enumerate(io.TextIOWrapper(opened, encoding="utf-8-sig", newline=""), start=1):
        if line.strip():
            try:
                event = json.loads(line)
            except json.JSONDecodeError as error:
                problem = f"line {number}, column {error.colno}: {error.msg}"
                raise UnreadableFile(f" is not JSON Lines: {problem}") from None
            except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
                problem = f"line {number}: a number is too long, or it is nested too deeply"
                raise UnreadableFile(f" is not JSON Lines: {problem}") from None
            is_rejected = isinstance(event, dict) and event.keys() == REJECTED
            yield FileEvent(f"line {number}", event["event"] if is_rejected else event)


def _from_csv(opened: BinaryIO, encoding: str, ignored: Collection[str]) -> Iterator[FileEvent]:
    """Yield the events of a CSV file, whose header is checked first."""
    text = io.TextIOWrapper(opened, encoding=encoding, newline="")
    lines = 1
    while (header := text.readline(_LONGEST_HEADER)) and not header.strip():
        lines += 1
    if not header:
        return
    delimiter = delimiter_of(header, _REQUIRED)
    columns = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    # The name of a column that is not read is empty.
    names = ["" if name in ignored else camel(name) if camel(name) in _FIELDS else name for name in columns]
    if problem := _problem_of(names):
        raise UnreadableFile(f", line {lines}: {problem}")
    rows = csv.reader(text, delimiter=delimiter)
    before = 0
    for row in rows:
        place, before = f"line {lines + before + 1}", rows.line_num
        if len(row) > len(names):  # a stray quote or delimiter: from here on, values may be in the wrong columns
            raise UnreadableFile(f", {place}: there are more values than columns")
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


def _problem_of(names: Sequence[str]) -> str | None:
    """Return what is wrong with the columns of a header; None if nothing is."""
    expected = f"the columns are {', '.join(_FIELDS)}, and those of the data, such as {_DATA}patient.phone"
    if missing := [name for name in _REQUIRED if name not in names]:
        return f"missing the column {' and the column '.join(missing)}; {expected}"
    if unknown := [name for name in names if name and name not in _FIELDS and not name.startswith(_DATA)]:
        cure = f"--ignore-columns {','.join(unknown)} sends the others"
        return f"no column {', '.join(unknown)} can be sent; {expected}. {cure}"
    for name in filter(None, names):
        if names.count(name) > 1:
            return f"two columns are named {name}"
        if any(each.startswith(f"{name}.") for each in names):
            return f"{name} is a column, and there are columns that begin with {name}."
    return None


def _event(row: dict[str, str]) -> dict[str, Any]:
    event: dict[str, Any] = {"data": {}}
    for name, value in row.items():
        if not name or not value:
            continue
        *path, last = name.split(".")
        inner = event
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = int(value) if name == "schemaVersion" and value.isdecimal() else value
    return event
