"""``followup events send``, which sends the events of a file of any length in batches."""

import codecs
import contextlib
import functools
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from followup import EventInput
from followup._annotations import REQUESTS_PER_MINUTE
from followup._codec.names import camel
from followup._redaction import visible
from followup.cli.event_files import (
    STANDARD_INPUT,
    FileEvent,
    UnreadableFile,
    is_csv,
    read_events,
)
from followup.cli.exits import INTERRUPTED, connected, fail, reject
from followup.cli.output import json_line, warn, write_line
from followup.cli.tables import progress, table_of
from followup.cli.values import parts_of

STANDARD_OUTPUT = Path("-")


def send(
    file: Annotated[
        Path,
        typer.Argument(help="A .json, .jsonl or .csv file; - reads JSON or JSON Lines from standard input."),
    ],
    rejected: Annotated[
        Path | None,
        typer.Option(
            help="File for the rejected events, each with the reason; it can be fixed and sent. - writes them to "
            "standard output.",
            show_default="FILE.rejected.jsonl",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Encoding of a CSV file, such as cp1252.", metavar="NAME", show_default="UTF-8"),
    ] = None,
    ignore_columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of a CSV file that are not sent. Separated by commas; the option can be repeated.",
            metavar="LIST",
        ),
    ] = None,
) -> None:
    """Send the events of a file in batches, and write rejected ones to another file.

    Each event needs an id, a type and data. In a CSV file each row is an event: the columns are id, type, occurredAt,
    source and schemaVersion, and those of the data, such as data.patient.phone. They are separated by commas,
    semicolons, tabs or vertical bars.

    An event that fails is sent again, up to three times in all. The command keeps to the rate limit of the service.
    It can be repeated after an interruption: the service ignores the ids that it has already accepted.
    """
    if not is_csv(file) and (encoding is not None or ignore_columns):
        reject("--encoding and --ignore-columns are for CSV files, whose names end in .csv")
    read_from = functools.partial(
        read_events, file, encoding=_checked(encoding), ignored=frozenset(parts_of(ignore_columns or ()))
    )
    name = "events" if file == STANDARD_INPUT else file.name
    report = Report(rejected or file.parent / f"{name}.rejected.jsonl")
    if file != STANDARD_INPUT and report.file.exists() and file.exists() and report.file.samefile(file):
        reject(f"--rejected must not be the file that is sent, {file}")
    interrupted = False
    sent: deque[FileEvent] = deque()
    with connected(requests_per_minute=REQUESTS_PER_MINUTE) as client:
        try:
            for result in client.events.send_all(_inputs(file, read_from, sent)):
                problem = None if result.accepted else _with_wire_names(result.error or result.status)
                report.add(sent.popleft(), result.status, problem)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            report.show()
    if interrupted:
        fail(
            "interrupted; repeat the command to send the rest (accepted events have no effect a second time)",
            INTERRUPTED,
        )
    if report.rejected:
        count = "1 event was" if report.rejected == 1 else f"{report.rejected} events were"
        fail(f"{count} rejected; {report.shown} has the reasons: fix the events, and send them")
    if report.is_empty:
        has_header = is_csv(file) and file.stat().st_size > 0
        warn("The file has a header, but no events." if has_header else "The file has no events.")


def _checked(encoding: str | None) -> str | None:
    try:
        "".encode(encoding or "utf-8")  # rejects codecs of bytes, too, such as hex
        return None if encoding is None else codecs.lookup(encoding).name
    except (LookupError, ValueError):
        reject("--encoding must be the name of an encoding of text, such as cp1252, latin-1 or utf-16")


def _private(file: Path) -> TextIO:
    """Open a new file that only its owner can read, since events have data of patients."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


class Report:
    """Counts events by status, and writes rejected events to a file.

    Args:
        file: path of the file, which is created with the first rejected event.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rejected = 0
        self._counts: Counter[str] = Counter()
        self._lines: TextIO | None = None

    def add(self, read: FileEvent, status: str, error: str | None) -> None:
        """Count an event, and write it to the file if it was rejected.

        Args:
            read: the event.
            status: the status that it counts under.
            error: the reason for the rejection; None if the event was accepted.

        Raises:
            CommandFailed: the file cannot be written.
        """
        self._counts[status] += 1
        if error is None:
            return
        self.rejected += 1
        try:
            line = json_line({"event": read.event, "error": f"{read.place}: {error}"})
            if self.file == STANDARD_OUTPUT:
                write_line(line)
                return
            if self._lines is None:
                self._lines = _private(self.file)
            self._lines.write(line + "\n")
        except OSError as problem:
            fail(f"cannot write {self.file}: {problem.strerror}")

    @property
    def shown(self) -> str:
        """The name of the file for a message."""
        return "standard output" if self.file == STANDARD_OUTPUT else str(self.file)

    @property
    def is_empty(self) -> bool:
        """Whether there were no events."""
        return not self._counts

    def show(self) -> None:
        """Close the file and print the counts."""
        if self._lines is not None:
            self._lines.close()
        if self.is_empty:
            return
        rows = [{"status": name, "events": count} for name, count in self._counts.items()]
        Console(stderr=True).print(table_of(rows, ["status", "events"]))


def _inputs(
    file: Path, read_from: Callable[[BinaryIO], Iterator[FileEvent]], sent: deque[FileEvent]
) -> Iterator[EventInput]:
    """Yield the events of the file, show a progress bar, and append each event with its place to ``sent``."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[events]} events"))
    with progress(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task(visible(file.name), total=None, events=0)
        try:
            with _opened(file, bar, task) as opened:
                for number, read in enumerate(read_from(opened), start=1):
                    bar.update(task, events=number)
                    sent.append(read)
                    yield _as_input(read.event)
        except OSError as error:
            fail(f"cannot read {file}: {error.strerror}")
        except UnreadableFile as error:
            fail(str(error))


def _opened(file: Path, bar: Progress, task: TaskID) -> contextlib.AbstractContextManager[BinaryIO]:
    if file == STANDARD_INPUT:
        return contextlib.nullcontext(sys.stdin.buffer)
    return bar.open(file, "rb", task_id=task)


_WIRE_NAMES = {name: camel(name) for name in EventInput.__annotations__}
_KEYS = {wire_name: name for name, wire_name in _WIRE_NAMES.items()}
_WORD = re.compile(r"\w+")


def _as_input(event: Any) -> Any:
    """Return an event of a file with the keys of ``EventInput``; anything else unchanged, for the SDK to reject.

    A key of the API beside its twin in Python is unchanged, too: nobody can know which of the two is meant.
    """
    if not isinstance(event, dict):
        return event
    return {key if (name := _KEYS.get(key, key)) in event else name: value for key, value in event.items()}


def _with_wire_names(problem: str) -> str:
    """Return an error of the SDK with the field names of the file."""
    problem = problem.replace(f"a dict with the keys of {EventInput.__name__}", "an object")
    return _WORD.sub(lambda found: _WIRE_NAMES.get(found[0], found[0]), problem)
