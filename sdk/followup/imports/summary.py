"""What was understood of a file: its first rows in words, and its days, hours and patients in numbers."""

from collections import Counter
from datetime import date, datetime, time
from typing import Final

import attrs

from followup.imports.row_reader import Row

_SHOWN = 3
_AFTER_MIDNIGHT, _EARLY, _LATE = time(0, 1), time(6), time(22)
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
        first, last: the first and the last day; None if there is none.
        first_time, last_time: the earliest and the latest time of day.
        midnight, before6, after22, sundays: numbers of rows at midnight, before 6 (midnight too), from 22 on, and on
            Sundays.
        patients: number of patients in the rows.
        without_phone, without_document: numbers of patients who have none.
        ignored: number of rows that are no objects.
        hidden_rows: number of rows that the spreadsheet hides, and that were read.
    """

    first: date | None = None
    last: date | None = None
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
    """Collects what was understood."""

    def __init__(self) -> None:
        self.first: list[Understood] = []
        self._days: Counter[date] = Counter()
        self._clocks: Counter[time] = Counter()

    def add(self, row: Row) -> None:
        """Count an accepted row."""
        local = row.at.local if row.at else None
        if len(self.first) < _SHOWN:
            name = row.patient.get("full_name") or row.written.get("patient.full_name", "")
            self.first.append(Understood(row.number, name, local, row.patient.get("phone", ""), row.status))
        if local is not None:
            self._days[local.date()] += 1
            self._clocks[local.time()] += 1

    def summary(self, patients: tuple[int, int, int], *, ignored: int, hidden: int) -> Summary:
        """Return the numbers.

        Args:
            patients: the numbers of patients, of those without a phone, and of those without a document.
            ignored: number of rows that are no objects.
            hidden: number of rows that the spreadsheet hides, and that were read.
        """
        clocks = self._clocks
        return Summary(
            first=min(self._days, default=None),
            last=max(self._days, default=None),
            first_time=min(clocks, default=None),
            last_time=max(clocks, default=None),
            midnight=sum(clocks[each] for each in clocks if each < _AFTER_MIDNIGHT),
            before6=sum(clocks[each] for each in clocks if each < _EARLY),
            after22=sum(clocks[each] for each in clocks if each >= _LATE),
            sundays=sum(self._days[each] for each in self._days if each.isoweekday() == _SUNDAY),
            patients=patients[0],
            without_phone=patients[1],
            without_document=patients[2],
            ignored=ignored,
            hidden_rows=hidden,
        )
