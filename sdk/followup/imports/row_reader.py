"""Reads one row of a file: what it asks for, and the doubts about it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from followup.imports.cells import Cell, has_text, text_of
from followup.imports.documents import DocumentError, document_of
from followup.imports.doubts import Doubt, column_in, doubt
from followup.imports.files import Misquoted
from followup.imports.maps import DATE_OF_BIRTH, PLACEHOLDER, TIMES, Column, Status
from followup.imports.values import (
    EMPTY,
    EMPTY_STARTS,
    At,
    Invalid,
    checked,
    checked_length,
    cleaned,
    date_of,
    is_damaged,
)

if TYPE_CHECKING:
    from followup.imports.rows import Row, Rows

REPLACED = "\ufffd"
_STATUSES: Mapping[str, Status] = {each: each for each in get_args(Status)}
_IDENTITY = ("patient.phone", "patient.dni", "patient.external_id")
_AS_WRITTEN = ("external_id", "status", *TIMES)
"""Fields in which ``-`` and ``0`` are values."""

_DROPPED = ("patient.email", DATE_OF_BIRTH)
"""Fields without which a row is sent, if they are invalid."""


class Field:
    """Where the text of a field comes from: the column of the map, with the positions of its cells."""

    def __init__(self, column: Column, header: Sequence[str]) -> None:
        self.column = column
        self.positions: list[int] = [header.index(each) for each in column.headers]
        self._only = self.positions[0] if len(self.positions) == 1 and column.template is None else None

    def cells(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that are not empty; a time is read from them."""
        if self.column.constant is not None:
            return [self.column.constant]
        if self.column.template is not None:
            return [text] if (text := self.text(cells)) else []
        found = (cells[position] for position in self.positions)
        return [cleaned(text) if isinstance(each, str) else each for each in found if (text := text_of(each))]

    def text(self, cells: Sequence[Cell]) -> str:
        """Return the text; empty if all cells are."""
        if self._only is not None:  # most fields
            return _text(cells[self._only])
        column = self.column
        if column.template is None:
            return " ".join(map(text_of, self.cells(cells)))
        texts = [_text(cells[position]) for position in self.positions]
        rest = iter(texts)
        return " ".join(PLACEHOLDER.sub(lambda _: next(rest), column.template).split()) if any(texts) else ""


def _text(cell: Cell) -> str:
    text = cell.strip() if isinstance(cell, str) else text_of(cell)
    return cleaned(text) if text[:1] in ("'", "=") else text


