"""The parts of a snapshot that say what happened: the history with its causes, and the messages to patients."""

import functools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from followup._for_mockserver import camel
from followup_mockserver.schema.checks import LATEST_TIME
from followup_mockserver.state.history import History, Receipt, Record
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.records import Message
from followup_mockserver.state.snapshots.codecs import RecordCodec, items, members, plain, scalar
from followup_mockserver.state.snapshots.errors import SnapshotError
from followup_mockserver.state.tenant import Tenant

_TEXTS = ("kind", "id")
_OPTIONAL_TEXTS = ("cause", "about", "patient")
_NUMBERS = ("controls", "jobs")


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


def load_history(tenant: Tenant, data: Any, path: str) -> None:
    """Set the history of a tenant, whose pending jobs have been loaded."""
    found = members(data, path, (*_NUMBERS, "records"))
    numbers = {name: scalar(int, found[name], f"{path}.{name}") for name in _NUMBERS}
    for name, number in numbers.items():
        if number < 0:
            raise SnapshotError(f"{path}.{name}", "This must be 0 or more.")
    tenant.history = History(_records(found["records"], f"{path}.records"), numbers["controls"])
    tenant.scheduler.scheduled = max(tenant.scheduler.scheduled, numbers["jobs"])


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
        if name in _TEXTS or name in _OPTIONAL_TEXTS:
            _check_texts(column, place, optional=name in _OPTIONAL_TEXTS)
    columns["at"] = [_time_of(text, f"{path}.at") for text in columns["at"]]
    columns["due"] = [None if text is None else _time_of(text, f"{path}.due") for text in columns["due"]]
    columns["outcome"] = [_outcome(each, f"{path}.outcome") for each in columns["outcome"]]
    columns["hours"] = [_hours(each, f"{path}.hours") for each in columns["hours"]]
    columns["receipts"] = [_receipts(each, f"{path}.receipts") for each in columns["receipts"]]
    return map(Record, *(columns[name] for name in Record._fields))


def _check_texts(column: Sequence[Any], path: str, *, optional: bool) -> None:
    kinds = {str, type(None)} if optional else {str}
    if not kinds.issuperset(map(type, column)):
        raise SnapshotError(path, f"These must be strings{' or null' if optional else ''}.")


def _receipts(data: Any, path: str) -> Sequence[Receipt]:
    if data == []:
        return ()
    rows = [row for row, _ in items(data, path)]
    for row in rows:
        if not isinstance(row, list) or len(row) != len(Receipt._fields):
            raise SnapshotError(path, f"These must be arrays of {', '.join(Receipt._fields)}.")
        _check_texts(row[:2], path, optional=True)
    return [Receipt(row[0], row[1], _outcome(row[2], path)) for row in rows]


_WIRE_NAMES = {camel(each.name): each.name for each in attrs.fields(Outcome) if each.name != "kind"}
_DEFAULTS = Outcome(Kind.OTHER)
_KINDS = {kind.name.lower(): (kind, tuple(map(camel, kind.fields))) for kind in Kind}
_TYPES: dict[str, type[Any]] = {
    "reason": str,
    "status": int,
    "names": list,
    "hours": float,
    "seconds": float,
    "replay_of": str,
}


@functools.lru_cache(maxsize=1_024)  # many records have the same outcome
def outcome_data(outcome: Outcome | None) -> dict[str, Any] | None:
    """Return an outcome as JSON: its kind, and the fields that are set."""
    if outcome is None:
        return None
    values = {wire: getattr(outcome, name) for wire, name in _WIRE_NAMES.items()}
    is_set = {wire: plain(value) for wire, value in values.items() if value != getattr(_DEFAULTS, _WIRE_NAMES[wire])}
    return {"kind": outcome.kind.name.lower(), **is_set}


def _outcome(data: Any, path: str) -> Outcome | None:
    if data is None:
        return None
    name = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(name, str) or name not in _KINDS:
        raise SnapshotError(path, "These must be null, or objects with a known kind.")
    kind, required = _KINDS[name]
    fields = members(data, path, ("kind", *required), tuple(_WIRE_NAMES))
    return Outcome(kind, **{_WIRE_NAMES[wire]: _field(wire, fields[wire], path) for wire in fields if wire != "kind"})


def _field(wire: str, value: Any, path: str) -> Any:
    expected = _TYPES.get(_WIRE_NAMES[wire])
    if expected is None:
        return _time_of(value, path)
    if expected is float:
        return _hours(value, path)
    if type(value) is not expected:
        raise SnapshotError(path, f"The field {wire} must be {_WORDS[expected]}.")
    if expected is not list:
        return value
    _check_texts(value, path, optional=False)
    return tuple(value)


_WORDS = {str: "a string", int: "a whole number", list: "an array of strings"}


def _hours(value: Any, path: str) -> float | None:
    if value is not None and type(value) not in (int, float):
        raise SnapshotError(path, "These must be numbers.")
    return None if value is None else scalar(float, value, path)


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


_MESSAGE: RecordCodec[Message] = RecordCodec(Message)


def save_messages(messages: list[Message]) -> Any:
    """Return the messages as JSON, oldest first."""
    return [_MESSAGE.encode(each) for each in messages]


def load_messages(data: Any, path: str) -> list[Message]:
    """Return the messages. Those that were saved before messages had ids are numbered."""
    messages = []
    for number, (item, place) in enumerate(items(data, path), start=1):
        known = {"id": f"msg_{number}", **item} if isinstance(item, dict) else item
        messages.append(_MESSAGE.decode(known, place))
    return messages
