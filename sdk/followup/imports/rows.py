"""The rows of a file as the states of objects that they ask for, read in a stream."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import attrs

from followup.imports.doubts import Doubt, doubt
from followup.imports.files import Cell, Table, text_of
from followup.imports.maps import PLACEHOLDER, Column, Map, Status
from followup.imports.values import Invalid, checked, checked_length, date_of, document_of, instant_of, phone_of


@attrs.frozen
class Wanted:
    """The state of an object that a row asks for. ``repr`` shows no personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it.
        external_id: id of the object; that of the patient in a file of patients.
        status: ``booked`` or ``cancelled``; visits and patients have no other than the former.
        at: start of the appointment or time of the visit, in UTC. None for patients, and for a cancelled appointment
            whose row has no valid time.
        data: the other arguments of the object's first event, such as ``patient``, a ``PatientInput`` whose phone and
            document are normalized. A cancelled appointment, which needs only its id, has the ``reason`` alone.
        written: the texts of the row's cells by field, such as ``patient.phone``, as the file has them.
        doubts: those that do not reject the row.
    """

    row: int
    external_id: str
    status: Literal["booked", "cancelled"]
    at: datetime | None
    data: Mapping[str, Any] = attrs.field(repr=False)
    written: Mapping[str, str] = attrs.field(repr=False)
    doubts: tuple[Doubt, ...]

    @property
    def patient(self) -> Mapping[str, Any]:
        """The ``PatientInput``; empty if there is none."""
        return self.data.get("patient") or {}


@attrs.frozen
class Rejected:
    """A row that cannot be used: at least one of its doubts rejects it.

    Attributes:
        external_id: id of the object, which is not gone therefore; None if the row has none that can be read.
    """

    external_id: str | None
    doubts: tuple[Doubt, ...]


@attrs.frozen
class Ignored:
    """A row whose status the map ignores; its object is not gone."""

    external_id: str | None


Row = Wanted | Rejected | Ignored


class Rows:
    """The rows of a file, which can be iterated more than once; each time the file is read in a stream.

    The file is read once here, to find ids and phones that occur more than once. Empty rows are skipped. Each iteration
    raises ``ConfigurationError`` if the file has changed since it was opened. Close it when you are done.

    Args:
        map: the map of the file.
        file: path of a CSV file or of an Excel workbook (``.xlsx``).
        on_progress: called now and then with the part of the work that is done, from 0 to 1.

    Attributes:
        sources: where each field of the map comes from.
        phone: reads a phone, and remembers the last ones.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the file is neither CSV nor ``.xlsx``, lacks a column of the map, or changed meanwhile.
    """

    def __init__(self, map: Map, file: str | Path, *, on_progress: Callable[[float], object] | None = None) -> None:
        self.map = map
        self.table: Table = Table(file, map.headers, sheet=map.sheet)
        self.sources: dict[str, _Source] = {field: _Source(column, self.table) for field, column in map.columns.items()}
        self.phone: Callable[[str], tuple[str, str | None]] = lru_cache(_PHONES)(
            lambda text: phone_of(text, map.country, map.mobiles)
        )
        self._on_progress = on_progress
        self._seen = sqlite3.connect("")  # a temporary file, because a million rows would take too much memory
        try:
            self._find_repeated()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, in the order of the file."""
        for number, cells in self.table.rows(self._progress(0.5)):
            row = _Draft(self, number, cells).row()
            external_id = row.external_id
            if external_id is not None and not isinstance(row, Ignored) and self._has("repeated", external_id):
                found = doubt("id_repeated", number, self.map.column_of(self.map.id_field), external_id)
                row = Rejected(external_id, (found, *row.doubts))
            yield row

    def is_shared(self, phone: str) -> bool:
        """Return whether rows of different patients, by external id or DNI, have this normalized phone."""
        return self._has("shared", phone)

    def close(self) -> None:
        """Remove what is known about repeated ids and phones."""
        self._seen.close()

    def _find_repeated(self) -> None:
        """Find the ids and phones of more than one row. Only hashes are stored."""
        self._seen.executescript(_SEEN)
        rows = self.table.rows(self._progress(0))
        identities = (found for number, cells in rows if (found := _Draft(self, number, cells).identity()))
        hashes = (tuple(value and hash(value) for value in each) for each in identities)
        self._seen.executemany("INSERT INTO seen VALUES (?, ?, ?, ?)", hashes)
        self._seen.executescript(_REPEATED)

    def _progress(self, offset: float) -> Callable[[float], object] | None:
        report = self._on_progress
        return None if report is None else lambda part: report(offset + part / 2)

    def _has(self, table: str, text: str) -> bool:
        query = f"SELECT 1 FROM {table} WHERE hash = ?"  # noqa: S608 - a constant
        return self._seen.execute(query, (hash(text),)).fetchone() is not None


