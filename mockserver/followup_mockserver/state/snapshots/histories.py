"""The part of a snapshot that says what happened: the history with its causes.

Records and receipts are tables of columns, because a history may have five times as many records as there are objects,
and columns of texts are quick to save, to check and to load. They contain outcomes as positions in a list, from 1, or 0
for none: many records have the same outcome.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from followup._for_mockserver import camel
from followup_mockserver.state.history import History, Receipt, Record
from followup_mockserver.state.outcomes import Outcome
from followup_mockserver.state.snapshots.codecs import Count, plain, wrong
from followup_mockserver.state.tenant import Tenant


@attrs.frozen(kw_only=True)
class _Table:
    def __attrs_post_init__(self) -> None:
        columns = attrs.asdict(self, recurse=False)
        first = next(iter(columns))
        for name, column in columns.items():
            if len(column) != len(columns[first]):
                raise wrong(name, f"This must have as many items as {first}.")


@attrs.frozen(kw_only=True)
class _Records(_Table):
    at: list[datetime]
    kind: list[str]
    id: list[str]
    cause: list[str | None]
    outcome: list[Count]
    about: list[str | None]
    patient: list[str | None]
    due: list[datetime | None]
    hours: list[float | None]
    receipts: list[Count]


@attrs.frozen(kw_only=True)
class _Receipts(_Table):
    endpoint: list[str | None]
    delivery: list[str | None]
    reason: list[Count]


@attrs.frozen(kw_only=True)
class SavedHistory:
    """The history of a tenant, with the numbers of the last control call and of the last job."""

    controls: Count
    jobs: Count
    outcomes: list[Outcome]
    records: _Records
    receipts: _Receipts

    def __attrs_post_init__(self) -> None:
        for position, outcome in enumerate(self.outcomes):
            for name in outcome.kind.fields:
                if getattr(outcome, name) in (None, "", ()):
                    raise wrong(f"outcomes[{position}].{camel(name)}", "This field is required.")
        for path, numbers in (("records.outcome", self.records.outcome), ("receipts.reason", self.receipts.reason)):
            if max(numbers, default=0) > len(self.outcomes):
                raise wrong(path, "These must be positions in the list of outcomes, or 0.")
        if sum(self.records.receipts) != len(self.receipts.reason):
            raise wrong("records.receipts", "Together, these must be as many as there are receipts.")

    def history(self) -> History:
        """Return the history."""
        outcomes = [None, *self.outcomes]
        records, receipts = (attrs.asdict(each, recurse=False) for each in (self.records, self.receipts))
        records["outcome"] = map(outcomes.__getitem__, self.records.outcome)
        receipts["reason"] = map(outcomes.__getitem__, self.receipts.reason)
        rows = map(Receipt, *receipts.values())
        records["receipts"] = ([*itertools.islice(rows, count)] if count else () for count in self.records.receipts)
        return History(map(Record, *records.values()), self.controls)


def saved_history(tenant: Tenant) -> Mapping[str, Any]:
    """Return the history of a tenant as JSON of ``SavedHistory``."""
    records = _columns(Record, tenant.history.records)
    receipts = _columns(Receipt, itertools.chain.from_iterable(records["receipts"]))
    numbers: dict[Outcome | None, int] = {None: 0}
    for columns, name in ((records, "outcome"), (receipts, "reason")):
        columns[name] = [numbers.setdefault(each, len(numbers)) for each in columns[name]]
    records["receipts"] = [*map(len, records["receipts"])]
    return {
        "controls": tenant.history.controls,
        "jobs": tenant.scheduler.scheduled,
        "outcomes": [_without_empty(plain(each)) for each in numbers if each is not None],
        "records": records,
        "receipts": receipts,
    }


def _columns(row: type[NamedTuple], rows: Iterable[NamedTuple]) -> dict[str, Sequence[Any]]:
    table = [*zip(*rows, strict=True)] or [()] * len(row._fields)
    return dict(zip(row._fields, map(list, table), strict=True))


def _without_empty(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in outcome.items() if name == "kind" or value not in (None, "", [])}
