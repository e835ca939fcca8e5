"""What an import reports: the doubts about rows, what was understood of the others, and what was recorded."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time
from functools import lru_cache
from typing import Final, NamedTuple

import attrs

from followup import EventInput
from followup._core.package_data import package_text


class Doubt(NamedTuple):
    """Something about a row that is not certain, or that is invalid.

    ``repr`` does not show the value, which may be personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it: the header is row 1. None for the whole file.
        column: header of the column, several joined by `` + ``; None for a row as a whole.
        code: what the doubt is about, such as ``phone_invalid``.
        value: text of the cell; None for a row as a whole.
        text: what was done, and how to decide otherwise. It never contains the value.
    """

    row: int | None
    column: str | None
    code: str
    value: str | None
    text: str

    def __repr__(self) -> str:
        return f"Doubt(row={self.row!r}, column={self.column!r}, code={self.code!r}, text={self.text!r})"

    @property
    def rejects(self) -> bool:
        """Whether the row was rejected because of this doubt."""
        return CODES[self.code].rejects


@attrs.frozen
class Code:
    """A kind of doubt.

    Attributes:
        rejects: whether it rejects the row.
        text: what was done, and how to decide otherwise; ``{detail}`` stands for what differs from row to row.
    """

    rejects: bool
    text: str


CODES: Final[Mapping[str, Code]] = {
    code: Code(**each) for code, each in tomllib.loads(package_text(__name__, "doubts.toml")).items()
}
"""The codes of doubts."""


def doubt(
    code: str, row: int | None = None, column: str | None = None, value: str | None = None, *, detail: str = ""
) -> Doubt:
    """Return a doubt with the text of its code."""
    return Doubt(row, column, code, value, _text(code, detail))


@lru_cache(maxsize=1000)
def _text(code: str, detail: str) -> str:
    return CODES[code].text.format(detail=detail)


def column_in(sheet: str, column: str | None) -> str | None:
    """Return the column of a doubt, with the sheet if several are read."""
    return f"{sheet}!{column or ''}" if sheet else column


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


@attrs.frozen(kw_only=True)
class Report:
    """What an import recorded, or would record. ``repr`` shows no personal data.

    Attributes:
        rows: number of rows, without the header and empty ones.
        rejected: number of rows that were rejected; nothing was recorded of them.
        ignored: number of rows that are no objects: totals, notes, and those that the map ignores.
        unchanged: number of rows about which there is nothing to tell the service.
        gone: number of appointments that are known and still ahead, on the days of this file, but not in it.
        events: the events, in order. They are read from a temporary file each time.
        types: numbers of the events by type.
        doubts: what was not certain, or wrong, in the order of the rows.
        preview: the first accepted rows, as they were understood.
        summary: the days, hours and patients of the accepted rows.
    """

    rows: int = 0
    rejected: int = 0
    ignored: int = 0
    unchanged: int = 0
    gone: int = 0
    events: Collection[EventInput] = attrs.field(default=(), repr=False)
    types: Mapping[str, int] = attrs.field(factory=dict, repr=False)
    doubts: Collection[Doubt] = attrs.field(default=(), repr=False)
    preview: Sequence[Understood] = attrs.field(default=(), repr=False)
    summary: Summary = attrs.field(factory=Summary, repr=False)
