"""``followup events send-all``, which sends the events of a file: JSON, or JSON Lines of any length."""

import codecs
import contextlib
import io
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, TextIO

import typer

from followup import EventInput
from followup._core.api_rules import REQUESTS_PER_MINUTE
from followup.cli.options import STANDARD_INPUT, argument_names
from followup.cli.output import INTERRUPTED, connected, fail, file_errors, json_line, reject, warn

_REJECTED = {"event", "error"}
"""The keys of each line in a file of rejected events. Such a file can be sent again once its events are fixed."""


class _FileEvent(NamedTuple):
    """A value in a file where an event is expected, which may be invalid; and its place, such as ``line 7``."""

    place: str
    event: Any


def send_all(
    file: Annotated[
        Path, typer.Argument(help="A .json or .jsonl file; - reads JSON or JSON Lines from standard input.")
    ],
    rejected: Annotated[
        Path | None,
        typer.Option(
            help="File for the rejected events, each with the reason; it can be fixed and sent.",
            show_default="FILE.rejected.jsonl",
        ),
    ] = None,
) -> None:
    """Send the events of a file in batches, and write rejected ones to another file.

    Each event needs an id, a type and data. For a table whose rows are appointments, visits or patients, use "followup
    import".

    An event that fails is sent again, up to three times in all. The command keeps to the rate limit of the service.
    It can be repeated after an interruption: the service ignores the ids that it has already accepted.
    """
    name = "events" if str(file) == STANDARD_INPUT else file.name
    target = rejected or file.parent / f"{name}.rejected.jsonl"
    if file.exists() and target.exists() and target.samefile(file):
        reject(f"--rejected must not be the file that is sent, {file}")
    from followup.cli.lists import counted  # imported late, because a help page does not need rich

    sent: deque[_FileEvent] = deque()
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as opened, connected(requests_per_minute=REQUESTS_PER_MINUTE) as client:
        lines: TextIO | None = None
        count = 0
        try:
            for result in counted(client.events.send_all(_inputs(file, sent)), "events", "Sending"):
                read = sent.popleft()  # results come in the order of sending
                counts[result.status] += 1
                if not result.accepted:
                    count += 1
                    with file_errors(f"write {target}"):
                        lines = lines or opened.enter_context(_private_file(target))
                        problem = f"{read.place}: {result.error or result.status}"
                        lines.write(json_line({"event": read.event, "error": problem}) + "\n")
        except KeyboardInterrupt:
            problem = "interrupted; repeat the command to send the rest (accepted events have no effect a second time)"
            fail(problem, INTERRUPTED)
        finally:
            if counts:
                warn(", ".join(f"{number} {status}" for status, number in counts.items()))
    if not counts:
        warn("The file has no events.")
    if count:
        number = "1 event was" if count == 1 else f"{count} events were"
        fail(f"{number} rejected; {target} has the reasons: fix the events, and send them")


def _private_file(path: Path) -> TextIO:
    """Open a file to write, which only its owner can read; it may have been open to others."""
    if path.is_file():  # an open mode changes only the file that it creates
        path.chmod(0o600)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="\n")


def _inputs(file: Path, sent: "deque[_FileEvent]") -> Iterator[EventInput]:
    """Yield the events of the file, and append each with its place to ``sent``."""
    is_input = str(file) == STANDARD_INPUT
    with file_errors(f"read {file}"), sys.stdin.buffer if is_input else file.open("rb") as opened:
        for read in _read_events(file, opened):
            sent.append(read)
            yield _as_input(read.event)


_renamed = argument_names(EventInput)


def _as_input(event: Any) -> Any:
    """Return an event of a file with the keys of ``EventInput``; anything else unchanged, for the SDK to reject.

    A key of the API beside its twin in Python is unchanged, too: nobody can know which of the two is meant.
    """
    if not isinstance(event, dict):
        return event
    return {key if _renamed(key) in event else _renamed(key): value for key, value in event.items()}


def _read_events(file: Path, opened: Any) -> Iterator[_FileEvent]:
    """Yield the events of a file one by one.

    Args:
        file: path of the file, whose extension names the format; ``-`` is standard input. An array is JSON in any file.
        opened: the open file.

    Raises:
        CommandFailed: the file does not have the format of its extension, or the extension is unknown.
    """
    shown = "standard input" if str(file) == STANDARD_INPUT else file
    if str(file) != STANDARD_INPUT and file.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
        fail(f"{file} must end in .json or .jsonl; 'followup import' sends the rows of a table")
    is_json = file.suffix.lower() == ".json" or opened.peek().removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"["
    try:
        yield from _from_json(opened) if is_json else _from_json_lines(opened)
    except UnicodeDecodeError:
        fail(f"{shown} is not UTF-8; save it with this encoding, and send it again")
    except RecursionError:
        fail(f"{shown} is nested too deeply")
    except ValueError as error:
        fail(f"{shown} is not {'JSON' if is_json else 'JSON Lines'}: {error}")


def _from_json(opened: BinaryIO) -> list[_FileEvent]:
    """Read the body of ``events.create``: one event, an array, or an object with an array."""
    found = json.load(opened)  # as a whole: what follows an error in the middle would be sent, or not, by chance
    if isinstance(found, dict) and isinstance(found.get("events"), list):
        found = found["events"]
    events = found if isinstance(found, list) else [found]
    return [_FileEvent(f"event {number}", event) for number, event in enumerate(events, start=1)]


def _from_json_lines(opened: BinaryIO) -> Iterator[_FileEvent]:
    # Programs of Windows begin a file with a byte order mark.
    with io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                event = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number}, column {error.colno}: {error.msg}") from None
            except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
                raise ValueError(f"line {number}: a number is too long, or it is nested too deeply") from None
            is_rejected = isinstance(event, dict) and event.keys() == _REJECTED
            yield _FileEvent(f"line {number}", event["event"] if is_rejected else event)
