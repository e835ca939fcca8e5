"""Files of events: JSON, JSON Lines and CSV of any length, read while their events are sent."""

import csv
import functools
import io
import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import attrs
import ijson

from followup.cli.event_csv import BadCsv, rows_of

STANDARD_INPUT = Path("-")

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
    except BadCsv as error:
        raise UnreadableFile(f"{shown}, {error}") from None
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


def _from_csv(opened: BinaryIO, *, encoding: str | None, ignored: Collection[str]) -> Iterator[FileEvent]:
    return (FileEvent(place, event) for place, event in rows_of(opened, encoding=encoding, ignored=ignored))


def _text(opened: BinaryIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(opened, encoding="utf-8-sig", newline="")


_FORMATS: dict[str, tuple[str, Callable[[BinaryIO], Iterator[FileEvent]]]] = {
    ".jsonl": ("JSON Lines", _from_json_lines),
    ".ndjson": ("JSON Lines", _from_json_lines),
    ".json": ("JSON", _from_json),
}
