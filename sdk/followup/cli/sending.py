"""``followup events send``: the events of a file, of any length, in batches."""

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
from followup._redaction import visible
from followup.cli.event_files import STANDARD_INPUT, FileEvent, UnreadableFile, read_events
from followup.cli.lines import json_line
from followup.cli.output import fail, progress, table_of
from followup.cli.pace import Pace
from followup.cli.session import connected

ROUNDS = 3
"""How often an event that failed is sent again, under its id."""

PATIENCE = 10
"""How many calls are made for a batch that is over the rate limit; each waits as long as the service says, twice."""

Event = dict[str, Any]

_check = encoder_for(EventInput)


def send(
    file: Annotated[
        Path, typer.Argument(help="JSON (an array), JSON Lines or CSV, by its ending; - reads standard input.")
    ],
    refused: Annotated[
        Path | None,
        typer.Option(help="Where to write the events that were rejected, and why.", show_default="FILE.refused.jsonl"),
    ] = None,
) -> None:
    """Send the events of a file: in batches of 100, those that fail again, and those that are rejected to a file.

    Every event needs id, type and data, in the wire's own names. In a CSV file the columns id, type, occurredAt and
    data.patient.phone (and so on) make one event of each row. Standard input is JSON Lines, or an array if it begins
    with one. Run it again after an interruption: the service knows the ids that it has accepted, and repeats nothing.
    The file of those that were rejected can be fixed and sent too.
    """
    name = "events" if file == STANDARD_INPUT else file.name
    report = Report(refused or file.parent / f"{name}.refused.jsonl")
    if file != STANDARD_INPUT and report.file.exists() and file.exists() and report.file.samefile(file):
        fail(f"{file} cannot hold the events and those that are rejected")
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
        fail("interrupted; run it again, and what was accepted is not repeated")
    if report.refused:
        count = "1 event was" if report.refused == 1 else f"{report.refused} events were"
        fail(f"{count} rejected, with the reasons, in {report.file}; fix the events and send that file")
    if report.is_empty:
        Console(stderr=True).print("No events were sent: the file has none.")


def _private(file: Path) -> TextIO:
    """A new file that others on this machine cannot read: events are about patients."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


class Report:
    """A summary of the events by status, and a file of those that were rejected, written as they come.

    Args:
        file: where rejected events go; it is made with the first of them.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.refused = 0
        self._told: Counter[str] = Counter()
        self._lines: TextIO | None = None

    def add(self, read: FileEvent, status: str, error: str | None) -> None:
        """Count an event, and write it into the file if it was rejected.

        Args:
            read: the event, and its place in the file that it was read from.
            status: what to count it as.
            error: why it was rejected; None if it was not.
        """
        self._told[status] += 1
        if error is None:
            return
        self.refused += 1
        try:
            if self._lines is None:
                self._lines = _private(self.file)
            told = {"event": read.event, "error": f"{read.place}: {_PLACE.sub('', error)}"}
            self._lines.write(json_line(told) + "\n")
        except OSError as problem:
            fail(f"cannot write {self.file}: {problem.strerror}")

    @property
    def is_empty(self) -> bool:
        """Whether there was no event at all."""
        return not self._told

    def show(self) -> None:
        """Close the file and print the counts."""
        if self._lines is not None:
            self._lines.close()
        if self.is_empty:
            return
        rows = [{"status": name, "events": count} for name, count in self._told.items()]
        Console(stderr=True).print(table_of(rows, ["status", "events"]))


def _events(file: Path, report: Report) -> Iterator[FileEvent]:
    """The events of the file, with a bar that shows how far it has been read; what can be none is rejected at once."""
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
    """Why this cannot be sent as an event; the rest is for the service to say."""
    if not isinstance(event, dict):
        return "an event must be an object"
    try:
        _check(_as_input(event), "event")
    except (TypeError, ValueError) as error:
        return _WORD.sub(lambda found: _WIRE_NAMES.get(found[0], found[0]), str(error))
    try:
        json.dumps(event, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "a text in it is not valid Unicode (a lone surrogate)"
    except (ValueError, RecursionError):
        return "it cannot be written as JSON: a number is not finite, or it is nested too deep"
    return None


def _send_batch(client: FollowUp, batch: list[FileEvent], pace: Pace) -> Iterator[tuple[FileEvent, EventResult]]:
    """The final result of each event of a batch; those that fail are sent again."""
    waiting = batch
    for last in (False,) * (ROUNDS - 1) + (True,):
        results = list(zip(waiting, _results(client, [read.event for read in waiting], pace), strict=True))
        again = [] if last else [read for read, result in results if result.status == "failed"]
        yield from ((read, result) for read, result in results if last or result.status != "failed")
        waiting = again
        if not waiting:
            return


def _results(client: FollowUp, events: list[Event], pace: Pace) -> list[EventResult]:
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


def _create(client: FollowUp, events: list[Event], pace: Pace) -> EventBatch:
    inputs = [_as_input(event) for event in events]
    pace.wait()
    for _ in range(PATIENCE - 1):
        with contextlib.suppress(RateLimitError):
            return client.events.create(inputs)
    return client.events.create(inputs)


_KEYS = {"schemaVersion": "schema_version", "occurredAt": "occurred_at"}
_WIRE_NAMES = {value: key for key, value in _KEYS.items()}
_WORD = re.compile(r"\w+")

_PLACE = re.compile(r"^events\[\d+\]\.?")
"""The place in the batch, which means nothing to somebody who has the file."""


def _as_input(event: Event) -> Any:
    return {_KEYS.get(key, key): value for key, value in event.items()}


def _batches(events: Iterable[FileEvent]) -> Iterator[list[FileEvent]]:
    remaining = iter(events)
    while batch := list(itertools.islice(remaining, MAX_EVENTS_PER_BATCH)):
        yield batch
