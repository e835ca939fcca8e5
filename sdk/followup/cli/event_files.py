"""Files of events: JSON, JSON Lines and CSV, of any length, read as they are sent."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson

DATA = "data."
"""Columns of a CSV file that begin with this make up the data of its events, a dot for each level."""

REFUSED = {"event", "error"}
"""What a line of the file of refused events tells. Such a file can be sent too, once its events are mended."""


class UnreadableFile(Exception):
    """The file is not what its ending says; the text says what is wrong with it."""


def read_events(file: Path, opened: BinaryIO) -> Iterator[Any]:
    """What the file lists, one after the other; it is for the service to say whether they are events.

    Raises:
        UnreadableFile: it is not what its ending says, or has an ending that says nothing.
    """
    if file.suffix.lower() not in _FORMATS:
        raise UnreadableFile(f"{file} must end in .json, .jsonl or .csv")
    name, reader = _FORMATS[file.suffix.lower()]
    try:
        yield from reader(opened)
    except (ijson.JSONError, json.JSONDecodeError, csv.Error, _BadLine) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(f"{file} is not {name}: {reason}") from None
    except UnicodeDecodeError:
        raise UnreadableFile(f"{file} is not UTF-8") from None


class _BadLine(Exception):
    """A line breaks the format; the text says which, and how."""


def _from_json(opened: BinaryIO) -> Iterator[Any]:
    """An array of events, or what the body of the operation may be: one event, or an object with the array."""
    if _first_character(opened) == b"[":
        yield from ijson.items(opened, "item", use_float=True)
    elif any((place, kind) == ("events", "start_array") for place, kind, _ in ijson.parse(opened)):
        opened.seek(0)
        yield from ijson.items(opened, "events.item", use_float=True)
    else:
        opened.seek(0)
        yield json.load(opened)


def _first_character(opened: BinaryIO) -> bytes:
    character = opened.read(1)
    while character.isspace():
        character = opened.read(1)
    opened.seek(0)
    return character


def _from_json_lines(opened: BinaryIO) -> Iterator[Any]:
    for number, line in enumerate(_text(opened), start=1):
        if line.strip():
            try:
                told = json.loads(line)
            except json.JSONDecodeError as error:
                raise _BadLine(f"line {number}, column {error.colno}: {error.msg}") from None
            yield told["event"] if isinstance(told, dict) and told.keys() == REFUSED else told


def _from_csv(opened: BinaryIO) -> Iterator[Any]:
    rows = csv.DictReader(_text(opened))
    if rows.fieldnames is not None:
        _check_header(list(rows.fieldnames))
    for row in rows:
        if None in row:  # a quote or a comma too many: from here on, values may stand in the wrong columns
            raise _BadLine(f"line {rows.line_num}: there are more values than columns")
        event: dict[str, Any] = {"data": {}}
        for name, value in row.items():
            if not name or not value:
                continue
            if name.startswith(DATA):
                _put(event["data"], name.removeprefix(DATA).split("."), value)
            else:
                event[name] = value
        yield event


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


_FORMATS: dict[str, tuple[str, Callable[[BinaryIO], Iterator[Any]]]] = {
    ".csv": ("CSV", _from_csv),
    ".jsonl": ("JSON Lines", _from_json_lines),
    ".ndjson": ("JSON Lines", _from_json_lines),
    ".json": ("JSON", _from_json),
}
