"""``followup events send``: events of a file, of any length, in batches."""

import csv
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from followup import EventBatchError, EventResult, FollowUp
from followup.cli.output import fail, table_of
from followup.cli.session import connected
from followup.contract import MAX_EVENTS_PER_BATCH

ROUNDS = 3
"""How often an event that failed is sent again, under its id."""

DATA = "data."
"""Columns of a CSV file that begin with this make up the data of its events, a dot for each level."""

Event = dict[str, Any]


def send(
    file: Annotated[Path, typer.Argument(help="JSON (an array), JSON Lines or CSV, by its ending.")],
    refused: Annotated[
        Path | None,
        typer.Option(help="Where to write the events that were refused, and why.", show_default="FILE.refused.jsonl"),
    ] = None,
) -> None:
    """Send the events of a file: in batches of 100, those that fail again, and those that are refused to a file.

    Every event needs id, type and data, in the wire's own names. In a CSV file the columns id, type, occurredAt and
    data.patient.phone (and so on) make one event of each row. Run it again after an interruption: the service knows the
    ids that it has accepted, and repeats nothing.
    """
    refused = refused or file.with_name(f"{file.name}.refused.jsonl")
    told: Counter[str] = Counter()
    not_accepted: list[tuple[Event, str]] = []
    with connected() as client, Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(file.name, total=None)
        for batch in _batches(_events(file)):
            for event, result in _send_batch(client, batch):
                told[result.status] += 1
                if not result.accepted:
                    not_accepted.append((event, result.error or result.status))
            progress.advance(task, len(batch))
    _finish(refused, told, not_accepted)


def _send_batch(client: FollowUp, batch: list[Event]) -> Iterator[tuple[Event, EventResult]]:
    """The final result of each event of a batch; those that fail are sent again."""
    waiting = batch
    for last in (False,) * (ROUNDS - 1) + (True,):
        results = list(zip(waiting, _results(client, waiting), strict=True))
        again = [] if last else [event for event, result in results if result.status == "failed"]
        yield from ((event, result) for event, result in results if last or result.status != "failed")
        waiting = again
        if not waiting:
            return


def _results(client: FollowUp, events: list[Event]) -> list[EventResult]:
    try:
        return client.events.create(_as_inputs(events)).results
    except EventBatchError as error:
        if len(error.results) != len(events):
            raise
        return error.results


_KEYS = {"schemaVersion": "schema_version", "occurredAt": "occurred_at"}


def _as_inputs(events: list[Event]) -> Any:
    return [{_KEYS.get(key, key): value for key, value in event.items()} for event in events]


def _finish(refused: Path, told: Counter[str], not_accepted: list[tuple[Event, str]]) -> None:
    Console(stderr=True).print(
        table_of([{"status": name, "events": told[name]} for name in told], ["status", "events"])
    )
    if not not_accepted:
        return
    lines = (json.dumps({"event": event, "error": error}, ensure_ascii=False) for event, error in not_accepted)
    try:
        refused.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {refused}: {error.strerror}")
    fail(f"{len(not_accepted)} events were refused; they and the reasons are in {refused}")


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    walk = iter(events)
    while batch := list(itertools.islice(walk, MAX_EVENTS_PER_BATCH)):
        yield batch


def _events(file: Path) -> Iterator[Event]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            readers = {".csv": _from_csv, ".jsonl": _from_json_lines, ".ndjson": _from_json_lines, ".json": _from_json}
            reader = readers.get(file.suffix.lower())
            if reader is None:
                fail(f"{file} must end in .json, .jsonl or .csv")
            for number, event in enumerate(reader(lines), start=1):
                if not isinstance(event, dict):
                    fail(f"{file}, event {number}: this must be an object")
                yield event
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8")
    except json.JSONDecodeError as error:
        fail(f"{file} is not JSON: {error}")


def _from_json(lines: Iterable[str]) -> Iterable[Any]:
    events = json.loads("".join(lines))
    return events if isinstance(events, list) else [events]


def _from_json_lines(lines: Iterable[str]) -> Iterator[Any]:
    return (json.loads(line) for line in lines if line.strip())


def _from_csv(lines: Iterable[str]) -> Iterator[Event]:
    for row in csv.DictReader(lines):
        event: Event = {"data": {}}
        for name, value in row.items():
            if not name or not value:
                continue
            if name.startswith(DATA):
                _put(event["data"], name.removeprefix(DATA).split("."), value)
            else:
                event[name] = value
        yield event


def _put(data: Event, path: list[str], value: str) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    data[path[-1]] = value