class Draft:
    """A row that is being read, with the doubts about it so far.

    Attributes:
        identity: what identifies the patient, as far as it is valid, and the name.
    """

    def __init__(self, file: "Rows", number: int, sheet: str, cells: Sequence[Cell]) -> None:
        missing = len(file.table.header) - len(cells)
        self._file = file
        self._map = file.map
        self._number = number
        self._sheet = sheet
        self._missing = missing
        self._is_misquoted = isinstance(cells, Misquoted)
        self._cells = [*cells, *[None] * missing] if missing > 0 else cells
        self._doubts: list[Doubt] = []
        self._texts: dict[str, str] = {}
        self.identity: dict[str, str] = {}

    def row(self) -> "Row":
        """Return what the row asks for."""
        id_text = self.text(self._map.id_field)
        at = self._file.at(tuple(self._time_cells())) if self._map.time_field else None
        status = self._status()
        if self._is_none(id_text, status):
            return self._row("ignored", id_text or None, at)
        external_id = self._external_id(id_text)
        if problem := self._size_problem():
            code, detail = problem
            self._doubts = []
            self._doubt(code, detail=detail)
            return self._row("rejected", external_id, None)
        if not id_text:
            self._doubt("id_missing", self._map.id_field, self._map.column_of(self._map.id_field) or self._map.id_field)
        if status == "unknown":
            self._doubt("value_unknown", "status")
        data: dict[str, Any] = {}
        if status == "cancelled":
            data = {"reason": self._field("reason")}
        elif status == "booked":
            if at is not None:
                self._judge_time(at)
            data = self._data()
        self._check_decoding()
        is_rejected = external_id is None or status == "unknown" or any(each.rejects for each in self._doubts)
        outcome: Literal["rejected", "wanted"] = "rejected" if is_rejected else "wanted"
        return self._row(outcome, external_id, at, "booked" if status == "ignore" else status, data)

    def text(self, field: str) -> str:
        """Return the text of a field as the file has it; empty if the map has no such field, or it means nothing."""
        if (found := self._texts.get(field)) is None:
            source = self._file.fields.get(field)
            found = source.text(self._cells) if source else ""
            if field == "patient.full_name":
                found = _as_sent(found, source.column) if source else ""
            if found[:1] in EMPTY_STARTS and field not in _AS_WRITTEN and found.casefold() in EMPTY:
                found = ""
            self._texts[field] = found
        return found

    def hash_of(self, positions: Sequence[int]) -> int:
        """Return a hash of the cells of some columns."""
        return hash(tuple([self._cells[each] for each in positions]))

    def _row(
        self,
        outcome: Literal["wanted", "rejected", "ignored"],
        external_id: str | None,
        at: At | Invalid | None,
        status: Literal["booked", "cancelled", "unknown"] = "booked",
        data: dict[str, Any] | None = None,
    ) -> "Row":
        from followup.imports.rows import Row

        written = {field: self._texts[field] for field in _WRITTEN if field in self._texts}
        found = at if isinstance(at, At) else None
        doubts = [] if outcome == "ignored" else self._doubts
        return Row(self._number, self._sheet, outcome, external_id, status, found, data or {}, written, doubts)

    def _time_cells(self) -> list[Cell]:
        return self._file.fields[self._map.time_field].cells(self._cells)

    def _is_none(self, id_text: str, status: str) -> bool:
        """Return whether the row is no object: ignored by the map, a total or a note."""
        for position, texts in self._file.ignored:
            if " ".join(_text(self._cells[position]).split()).casefold() in texts:
                return True
        if status == "ignore":
            return True
        time_field = self._map.time_field
        if id_text and (self.text(time_field) if time_field else any(map(self.text, _IDENTITY[:2]))):
            return False
        fields = (time_field,) if time_field else _IDENTITY[:2]
        if not id_text and not any(map(self.text, fields)):
            return True
        return len(self._file.table.header) > 1 and sum(map(bool, map(text_of, self._cells))) < 2

    def _size_problem(self) -> tuple[str, str] | None:
        """Return the code of the doubt about a row that is too short or too long, and its detail."""
        width = len(self._file.table.header)
        if self._is_misquoted:
            return "field_invalid", "A double quote within quotes must be written twice"
        if self._missing > 0:
            left = width - self._missing
            needed = (self._map.id_field, self._map.time_field, "status")
            positions = [
                each for name in needed if name in self._file.fields for each in self._file.fields[name].positions
            ]
            table = self._file.table
            is_short = table.is_cut_off or any(position >= left for position in positions)
            if is_short and not table.sheet_names:
                return "row_short", f"{left} of the {width} cells of the header"
        if self._missing < 0 and has_text(self._cells[width:]):
            return "row_long", f"more than the {width} cells of the header"
        return None

    def _external_id(self, text: str) -> str | None:
        field = self._map.id_field
        if not text:
            return None
        if is_damaged(text):
            self._doubt("id_damaged", field)
            return None
        return self._field(field)

    def _judge_time(self, at: At | Invalid) -> None:
        field = self._map.time_field
        if isinstance(at, Invalid):
            is_long = len(self.text(field)) > 5_000
            detail = f"{field} has more than 5,000 characters" if is_long else at.detail
            self._doubt("field_invalid" if is_long else at.code, field, detail)
        elif self._map.kind == "visits" and at.instant > self._file.now:
            self._doubt("visit_in_future", field)
        elif at.is_ambiguous:
            self._doubt("time_ambiguous", field, self._map.zone.key)

    def _data(self) -> dict[str, Any]:
        """Return the data of an object that is to be there, without its id and time."""
        data: dict[str, Any] = {}
        patient = self._patient()
        if patient:
            data["patient"] = patient
        fields = [field for field in self._map.columns if field.startswith("doctor.")]
        doctor = {field.partition(".")[2]: value for field in fields if (value := self._field(field)) is not None}
        if doctor:
            data["doctor"] = doctor
        return data | {name: self._field(name) for name in ("type", "diagnosis", "notes") if name in self._map.columns}

    def _patient(self) -> dict[str, str]:
        """Return the patient, without what is invalid as long as something else says who it is."""
        found: dict[str, str] = {}
        invalid: list[tuple[str, Invalid]] = []
        for field in self._map.columns:
            if not field.startswith("patient."):
                continue
            try:
                value = self._valid(field)
            except Invalid as error:
                invalid.append((field, error))
                continue
            if value is not None:
                found[field.partition(".")[2]] = value
        self.identity = found
        is_known = not found.keys().isdisjoint(("phone", "dni", "external_id"))
        for field, problem in invalid:
            may_be_dropped = field in _DROPPED or (is_known and field in ("patient.phone", "patient.dni"))
            if may_be_dropped:
                self._doubt("field_dropped", field, field)
            else:
                self._doubt(problem.code, field, problem.detail)
        if not any(map(self.text, _IDENTITY)):
            self._doubt("patient_missing")
        return found

    def _status(self) -> Literal["booked", "cancelled", "ignore", "unknown"]:
        """Return what the status of the row means."""
        source = self._file.fields.get("status")
        if source is None:
            return "booked"
        return (source.column.values or _STATUSES).get(self.text("status"), "unknown")

    def _field(self, field: str) -> str | None:
        """Return the value of a field as it is sent; None if it is empty or invalid, which is a doubt."""
        try:
            return self._valid(field)
        except Invalid as error:
            self._doubt(error.code, field, error.detail)
            return None

    def _valid(self, field: str) -> str | None:
        """Return the value of a field as it is sent; None if it is empty."""
        text = self.text(field)
        if not text:
            return None
        value, code = self._read(field, checked_length(text, field))
        if code is not None:
            is_argentine_landline = code == "phone_landline" and self._map.country == "AR"
            self._doubt(code, field, ', or set mobiles = "assume" in the map' if is_argentine_landline else "")
        return value

    def _read(self, field: str, text: str) -> tuple[str, str | None]:
        match field:
            case "patient.phone":
                return self._file.phone(text)
            case "patient.external_id" if is_damaged(text):
                raise Invalid("id_damaged")
            case "patient.dni":
                return self._document(text)
            case "patient.date_of_birth":
                source = self._file.fields[field]
                return date_of(source.cells(self._cells), source.column.formats, field), None
        return checked(text, field), None

    def _document(self, text: str) -> tuple[str, str | None]:
        if is_damaged(text):
            raise Invalid("id_damaged")
        try:
            return document_of(checked(text, "patient.dni"), self._map.country)
        except DocumentError as error:
            raise Invalid("dni_invalid", str(error)) from None

    def _check_decoding(self) -> None:
        """Add a doubt if cells have characters that could not be decoded."""
        if not self._file.table.replaces:
            return
        cells = zip(self._file.table.header, self._cells, strict=False)
        texts = {header: text for header, cell in cells if REPLACED in (text := text_of(cell))}
        if texts:
            column = column_in(self._sheet, " + ".join(texts))
            self._doubts.append(doubt("encoding_replaced", self._number, column, " ".join(texts.values())))

    def _doubt(self, code: str, field: str | None = None, detail: str = "") -> None:
        column, value = (None, None) if field is None else (self._map.column_of(field), self.text(field))
        self._doubts.append(doubt(code, self._number, column_in(self._sheet, column), value, detail=detail))


_WRITTEN = ("external_id", "start_at", "visited_at", "patient.phone", "patient.dni", "patient.full_name")


def _as_sent(name: str, column: Column) -> str:
    """Return a name in one line, with the surname last if the map says that it is first."""
    surname, comma, given = " ".join(name.split()).partition(",")
    return f"{given} {surname}".strip() if comma and column.is_surname_first else " ".join(name.split())
