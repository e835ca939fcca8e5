"""Files of events: JSON, JSON Lines and CSV of any length, read while their events are sent."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import attrs
import ijson

STANDARD_INPUT = Path("-")

DATA = "data."
"""Prefix of the columns of a CSV file that make up the data of an event; a dot separates levels."""

MAX_DEPTH = 200
"""Levels of nesting that a file of events may have; the service accepts far fewer. The memory that a parser takes grows
with the square of the depth."""

REJECTED = {"event", "error"}
"""The keys of each line in a file of rejected events. Such a file can be sent again once its events are fixed."""


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


def read_events(file: Path, opened: BinaryIO) -> Iterator[FileEvent]:
    """Yield the events of a file one by one.

    Args:
        file: path of the file, whose extension names the format; ``-`` is JSON if it begins with ``[``, else JSON
            Lines.
        opened: the open file.

    Raises:
        UnreadableFile: the file does not have the format of its extension, or the extension is unknown.
    """
    is_input = file == STANDARD_INPUT
    if not is_input and file.suffix.lower() not in _FORMATS:
        raise UnreadableFile(f"{file} must end in .json, .jsonl or .csv")
    name, reader = ("JSON Lines", _from_input) if is_input else _FORMATS[file.suffix.lower()]
    shown = "standard input" if is_input else file
    try:
        yield from reader(opened)
    except UnicodeDecodeError:
        raise UnreadableFile(f"{shown} is not UTF-8; save it with this encoding and send it again") from None
    except RecursionError:
        raise UnreadableFile(f"{shown} is nested too deeply") from None
    except (ijson.JSONError, csv.Error, ValueError, _BadLine) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(f"{shown} is not {name}: {reason}") from None


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


def _from_csv(opened: BinaryIO) -> Iterator[FileEvent]:
    rows = csv.DictReader(_text(opened))
    if rows.fieldnames is not None:
        _check_header(list(rows.fieldnames))
    before = rows.line_num
    for row in rows:
        place, before = f"line {before + 1}", rows.line_num
        if None in row:  # a stray quote or comma: from here on, values may be in the wrong columns
            raise _BadLine(f"{place}: there are more values than columns")
        event: dict[str, Any] = {"data": {}}
        for name, value in row.items():
            if not name or not value:
                continue
            if name.startswith(DATA):
                _put(event["data"], name.removeprefix(DATA).split("."), value)
            else:
                event[name] = value
        yield FileEvent(place, event)


def _check_header(names: list[str]) -> None:
    if missing := [name for name in ("id", "type") if name not in names]:
        raise _BadLine(
            f"line 1: missing the column {' and the column '.join(missing)}; columns are separated by commas"
        )
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise _BadLine(f"line 1: two columns are named {twice}")
    if mixed := next((name for name in names if any(other.startswith(f"{name}.") for other in names)), None):
        raise _BadLine(f"line 1: {mixed} is a column, and there are columns that begin with {mixed}.")


def _text(opened: BinaryIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(opened, encoding="utf-8-sig", newline="")


def _put(data: dict[str, Any], path: list[str], value: str) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    data[path[-1]] = value


_FORMATS: dict[str, tuple[str, Callable[[BinaryIO], Iterator[FileEvent]]]] = {
    ".csv": ("CSV", _from_csv),
    ".jsonl": ("JSON Lines", _from_json_lines),
    ".ndjson": ("JSON Lines", _from_json_lines),
    ".json": ("JSON", _from_json),
}
