"""``followup events send``, which sends the events of a file of any length in batches."""

import contextlib
import itertools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from followup import (
    APIStatusError,
    EventBatch,
    EventBatchError,
    EventInput,
    EventResult,
    FollowUp,
    RateLimitError,
)
from followup._annotations import MAX_EVENTS_PER_BATCH, REQUESTS_PER_MINUTE
from followup._codec.encode import encoder_for
from followup._codec.names import camel
from followup._redaction import visible
from followup.cli.event_files import STANDARD_INPUT, FileEvent, UnreadableFile, read_events
from followup.cli.exits import INTERRUPTED, fail, reject
from followup.cli.lines import json_line
from followup.cli.output import progress, table_of
from followup.cli.pace import Pace
from followup.cli.session import connected

ROUNDS = 3
"""How many times an event is sent under its id, until the service has processed it."""

PATIENCE = 10
"""Maximum number of calls for a batch over the rate limit. Each call also honours ``Retry-After`` in its retries."""

_JsonEvent = dict[str, Any]
"""An event with the names of the API."""

_check = encoder_for(EventInput)


def send(
    file: Annotated[
        Path,
        typer.Argument(help="A .json, .jsonl or .csv file; - reads JSON or JSON Lines from standard input."),
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

    Each event needs an id, a type and data, with the names of the API (occurredAt). In a CSV file each row is an
    event, with columns such as id, type, occurredAt and data.patient.phone.

    An event that fails is sent again, up to three times. The command keeps to the rate limit of the service, and can
    be repeated after an interruption: the service ignores the ids that it has already accepted.
    """
    name = "events" if file == STANDARD_INPUT else file.name
    report = Report(rejected or file.parent / f"{name}.rejected.jsonl")
    if file != STANDARD_INPUT and report.file.exists() and file.exists() and report.file.samefile(file):
        reject(f"--rejected must be another file than {file}")
    pace = Pace(REQUESTS_PER_MINUTE)
    interrupted = False
    with connected() as client:
        try:
            for batch in _batches(_events(file, report)):
                for read, result in _send_batch(client, batch, pace):
                    report.add(read, result.status, None if result.accepted else result.error or result.status)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            report.show()
    if interrupted:
        fail("interrupted; repeat the command to send the rest, accepted events are not processed twice", INTERRUPTED)
    if report.rejected:
        count = "1 event was" if report.rejected == 1 else f"{report.rejected} events were"
        fail(f"{count} rejected; fix and send {report.file}, which has the reasons")
    if report.is_empty:
        Console(stderr=True).print("The file has no events.")


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
            if self._lines is None:
                self._lines = _private(self.file)
            line = {"event": read.event, "error": f"{read.place}: {_PLACE.sub('', error)}"}
            self._lines.write(json_line(line) + "\n")
        except OSError as problem:
            fail(f"cannot write {self.file}: {problem.strerror}")

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


def _events(file: Path, report: Report) -> Iterator[FileEvent]:
    """Yield the events of the file that can be sent, with a progress bar; the others are rejected at once."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[events]} events"))
    with progress(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task(visible(file.name), total=None, events=0)
        try:
            with _opened(file, bar, task) as opened:
                for number, read in enumerate(read_events(file, opened), start=1):
                    bar.update(task, events=number)
                    if (problem := _problem(read.event)) is None:
                        yield read
                    else:
                        report.add(read, "invalid", problem)
        except OSError as error:
            fail(f"cannot read {file}: {error.strerror}")
        except UnreadableFile as error:
            fail(str(error))


def _opened(file: Path, bar: Progress, task: TaskID) -> contextlib.AbstractContextManager[BinaryIO]:
    if file == STANDARD_INPUT:
        return contextlib.nullcontext(sys.stdin.buffer)
    return bar.open(file, "rb", task_id=task)


def _problem(event: Any) -> str | None:
    """Return why the value cannot be sent as an event, or None. The service checks the rest."""
    if not isinstance(event, dict):
        return "an event must be an object"
    try:
        _check(_as_input(event), "event")
    except (TypeError, ValueError) as error:
        return _WORD.sub(lambda found: _WIRE_NAMES.get(found[0], found[0]), str(error))
    try:
        json.dumps(event, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "a string in it is not valid Unicode (it has a lone surrogate)"
    except (ValueError, RecursionError):
        return "it cannot be encoded as JSON: a number is not finite, or it is nested too deeply"
    return None


def _send_batch(client: FollowUp, batch: list[FileEvent], pace: Pace) -> Iterator[tuple[FileEvent, EventResult]]:
    """Yield each event of a batch with its final result; events that fail are sent again."""
    waiting = batch
    for attempt in range(1, ROUNDS + 1):
        last = attempt == ROUNDS
        results = list(zip(waiting, _results(client, [read.event for read in waiting], pace), strict=True))
        again = [] if last else [read for read, result in results if result.status == "failed"]
        yield from ((read, result) for read, result in results if last or result.status != "failed")
        waiting = again
        if not waiting:
            return


def _results(client: FollowUp, events: list[_JsonEvent], pace: Pace) -> list[EventResult]:
    try:
        return _create(client, events, pace).results
    except EventBatchError as error:
        if len(error.results) != len(events):
            raise
        return error.results
    except APIStatusError as error:
        if error.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise
        if len(events) == 1:
            return [EventResult(id=str(events[0].get("id")), accepted=False, status="invalid", error=error.message)]
        half = len(events) // 2
        return _results(client, events[:half], pace) + _results(client, events[half:], pace)


def _create(client: FollowUp, events: list[_JsonEvent], pace: Pace) -> EventBatch:
    inputs = [_as_input(event) for event in events]
    pace.wait()
    for _ in range(PATIENCE - 1):
        with contextlib.suppress(RateLimitError):
            return client.events.create(inputs)
    return client.events.create(inputs)


_WIRE_NAMES = {name: camel(name) for name in EventInput.__annotations__}
_KEYS = {wire_name: name for name, wire_name in _WIRE_NAMES.items()}
_WORD = re.compile(r"\w+")

_PLACE = re.compile(r"^events\[\d+\]\.?")
"""The place in the batch, which says nothing about the place in the file."""


def _as_input(event: _JsonEvent) -> Any:
    return {_KEYS.get(key, key): value for key, value in event.items()}


def _batches(events: Iterable[FileEvent]) -> Iterator[list[FileEvent]]:
    remaining = iter(events)
    while batch := list(itertools.islice(remaining, MAX_EVENTS_PER_BATCH)):
        yield batch
