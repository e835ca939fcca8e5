"""Reads workbooks, ``.xlsx``, ``.xls``, ``.xlsb`` and ``.ods``, with calamine, which holds a sheet in memory."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO, Final

import attrs
import python_calamine as calamine

from followup.imports.formats import rounded, time_of_day
from followup.imports.values import Cell, visible_part
from followup.imports.workbook_checks import Seen, errors_of, look_into

ERROR: Final = "#N/A"
"""The text of a cell that has an error, or a formula that was never computed."""


@attrs.define
class Sheet:
    """A sheet of a workbook.

    Attributes:
        name: its name.
        is_visible: whether the spreadsheet shows it.
    """

    name: str
    is_visible: bool
    _load: Callable[[str], Any]
    _seen: Seen
    _sheet: Any = None

    @property
    def hidden(self) -> set[int]:
        """The numbers of the hidden rows."""
        return self._seen.hidden

    def height_at(self, number: int) -> int:  # noqa: ARG002 - as that of a text
        """Return the number of rows."""
        return int(self._sheet.total_height)

    def records(self) -> Iterator[Sequence[Cell]]:
        """Iterate over the rows, with the empty ones, from the first."""
        if self._sheet is None:
            self._sheet = self._load(self.name)
        # Rows begin with the first column that has a cell; places of merged cells and errors count from A.
        first = (self._sheet.start or (0, 0))[1]
        starts: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for (top, left), (bottom, _) in (*(self._sheet.merged_cell_ranges or ()), *self._seen.merged):
            if top < bottom and 0 <= left - first < self._sheet.width:
                starts[top + 1].append((left - first, bottom + 1))
        merged: dict[int, tuple[int, Cell]] = {}  # by column: the last row, and the value of the first
        for number, row in enumerate(self._sheet.iter_rows(), 1):
            cells = [_CONVERSIONS[type(value)](value) for value in row]
            for column in self._seen.errors.get(number, ()):
                if 0 <= column - first < len(cells):
                    cells[column - first] = ERROR
            for column, (last, value) in merged.items():
                if number <= last and cells[column] is None:
                    cells[column] = value
            merged |= {column: (last, cells[column]) for column, last in starts.pop(number, ())}
            yield cells


def _moment(value: datetime) -> Cell:
    moment = rounded(value)
    if moment.year in (1899, 1900) and moment.time() != time():
        return moment.time()  # the day 0 of spreadsheets and databases: only the time was written
    return moment.date() if moment.time() == time() else moment


def _since_midnight(value: timedelta) -> Cell:
    return time_of_day(value) if timedelta() <= value < timedelta(days=1) else str(value)


_CONVERSIONS: Final[dict[type, Callable[[Any], Cell]]] = {
    bool: lambda value: str(value).upper(),
    str: lambda value: visible_part(value) or None,
    float: lambda value: value,
    int: lambda value: value,
    date: lambda value: value,
    datetime: _moment,
    time: lambda value: time_of_day(timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)),
    timedelta: _since_midnight,
}


def sheets_of(stream: BinaryIO, path: object) -> list[Sheet]:
    """Return the sheets of a workbook.

    Raises:
        ConfigurationError: it is another kind of file, damaged, encrypted, or too large.
    """
    seen = look_into(stream, path)
    stream.seek(0)
    with errors_of(path):
        workbook = calamine.CalamineWorkbook.from_filelike(stream)
        tables = [each for each in workbook.sheets_metadata if each.typ == calamine.SheetTypeEnum.WorkSheet]

    def load(name: str) -> Any:
        with errors_of(path):
            return workbook.get_sheet_by_name(name)

    return [
        Sheet(each.name, each.visible == calamine.SheetVisibleEnum.Visible, load, seen.get(each.name, Seen()))
        for each in tables
    ]
