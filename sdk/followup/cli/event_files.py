"""Files of events: JSON, JSON Lines and CSV, of any length, read as they are sent."""

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
"""Columns of a CSV file that begin with this make up the data of its events, a dot for each level."""

REJECTED = {"event", "error"}
"""The keys of a line of the file of rejected events. Such a file can be sent too, once its events are fixed."""


@attrs.frozen
class FileEvent:
    """What stands in a file where an event should be; the service decides whether it is one.

    Attributes:
        place: where it stands, such as ``line 7`` or ``event 7``.
        event: what stands there.
    """

    place: str
    event: Any


class UnreadableFile(Exception):
    """The file is not what its ending says; the text says what is wrong with it."""


def read_events(file: Path, opened: BinaryIO) -> Iterator[FileEvent]:
    """Yield what the file lists, one after the other.

    Args:
        file: path of the file, whose ending names the format; ``-`` is JSON Lines, or JSON by its first character.
        opened: the file, opened.

    Raises:
        UnreadableFile: it is not what its ending says, or has an ending that says nothing.
    """
    is_input = file == STANDARD_INPUT
    if not is_input and file.suffix.lower() not in _FORMATS:
        raise UnreadableFile(f"{file} must end in .json, .jsonl or .csv")
    name, reader = ("JSON Lines", _from_input) if is_input else _FORMATS[file.suffix.lower()]
    shown = "standard input" if is_input else file
    try:
        yield from reader(opened)
    except (ijson.JSONError, json.JSONDecodeError, csv.Error, _BadLine) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(f"{shown} is not {name}: {reason}") from None
    except UnicodeDecodeError:
        raise UnreadableFile(f"{shown} is not UTF-8") from None


class _BadLine(Exception):
    """A line breaks the format; the text says which, and how."""


def _from_input(opened: BinaryIO) -> Iterator[FileEvent]:
    """An array, or a line for each event. Standard input can be looked into, and not be read twice."""
    if cast("io.BufferedReader", opened).peek().lstrip()[:1] == b"[":
        yield from _numbered(ijson.items(opened, "item", use_float=True))
    else:
        yield from _from_json_lines(opened)


def _from_json(opened: BinaryIO) -> Iterator[FileEvent]:
    """An array of events, or what the body of the operation may be: one event, or an object with the array."""
    if _first_character(opened) == b"[":
        yield from _numbered(ijson.items(opened, "item", use_float=True))
    elif any((place, kind) == ("events", "start_array") for place, kind, _ in ijson.parse(opened)):
        opened.seek(0)
        yield from _numbered(ijson.items(opened, "events.item", use_float=True))
    else:
        opened.seek(0)
        yield FileEvent("event 1", json.load(opened))


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
            is_rejected = isinstance(event, dict) and event.keys() == REJECTED
            yield FileEvent(f"line {number}", event["event"] if is_rejected else event)


def _from_csv(opened: BinaryIO) -> Iterator[FileEvent]:
    rows = csv.DictReader(_text(opened))
    if rows.fieldnames is not None:
        _check_header(list(rows.fieldnames))
    before = rows.line_num
    for row in rows:
        place, before = f"line {before + 1}", rows.line_num
        if None in row:  # a quote or a comma too many: from here on, values may stand in the wrong columns
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
        raise _BadLine(f"line 1: there must be a column {' and a column '.join(missing)}, and commas between columns")
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise _BadLine(f"line 1: there are two columns {twice}")
    if mixed := next((name for name in names if any(other.startswith(f"{name}.") for other in names)), None):
        raise _BadLine(f"line 1: {mixed} has both a value and levels below it")


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
