"""Files of events: JSON and JSON Lines of any length, read while their events are sent."""

import codecs
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import ijson

from followup.cli.options import STANDARD_INPUT

REJECTED = {"event", "error"}
"""The keys of each line in a file of rejected events. Such a file can be sent again once its events are fixed."""


class FileEvent(NamedTuple):
    """A value in a file where an event is expected, which may be invalid; and its place, such as ``line 7``."""

    place: str
    event: Any


class UnreadableFile(Exception):
    """The file does not have the format of its extension; the message names the problem."""


def read_events(file: Path, opened: io.BufferedReader) -> Iterator[FileEvent]:
    """Yield the events of a file one by one.

    Args:
        file: path of the file, whose extension names the format; ``-`` is standard input. An array is JSON in any file.
        opened: the open file.

    Raises:
        UnreadableFile: the file does not have the format of its extension, or the extension is unknown.
    """
    shown = "standard input" if str(file) == STANDARD_INPUT else file
    if str(file) != STANDARD_INPUT and file.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
        raise UnreadableFile(f"{file} must end in .json or .jsonl; 'followup import' sends the rows of a table")
    if _skip_mark(opened).peek().lstrip()[:1] == b"[":
        name, events = "JSON", _from_json(opened, "item")
    elif file.suffix.lower() == ".json":
        name, events = "JSON", _from_object(opened)
    else:
        name, events = "JSON Lines", _from_json_lines(opened)
    try:
        yield from events
    except UnicodeDecodeError:
        raise UnreadableFile(f"{shown} is not UTF-8; save it with this encoding, and send it again") from None
    except RecursionError:
        raise UnreadableFile(f"{shown} is nested too deeply") from None
    except (ijson.JSONError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(f"{shown} is not {name}: {reason}") from None


def _skip_mark(opened: io.BufferedReader) -> io.BufferedReader:
    """Skip the byte order mark that some programs write at the beginning."""
    if opened.peek().startswith(codecs.BOM_UTF8):
        opened.read(len(codecs.BOM_UTF8))
    return opened


def _from_object(opened: BinaryIO) -> Iterator[FileEvent]:
    """Read the body of ``events.create``: one event, or an object with an array of them."""
    start = opened.tell()
    is_batch = any(token[:2] == ("events", "start_array") for token in ijson.parse(opened, use_float=True))
    opened.seek(start)
    yield from _from_json(opened, "events.item" if is_batch else "")


def _from_json(opened: BinaryIO, place: str) -> Iterator[FileEvent]:
    events = ijson.items(ijson.parse(opened, use_float=True), place)
    return (FileEvent(f"event {number}", event) for number, event in enumerate(events, start=1))


def _from_json_lines(opened: BinaryIO) -> Iterator[FileEvent]:
    for number, line in enumerate(io.TextIOWrapper(opened, encoding="utf-8-sig", newline=""), start=1):
        if line.strip():
            try:
                event = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number}, column {error.colno}: {error.msg}") from None
            except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
                raise ValueError(f"line {number}: a number is too long, or it is nested too deeply") from None
            is_rejected = isinstance(event, dict) and event.keys() == REJECTED
            yield FileEvent(f"line {number}", event["event"] if is_rejected else event)