_SEEN = """
PRAGMA journal_mode = OFF;
CREATE TABLE seen (id INTEGER, phone INTEGER, dni INTEGER, external_id INTEGER);
CREATE TABLE repeated (hash INTEGER PRIMARY KEY);
CREATE TABLE shared (hash INTEGER PRIMARY KEY);
"""

# Two patients have a phone if their ids or documents differ, or if nothing says that they are one.
_REPEATED = """
INSERT INTO repeated SELECT id FROM seen WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1;
INSERT INTO shared SELECT phone FROM seen WHERE phone IS NOT NULL GROUP BY phone
  HAVING COUNT(DISTINCT external_id) > 1 OR COUNT(DISTINCT dni) > 1
    OR COUNT(external_id) > 0 AND COUNT(dni) > 0 AND COUNT(external_id + dni) = 0;
DROP TABLE seen;
"""


class _Source:
    """Where the text of a field comes from: the column of the map, with the positions of its cells."""

    def __init__(self, column: Column, table: Table) -> None:
        self.column = column
        self._positions = [table.header.index(header) for header in column.headers]
        self._only = self._positions[0] if len(self._positions) == 1 and column.template is None else None

    def cells(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that are not empty; a time is read from them."""
        if self.column.constant is not None:
            return [self.column.constant]
        if self.column.template is not None:
            return [text] if (text := self.text(cells)) else []
        return [cells[position] for position in self._positions if text_of(cells[position])]

    def text(self, cells: Sequence[Cell]) -> str:
        """Return the text; empty if all cells are."""
        if self._only is not None:  # most fields
            return text_of(cells[self._only])
        column = self.column
        if column.template is None:
            return " ".join(map(text_of, self.cells(cells)))
        texts = [text_of(cells[position]) for position in self._positions]
        rest = iter(texts)
        return " ".join(PLACEHOLDER.sub(lambda _: next(rest), column.template).split()) if any(texts) else ""


_PHONES = 50_000
"""Phones that are remembered while a file is read: they take long, and are read twice, and most patients come again."""


class _Draft:
    """A row that is being read, with the doubts about it so far."""

    def __init__(self, file: Rows, number: int, cells: Sequence[Cell]) -> None:
        missing = len(file.table.header) - len(cells)
        self._file = file
        self._map = file.map
        self._number = number
        self._cells = [*cells, *[None] * missing] if missing > 0 else cells
        self._size_problem = _size_problem(file.table, cells)
        self._doubts: list[Doubt] = []
        self._written: dict[str, str] = {}

    def identity(self) -> tuple[str | None, ...] | None:
        """Return id, and phone, DNI and external id of the patient, each if it is valid; None if they do not count."""
        status = self._status()
        if status == "ignore" and not self._size_problem:
            return None
        has_patient = status != "cancelled" and not self._size_problem
        of_patient = map(self._field, _IDENTITY) if has_patient else (None, None, None)
        return self._field(self._map.id_field), *of_patient

    def row(self) -> Row:
        """Return what the row asks for."""
        id_field = self._map.id_field
        status = self._status()
        external_id = self._field(id_field)
        if self._size_problem:
            code, detail = self._size_problem
            return Rejected(external_id, (doubt(code, self._number, detail=detail),))
        if status == "ignore":
            return Ignored(external_id)
        if not self._text(id_field):
            self._doubt("id_missing", id_field, self._map.column_of(id_field) or id_field)
        doubts_before = len(self._doubts)
        at = self._at() if self._map.time_field and status != "unknown" else None
        data: Mapping[str, Any] = {}
        if status == "cancelled":
            del self._doubts[doubts_before:]  # a cancellation needs no time
            data = {"reason": self._field("reason")}
        elif status == "booked":
            data = self._data()
        self._check_decoding()
        doubts = tuple(self._doubts)
        if external_id is None or status == "unknown" or any(each.rejects for each in doubts):
            return Rejected(external_id, doubts)
        return Wanted(self._number, external_id, status, at, data, self._written, doubts)

    def _data(self) -> Mapping[str, Any]:
        """Return the data of an object that is to be there, without its id and time."""
        data: dict[str, Any] = {}
        for group in ("patient", "doctor"):
            fields = [field for field in self._map.columns if field.startswith(f"{group}.")]
            found = {field.partition(".")[2]: value for field in fields if (value := self._field(field)) is not None}
            data |= {group: found} if found else {}
        if not any(map(self._text, _IDENTITY)):
            self._doubt("patient_missing")
        return data | {name: self._field(name) for name in ("type", "diagnosis", "notes") if name in self._map.columns}

    def _status(self) -> Literal["booked", "cancelled", "ignore", "unknown"]:
        """Return what the status of the row means."""
        source = self._file.sources.get("status")
        if source is None:
            return "booked"
        text = self._text("status")
        meaning = (source.column.values or _STATUSES).get(text)
        if meaning is None:
            self._doubt("value_unknown", "status")
        return meaning or "unknown"

    def _field(self, field: str) -> str | None:
        """Return the value of a field as it is sent; None if it is empty or invalid, which is a doubt."""
        text = self._text(field)
        if not text:
            return None
        try:
            value, code = self._read(field, checked_length(text, field))
        except Invalid as error:
            self._doubt(error.code, field, error.detail)
            return None
        if code is not None:
            is_argentine_landline = code == "phone_landline" and self._map.country == "AR"
            self._doubt(code, field, ', or set mobiles = "assume" in the map' if is_argentine_landline else "")
        return value

    def _read(self, field: str, text: str) -> tuple[str, str | None]:
        match field:
            case "patient.phone":
                return self._file.phone(text)
            case "patient.dni":
                value, code = document_of(text, self._map.country)
                return checked(value, field), code
            case "patient.date_of_birth":
                source = self._file.sources[field]
                return date_of(source.cells(self._cells), source.column.formats, field), None
        return checked(text, field), None

    def _at(self) -> datetime | None:
        field = self._map.time_field
        source = self._file.sources[field]
        try:
            checked_length(self._text(field), field)
            instant, is_ambiguous = instant_of(source.cells(self._cells), source.column.formats, self._map.zone)
        except Invalid as error:
            self._doubt(error.code, field, error.detail)
            return None
        if is_ambiguous:
            self._doubt("time_ambiguous", field, self._map.zone.key)
        return instant

    def _text(self, field: str) -> str:
        """Return the text of a field as the file has it; empty if the map has no such field."""
        if field not in self._written:
            source = self._file.sources.get(field)
            self._written[field] = source.text(self._cells) if source else ""
        return self._written[field]

    def _check_decoding(self) -> None:
        """Add a doubt if cells have characters that could not be decoded."""
        if not self._file.table.replaces:
            return
        cells = zip(self._file.table.header, self._cells, strict=False)
        texts = {header: text for header, cell in cells if REPLACED in (text := text_of(cell))}
        if texts:
            found = doubt("encoding_replaced", self._number, " + ".join(texts), " ".join(texts.values()))
            self._doubts.append(found)

    def _doubt(self, code: str, field: str | None = None, detail: str = "") -> None:
        column, value = (None, None) if field is None else (self._map.column_of(field), self._text(field))
        self._doubts.append(doubt(code, self._number, column, value, detail=detail))


def _size_problem(table: Table, cells: Sequence[Cell]) -> tuple[str, str] | None:
    """Return the code of the doubt about a row that is too short or too long, and its detail."""
    width = len(table.header)
    if len(cells) < width and not table.is_workbook:
        return "row_short", f"{len(cells)} of the {width} cells of the header"
    if any(map(text_of, cells[width:])):
        return "row_long", f"more than the {width} cells of the header"
    return None


_STATUSES: Mapping[str, Status] = {each: each for each in get_args(Status)}
_IDENTITY = ("patient.phone", "patient.dni", "patient.external_id")
REPLACED = "\ufffd"
