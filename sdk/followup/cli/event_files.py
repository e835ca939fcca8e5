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


class UnreadableFile(Exception):
    """The file is not what its ending says; the text says what is wrong with it."""


def read_events(file: Path, opened: BinaryIO) -> Iterator[Any]:
    """What the file lists, one after the other; it is for the service to say whether they are events.

    Raises:
        UnreadableFile: it is not what its ending says, or has an ending that says nothing.
    """
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise UnreadableFile(f"{file} must end in .json, .jsonl or .csv")
    try:
        yield from reader(opened)
    except (ijson.JSONError, json.JSONDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{file} is not {file.suffix[1:].upper()}: {error}") from None
    except UnicodeDecodeError:
        raise UnreadableFile(f"{file} is not UTF-8") from None


def _from_json(opened: BinaryIO) -> Iterator[Any]:
    """An array of events, or what the body of the operation may be: one event, or an object with the array."""
    if _first_character(opened) == b"[":
        yield from ijson.items(opened, "item", use_float=True)
        return
    whole = json.load(opened)
    yield from whole["events"] if isinstance(whole, dict) and isinstance(whole.get("events"), list) else [whole]


def _first_character(opened: BinaryIO) -> bytes:
    character = opened.read(1)
    while character.isspace():
        character = opened.read(1)
    opened.seek(0)
    return character


def _from_json_lines(opened: BinaryIO) -> Iterator[Any]:
    return (json.loads(line) for line in _text(opened) if line.strip())


def _from_csv(opened: BinaryIO) -> Iterator[Any]:
    for row in csv.DictReader(_text(opened)):
        event: dict[str, Any] = {"data": {}}
        for name, value in row.items():
            if not name or not value:
                continue
            if name.startswith(DATA):
                _put(event["data"], name.removeprefix(DATA).split("."), value)
            else:
                event[name] = value
        yield event


def _text(opened: BinaryIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(opened, encoding="utf-8-sig", newline="")


def _put(data: dict[str, Any], path: list[str], value: str) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    data[path[-1]] = value


_READERS: dict[str, Callable[[BinaryIO], Iterator[Any]]] = {
    ".csv": _from_csv,
    ".jsonl": _from_json_lines,
    ".ndjson": _from_json_lines,
    ".json": _from_json,
}
