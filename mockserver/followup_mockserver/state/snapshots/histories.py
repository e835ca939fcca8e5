"""The part of a snapshot that says what happened: the history with its causes."""

import functools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from followup._for_mockserver import camel
from followup_mockserver.schema.checks import LATEST_TIME
from followup_mockserver.state.history import History, Receipt, Record
from followup_mockserver.state.outcomes import Outcome
from followup_mockserver.state.snapshots.codecs import SnapshotError, loaded, members, plain
from followup_mockserver.state.tenant import Tenant

_NUMBERS = ("controls", "jobs")
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("kind", "id"), list[str]),
    **dict.fromkeys(("cause", "about", "patient"), list[str | None]),
    "outcome": list[Outcome | None],
    "hours": list[float | None],
}
"""The columns of the records, without those of times and receipts."""


def save_history(tenant: Tenant) -> Any:
    """Return the history as JSON, and the numbers of the last control call and of the last job.

    The records are a table of columns, because a history may have five times as many records as there are objects, and
    columns of texts are quick to save, to check and to load.
    """
    table = [*zip(*tenant.history.records, strict=True)] or [()] * len(Record._fields)
    columns: dict[str, Any] = dict(zip(Record._fields, map(list, table), strict=True))
    columns["at"] = [*map(_text_of, columns["at"])]
    columns["due"] = [None if due is None else _text_of(due) for due in columns["due"]]
    columns["outcome"] = [*map(outcome_data, columns["outcome"])]
    columns["receipts"] = [[[*each[:2], outcome_data(each.reason)] for each in row] for row in columns["receipts"]]
    return {"controls": tenant.history.controls, "jobs": tenant.scheduler.scheduled, "records": columns}


def load_history(tenant: Tenant, data: Any, path: str) -> History:
    """Return the history of a tenant, whose pending jobs have been loaded."""
    found = members(data, path, (*_NUMBERS, "records"))
    numbers = {name: loaded(int, found[name], f"{path}.{name}") for name in _NUMBERS}
    for name, number in numbers.items():
        if number < 0:
            raise SnapshotError(f"{path}.{name}", "This must be 0 or more.")
    tenant.scheduler.scheduled = max(tenant.scheduler.scheduled, numbers["jobs"])
    return History(_records(found["records"], f"{path}.records"), numbers["controls"])


def _records(data: Any, path: str) -> Iterable[Record]:
    columns = dict(members(data, path, Record._fields))
    length = None
    for name, column in columns.items():
        place = f"{path}.{name}"
        if not isinstance(column, list):
            raise SnapshotError(place, "This must be an array.")
        length = len(column) if length is None else length
        if len(column) != length:
            raise SnapshotError(place, "This must have as many items as the other columns.")
    for name, annotation in _COLUMNS.items():
        columns[name] = loaded(annotation, columns[name], f"{path}.{name}")
    columns["at"] = [_time_of(text, f"{path}.at") for text in columns["at"]]
    columns["due"] = [None if text is None else _time_of(text, f"{path}.due") for text in columns["due"]]
    columns["outcome"] = [_complete(each, f"{path}.outcome") for each in columns["outcome"]]
    columns["receipts"] = [_receipts(each, f"{path}.receipts") for each in columns["receipts"]]
    return map(Record, *(columns[name] for name in Record._fields))


def _receipts(data: Any, path: str) -> Sequence[Receipt]:
    if data == []:
        return ()
    if not isinstance(data, list):
        raise SnapshotError(path, "This must be an array.")
    for row in data:
        if not isinstance(row, list) or len(row) != len(Receipt._fields):
            raise SnapshotError(path, f"These must be arrays of {', '.join(Receipt._fields)}.")
    return [
        Receipt(
            loaded(str | None, endpoint, path),
            loaded(str | None, delivery, path),
            _complete(loaded(Outcome | None, reason, path), path),
        )
        for endpoint, delivery, reason in data
    ]


@functools.lru_cache(maxsize=1_024)  # many records have the same outcome
def outcome_data(outcome: Outcome | None) -> dict[str, Any] | None:
    """Return an outcome as JSON: its kind, and the fields that are set."""
    if outcome is None:
        return None
    return {wire: value for wire, value in plain(outcome).items() if wire == "kind" or value not in (None, "", [])}


def _complete(outcome: Outcome | None, path: str) -> Outcome | None:
    """Return an outcome after a check that it has the fields that its sentence contains."""
    for name in outcome.kind.fields if outcome is not None else ():
        if getattr(outcome, name) in (None, "", ()):
            raise SnapshotError(f"{path}.{camel(name)}", "This field is required.")
    return outcome


@functools.lru_cache(maxsize=1_024)  # while a clock is frozen, many records have the same time
def _text_of(instant: datetime) -> str:
    text: str = plain(instant)
    return text


@functools.lru_cache(maxsize=1_024)
def _instant_of(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return None if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _time_of(text: Any, path: str) -> datetime:
    found = _instant_of(text) if isinstance(text, str) else None
    if found is None or found > LATEST_TIME:
        raise SnapshotError(path, f"This must be a time with a time zone, before the year {LATEST_TIME.year}.")
    return found
