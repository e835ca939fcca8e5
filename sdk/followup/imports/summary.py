"""What was understood of a file: its first rows in words, and its days, hours and patients in numbers."""

from collections.abc import Callable, Mapping
from datetime import datetime, time
from typing import Any, Final

import attrs

from followup.imports.rows import Row

_SHOWN = 3
_MIDNIGHT, _EARLY, _LATE = time(), time(6), time(22)
_SUNDAY: Final = 7


@attrs.frozen
class Understood:
    """A row as it was understood. ``repr`` shows no personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it.
        name: the patient's name, as it will be sent; empty if the row has none.
        start: date and time in the map's zone, without an offset; None for a patient.
        phone: the patient's phone in E.164; empty if the row has none.
        status: ``booked`` or ``cancelled``.
    """

    row: int
    name: str = attrs.field(repr=False)
    start: datetime | None
    phone: str = attrs.field(repr=False)
    status: str


@attrs.frozen(kw_only=True)
class Summary:
    """Numbers about the accepted rows; days and times are those of the map's zone.

    Attributes:
        first, last: the first and the last time; None if there is none.
        first_time, last_time: the earliest and the latest time of day.
        midnight, before6, after22, sundays: numbers of rows at midnight, before 6 (midnight too), from 22 on, and on
            Sundays.
        patients: number of patients in the rows.
        without_phone, without_document: numbers of patients who have none.
        ignored: number of rows that are no objects.
        hidden_rows: number of rows that the spreadsheet hides, and that were read.
    """

    first: datetime | None = None
    last: datetime | None = None
    first_time: time | None = None
    last_time: time | None = None
    midnight: int = 0
    before6: int = 0
    after22: int = 0
    sundays: int = 0
    patients: int = 0
    without_phone: int = 0
    without_document: int = 0
    ignored: int = 0
    hidden_rows: int = 0


class Understanding:
    """Collects what was understood.

    Args:
        is_new: returns whether a patient was not counted before.
    """

    def __init__(self, is_new: Callable[[Mapping[str, Any]], bool]) -> None:
        self.first: list[Understood] = []
        self._is_new = is_new
        self._bounds: dict[str, Any] = {}
        self._counts: dict[str, Any] = dict.fromkeys(
            ("midnight", "before6", "after22", "sundays", "patients", "without_phone", "without_document"), 0
        )

    def add(self, row: Row) -> None:
        """Count an accepted row."""
        local = row.at.local if row.at else None
        patient = row.patient
        if len(self.first) < _SHOWN:
            name = patient.get("full_name") or row.written.get("patient.full_name", "")
            self.first.append(Understood(row.number, name, local, patient.get("phone", ""), row.status))
        if local is not None:
            self._add_time(local)
        if patient and self._is_new(patient):
            self._counts["patients"] += 1
            self._counts["without_phone"] += "phone" not in patient
            self._counts["without_document"] += "dni" not in patient

    def _add_time(self, local: datetime) -> None:
        clock, bounds, counts = local.time(), self._bounds, self._counts
        if not bounds:
            bounds |= {"first": local, "last": local, "first_time": clock, "last_time": clock}
        bounds["first"], bounds["last"] = min(bounds["first"], local), max(bounds["last"], local)
        bounds["first_time"], bounds["last_time"] = min(bounds["first_time"], clock), max(bounds["last_time"], clock)
        counts["midnight"] += clock.replace(second=0, microsecond=0) == _MIDNIGHT
        counts["before6"] += clock < _EARLY
        counts["after22"] += clock >= _LATE
        counts["sundays"] += local.isoweekday() == _SUNDAY

    def summary(self, *, ignored: int, hidden: int) -> Summary:
        """Return the numbers."""
        return Summary(**self._bounds, **self._counts, ignored=ignored, hidden_rows=hidden)
