"""Reads the rows of a file: what each asks for, and the doubts about it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

import attrs

from followup.imports.fields import Field, Found, picking, text_in
from followup.imports.files import Table
from followup.imports.maps import DATE_OF_BIRTH, TIMES, Map, Status
from followup.imports.report import CODES, Doubt, column_in, doubt
from followup.imports.texts import Misquoted
from followup.imports.values import At, Cell, has_text, text_of

REPLACED = "\ufffd"
_STATUSES: Mapping[str, Status] = {each: each for each in get_args(Status)}
_IDENTITY = ("patient.phone", "patient.dni", "patient.external_id")
_DROPPED = ("patient.email", DATE_OF_BIRTH)
"""Fields without which a row is sent, if they are invalid."""

_WRITTEN = ("external_id", *TIMES, "patient.external_id", "patient.phone", "patient.dni", "patient.full_name")
"""Fields whose texts a row keeps."""


@attrs.define
class Row:
    """What a row asks for. ``repr`` shows no personal data.

    Attributes:
        number: number of the row, as a spreadsheet shows it.
        sheet: name of its sheet; empty if only one table is read.
        outcome: ``wanted``; ``rejected``: at least one doubt rejects it; ``ignored``: it is no appointment, visit or
            patient; ``joined``: an earlier row says the same.
        external_id: id of the object; that of the patient in a file of patients. None if it cannot be read.
        status: ``booked`` or ``cancelled``, or ``unknown`` if the row is rejected for that; visits and patients have no
            other than the first.
        at: start of the appointment or time of the visit; None if the row has no valid one.
        data: the other arguments of the object's first event, such as ``patient``, a ``PatientInput`` whose phone and
            document are normalized. A cancelled appointment, which needs only its id, has the ``reason`` alone.
        written: texts of the row's cells by field, as the file has them.
        doubts: the doubts about it.
        shares_phone: whether rows of different patients have its phone.
        shares_document: whether rows with its document have different names and different phones.
        shares_number: whether rows with its number of the patient are of different patients.
    """

    number: int
    sheet: str
    outcome: Literal["wanted", "rejected", "ignored", "joined"]
    external_id: str | None
    status: Literal["booked", "cancelled", "unknown"]
    at: At | None
    data: dict[str, Any] = attrs.field(repr=False)
    written: Mapping[str, str] = attrs.field(repr=False)
    doubts: list[Doubt]
    shares_phone: bool = False
    shares_document: bool = False
    shares_number: bool = False

    @property
    def patient(self) -> Mapping[str, Any]:
        """The ``PatientInput``; empty if there is none."""
        return self.data.get("patient") or {}

    def reject(self, *doubts: Doubt) -> None:
        """Reject the row because of doubts."""
        self.outcome = "rejected"
        self.doubts = [*doubts, *self.doubts]


class Content(NamedTuple):
    """What tells whether rows with one id are one: a hash of the cells that must be equal, the type, and the doctor."""

    own: int
    type: str
    doctor: int


class RowReader:
    """Reads rows.

    Args:
        map: the map of the file.
        table: the table of the file.
        now: the time; a visit after it is rejected.

    Attributes:
        times: the field with the time; None if the map has none.
    """

    def __init__(self, map: Map, table: Table, now: datetime) -> None:
        header = table.header
        self._map = map
        self._table = table
        self._width = len(header)
        fields = {name: Field(name, map, header, now) for name in map.columns}
        self.times: Field | None = fields.get(map.time_field)
        self._fields = [(name, each.pick, each.read) for name, each in fields.items()]
        self._statuses = map.columns["status"].values or _STATUSES if "status" in fields else None
        self._of_patient = [(each, each.partition(".")[2]) for each in fields if each.startswith("patient.")]
        self._of_doctor = [(each, each.partition(".")[2]) for each in fields if each.startswith("doctor.")]
        self._others = [each for each in ("type", "diagnosis", "notes") if each in fields]
        self._written = [each for each in _WRITTEN if each in fields]
        needed = (map.id_field, map.time_field, "status")
        self._needed = max(
            (each + 1 for name in needed if name in fields for each in fields[name].positions), default=0
        )
        self._says_who = (map.time_field,) if map.time_field else _IDENTITY[:2]
        self._ignored = [(header.index(each), map.ignore[each]) for each in map.ignore]
        places = {name: each.positions for name, each in fields.items()}
        of_doctor = [each for name, _ in self._of_doctor for each in places[name]]
        varying = {*of_doctor, *places.get("type", ())}
        self._pick_doctor = picking(of_doctor)
        self._pick_own = picking(sorted({each for found in places.values() for each in found} - varying))

    def read(self, number: int, sheet: str, cells: Sequence[Cell]) -> tuple[Row, Content]:
        """Return what a row asks for, and what to compare with other rows that have its id."""
        missing = self._width - len(cells)
        problem = self._size_problem(cells, missing)
        if missing > 0:
            cells = [*cells, *[None] * missing]
        found = {name: read(pick(cells)) for name, pick, read in self._fields}
        row = self._row(number, sheet, cells, found, problem)
        of_type = found["type"].text if "type" in found else ""
        return row, Content(hash(self._pick_own(cells)), of_type, hash(self._pick_doctor(cells)))

    def _row(
        self,
        number: int,
        sheet: str,
        cells: Sequence[Cell],
        found: Mapping[str, Found],
        problem: tuple[str, str] | None,
    ) -> Row:
        identified = found[self._map.id_field]
        at = found[self._map.time_field].value if self._map.time_field else None
        written = {each: found[each].text for each in self._written}
        row = Row(number, sheet, "wanted", identified.value, "booked", at, {}, written, [])
        status = self._statuses.get(found["status"].text) if self._statuses else "booked"
        if status == "ignore" or self._is_none(found, cells):
            row.outcome = "ignored"
            return row
        if problem is not None:
            row.at = None
            row.reject(doubt(problem[0], number, column_in(sheet, None), None, detail=problem[1]))
            return row
        if not identified.text:
            column = self._map.column_of(self._map.id_field)
            self._doubt(row, "id_missing", self._map.id_field, "", column or self._map.id_field)
        elif identified.code:
            self._doubt_about(row, self._map.id_field, identified)
        if status is None:
            row.status = "unknown"
            self._doubt(row, "value_unknown", "status", found["status"].text)
        elif status == "cancelled":
            row.status = status
            row.data = {"reason": self._value(row, found, "reason") if "reason" in found else None}
        else:
            if self._map.time_field:
                self._value(row, found, self._map.time_field)
            row.data = self._data(row, found)
        self._check_decoding(row, cells)
        if row.external_id is None or any(CODES[each.code].rejects for each in row.doubts):
            row.outcome = "rejected"
        return row

    def _is_none(self, found: Mapping[str, Found], cells: Sequence[Cell]) -> bool:
        """Return whether the row is no object: ignored by the map, a total or a note."""
        for position, texts in self._ignored:
            if " ".join(text_in(cells[position]).split()).casefold() in texts:
                return True
        has_id = bool(found[self._map.id_field].text)
        says_who = any(found[each].text for each in self._says_who if each in found)
        if has_id and says_who:
            return False
        if not has_id and not says_who:
            return True
        return self._width > 1 and sum(map(bool, map(text_of, cells))) < 2

    def _size_problem(self, cells: Sequence[Cell], missing: int) -> tuple[str, str] | None:
        """Return the code of the doubt about a row that is too short, too long or misquoted, and its detail."""
        if isinstance(cells, Misquoted):
            return "field_invalid", "A double quote within quotes must be written twice"
        if missing > 0 and not self._table.sheet_names:
            left = self._width - missing
            if self._table.is_cut_off or left < self._needed:
                return "row_short", f"{left} of the {self._width} cells of the header"
        if missing < 0 and has_text(cells[self._width :]):
            return "row_long", f"more than the {self._width} cells of the header"
        return None

    def _data(self, row: Row, found: Mapping[str, Found]) -> dict[str, Any]:
        """Return the data of an object that is to be there, without its id and time."""
        data: dict[str, Any] = {}
        if patient := self._patient(row, found):
            data["patient"] = patient
        doctor = {key: value for name, key in self._of_doctor if (value := self._value(row, found, name)) is not None}
        if doctor:
            data["doctor"] = doctor
        for each in self._others:
            data[each] = self._value(row, found, each)
        return data

    def _patient(self, row: Row, found: Mapping[str, Found]) -> dict[str, str]:
        """Return the patient, without what is invalid as long as something else says who it is."""
        patient: dict[str, str] = {}
        invalid: list[str] = []
        for name, key in self._of_patient:
            each = found[name]
            if each.value is not None:
                patient[key] = each.value
                if each.code:
                    self._doubt_about(row, name, each)
            elif each.code:
                invalid.append(name)
        is_known = "phone" in patient or "dni" in patient or "external_id" in patient
        for name in invalid:
            if name == self._map.id_field:  # which is a doubt already
                continue
            if name in _DROPPED or (is_known and name in ("patient.phone", "patient.dni")):
                self._doubt(row, "field_dropped", name, found[name].text, name)
            else:
                self._doubt_about(row, name, found[name])
        if not is_known and not any(found[each].text for each in _IDENTITY if each in found):
            self._doubt(row, "patient_missing")
        return patient

    def _value(self, row: Row, found: Mapping[str, Found], name: str) -> Any:
        """Return the value of a field; None if it is empty or invalid, which is a doubt."""
        if found[name].code:
            self._doubt_about(row, name, found[name])
        return found[name].value

    def _check_decoding(self, row: Row, cells: Sequence[Cell]) -> None:
        """Add a doubt if cells have characters that could not be decoded."""
        if not self._table.replaces:
            return
        texts = {
            header: text
            for header, cell in zip(self._table.header, cells, strict=False)
            if REPLACED in (text := text_of(cell))
        }
        if texts:
            column = column_in(row.sheet, " + ".join(texts))
            row.doubts.append(doubt("encoding_replaced", row.number, column, " ".join(texts.values())))

    def _doubt_about(self, row: Row, name: str, found: Found) -> None:
        self._doubt(row, str(found.code), name, found.text, found.detail)

    def _doubt(self, row: Row, code: str, name: str | None = None, text: str | None = None, detail: str = "") -> None:
        column = column_in(row.sheet, None if name is None else self._map.column_of(name))
        row.doubts.append(doubt(code, row.number, column, text, detail=detail))
