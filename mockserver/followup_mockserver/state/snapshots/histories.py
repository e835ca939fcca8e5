"""The part of a snapshot that says what happened: the history with its causes.

Records and receipts are tables of columns, because a history may have five times as many records as there are objects,
and columns of texts are quick to save, to check and to load. They contain outcomes as positions in a list, from 1, or 0
for none: many records have the same outcome.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import attrs

from followup._for_mockserver import Limits, camel
from followup_mockserver.state.history import History, Receipt, Record
from followup_mockserver.state.outcomes import Outcome
from followup_mockserver.state.snapshots.codecs import LARGEST_INTEGER, SnapshotError, loaded, plain
from followup_mockserver.state.tenant import Tenant

Number = Annotated[int, Limits(0, LARGEST_INTEGER)]


@attrs.frozen(kw_only=True)
class _Records:
    at: list[datetime]
    kind: list[str]
    id: list[str]
    cause: list[str | None]
    outcome: list[Number]
    about: list[str | None]
    patient: list[str | None]
    due: list[datetime | None]
    hours: list[float | None]
    receipts: list[Number]


@attrs.frozen(kw_only=True)
class _Receipts:
    endpoint: list[str | None]
    delivery: list[str | None]
    reason: list[Number]


@attrs.frozen(kw_only=True)
class _History:
    controls: Number
    jobs: Number
    outcomes: list[Outcome]
    records: _Records
    receipts: _Receipts


def save_history(tenant: Tenant) -> Any:
    """Return the history as JSON, and the numbers of the last control call and of the last job."""
    history = tenant.history
    records = _columns(Record, history.records)
    receipts = _columns(Receipt, itertools.chain.from_iterable(records["receipts"]))
    numbers: dict[Outcome | None, int] = {None: 0}
    for columns, name in ((records, "outcome"), (receipts, "reason")):
        columns[name] = [numbers.setdefault(each, len(numbers)) for each in columns[name]]
    records["at"], records["due"] = plain(records["at"]), plain(records["due"])
    records["receipts"] = [*map(len, records["receipts"])]
    return {
        "controls": history.controls,
        "jobs": tenant.scheduler.scheduled,
        "outcomes": [outcome_data(each) for each in numbers if each is not None],
        "records": records,
        "receipts": receipts,
    }


def _columns(row: type[NamedTuple], rows: Iterable[NamedTuple]) -> dict[str, list[Any]]:
    table = [*zip(*rows, strict=True)] or [()] * len(row._fields)
    return dict(zip(row._fields, map(list, table), strict=True))


def outcome_data(outcome: Outcome) -> Mapping[str, Any]:
    """Return an outcome as JSON: its kind, and the fields that are set."""
    return {wire: value for wire, value in plain(outcome).items() if wire == "kind" or value not in (None, "", [])}


def load_history(tenant: Tenant, data: Any, path: str) -> History:
    """Return the history of a tenant, whose pending jobs have been loaded."""
    saved: _History = loaded(_History, data, path)
    for position, outcome in enumerate(saved.outcomes):
        for name in outcome.kind.fields:
            if getattr(outcome, name) in (None, "", ()):
                raise SnapshotError(f"{path}.outcomes[{position}].{camel(name)}", "This field is required.")
    endpoints, deliveries, reasons = _checked(saved.receipts, f"{path}.receipts")
    *columns, counts = _checked(saved.records, f"{path}.records")
    columns[Record._fields.index("outcome")] = _outcomes(saved, saved.records.outcome, f"{path}.records.outcome")
    receipts = map(Receipt, endpoints, deliveries, _outcomes(saved, reasons, f"{path}.receipts.reason"))
    if sum(counts) != len(endpoints):
        raise SnapshotError(f"{path}.records.receipts", "Together, these must be as many as there are receipts.")
    of_records = ([*itertools.islice(receipts, count)] if count else () for count in counts)
    tenant.scheduler.scheduled = max(tenant.scheduler.scheduled, saved.jobs)
    return History(map(Record, *columns, of_records), saved.controls)


def _checked(table: Any, path: str) -> Sequence[list[Any]]:
    """Return the columns of a table, which have the same length."""
    columns: dict[str, list[Any]] = attrs.asdict(table, recurse=False)
    first = next(iter(columns))
    for name, column in columns.items():
        if len(column) != len(columns[first]):
            raise SnapshotError(f"{path}.{name}", f"This must have as many items as {first}.")
    return [*columns.values()]


def _outcomes(history: _History, numbers: Sequence[int], path: str) -> list[Outcome | None]:
    known = [None, *history.outcomes]
    if max(numbers, default=0) >= len(known):
        raise SnapshotError(path, "These must be positions in the list of outcomes, or 0.")
    return [known[number] for number in numbers]
