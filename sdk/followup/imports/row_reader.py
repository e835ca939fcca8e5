"""Reads the rows of a file: what each asks for, and the doubts about it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import attrs

from followup.imports.fields import Field, Found, picking
from followup.imports.files import Table
from followup.imports.maps import DATE_OF_BIRTH, TIMES, Map, Status
from followup.imports.report import CODES, Doubt, column_in, doubt
from followup.imports.texts import Misquoted
from followup.imports.values import At, Cell, has_text, text_of, without_protection

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

    def doubt(self, code: str, map: Map, field: str | None, text: str | None = None, detail: str = "") -> Doubt:
        """Return a doubt about a field, with its text, which it knows of some; or about the row as a whole."""
        column = None if field is None else map.column_of(field)
        value = self.written.get(field or "") if text is None else text
        return doubt(code, self.number, column_in(self.sheet, column), value, detail=detail)

    def reject(self, *doubts: Doubt) -> None:
        """Reject the row because of doubts."""
        self.outcome = "rejected"
        self.doubts = [*doubts, *self.doubts]


Content = tuple[int, str, int]
"""What tells whether rows with one id are one: hash of the cells that must be equal, type, and hash of the doctor."""


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
        self._id, self._time = map.id_field, map.time_field
        fields = {name: Field(name, map, header, now) for name in map.columns}
        self.times: Field | None = fields.get(self._time)
        self._columns = {name: map.column_of(name) for name in fields}
        self._fields = [(name, each.pick, each.seen.get, each.read) for name, each in fields.items()]
        self._statuses = map.columns["status"].values or _STATUSES if "status" in fields else None
        self._of_patient, self._of_doctor = (
            [(each, each.removeprefix(group)) for each in fields if each.startswith(group)]
            for group in ("patient.", "doctor.")
        )
        self._others = [each for each in ("type", "diagnosis", "notes") if each in fields]
        self._written = [each for each in _WRITTEN if each in fields]
        needed = [fields[each].positions for each in (self._id, self._time, "status") if each in fields]
        self._needed = max((each + 1 for positions in needed for each in positions), default=0)
        says_who = (self._time,) if self._time else _IDENTITY[:2]
        self._says_who = [each for each in says_who if each in fields]
        self._ignored = [(header.index(each), map.ignore[each]) for each in map.ignore]
        # Rows with one id are one if they differ in these cells alone.
        of_doctor = [each for name, _ in self._of_doctor for each in fields[name].positions]
        varying = {*of_doctor, *(fields["type"].positions if "type" in fields else ())}
        self._pick_doctor = picking(of_doctor)
        self._pick_own = picking(sorted({each for field in fields.values() for each in field.positions} - varying))

    def read(self, number: int, sheet: str, cells: Sequence[Cell]) -> tuple[Row, Content]:
        """Return what a row asks for, and what to compare with other rows that have its id."""
        missing = self._width - len(cells)
        problem = self._size_problem(cells, missing)
        if missing > 0:
            cells = [*cells, *[None] * missing]
        found = {name: seen(picked := pick(cells)) or read(picked) for name, pick, seen, read in self._fields}
        at = found[self._time].value if self._time else None
        written = {each: found[each].text for each in self._written}
        row = Row(number, sheet, "wanted", found[self._id].value, "booked", at, {}, written, [])
        status = self._statuses.get(found["status"].text) if self._statuses else "booked"
        if status == "ignore" or self._is_none(found, cells):
            row.outcome = "ignored"
        elif problem is not None:
            row.at = None  # its cells may be in other columns than they seem to be
            row.reject(row.doubt(problem[0], self._map, None, detail=problem[1]))
        else:
            self._fill(row, found, status)
            self._check_decoding(row, cells)
            if row.external_id is None or any(CODES[each.code].rejects for each in row.doubts):
                row.outcome = "rejected"
        of_type = found["type"].text if "type" in found else ""
        return row, (hash(self._pick_own(cells)), of_type, hash(self._pick_doctor(cells)))

    def _fill(self, row: Row, found: Mapping[str, Found], status: Status | None) -> None:
        """Fill in what the fields of a row mean."""
        if not found[self._id].text:
            detail = self._map.column_of(self._id) or self._id
            row.doubts.append(row.doubt("id_missing", self._map, self._id, detail=detail))
        else:
            self._value(row, found, self._id)
        if status is None:
            row.status = "unknown"
            row.doubts.append(row.doubt("value_unknown", self._map, "status", found["status"].text))
        elif status == "cancelled":
            row.status = status
            row.data = {"reason": self._value(row, found, "reason") if "reason" in found else None}
        else:
            if self._time:
                self._value(row, found, self._time)
            if patient := self._patient(row, found):
                row.data["patient"] = patient
            doctor = {key: self._value(row, found, name) for name, key in self._of_doctor}
            if doctor := {key: value for key, value in doctor.items() if value is not None}:
                row.data["doctor"] = doctor
            for each in self._others:
                row.data[each] = self._value(row, found, each)

    def _is_none(self, found: Mapping[str, Found], cells: Sequence[Cell]) -> bool:
        """Return whether the row is no object: ignored by the map, a total or a note."""
        for position, texts in self._ignored:
            if " ".join(text_of(without_protection(cells[position])).split()).casefold() in texts:
                return True
        has_id = bool(found[self._id].text)
        says_who = any([found[each].text for each in self._says_who])  # noqa: C419 - a generator takes longer
        # A total or a note has one value, in whichever column; a row with more of them lacks its id or its time.
        if has_id != says_who:
            return self._width > 1 and sum(map(bool, map(text_of, cells))) < 2
        return not has_id

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

    def _patient(self, row: Row, found: Mapping[str, Found]) -> dict[str, str]:
        """Return the patient, without what is invalid as long as something else says who it is."""
        patient = {key: value for name, key in self._of_patient if (value := found[name].value) is not None}
        is_known = "phone" in patient or "dni" in patient or "external_id" in patient
        for name, _ in self._of_patient:
            each = found[name]
            if not each.code or name == self._id:  # which is a doubt already
                continue
            can_drop = name in _DROPPED or (is_known and name in ("patient.phone", "patient.dni"))
            if each.value is None and can_drop:
                row.doubts.append(row.doubt("field_dropped", self._map, name, each.text, name))
            else:
                self._value(row, found, name)
        if not is_known and not any(found[each].text for each in _IDENTITY if each in found):
            row.doubts.append(row.doubt("patient_missing", self._map, None))
        return patient

    def _value(self, row: Row, found: Mapping[str, Found], name: str) -> Any:
        """Return the value of a field; None if it is empty or invalid, which is a doubt."""
        _, value, code, detail = found[name]
        if code:
            column = column_in(row.sheet, self._columns[name])
            row.doubts.append(doubt(code, row.number, column, found[name].text, detail=detail))
        return value

    def _check_decoding(self, row: Row, cells: Sequence[Cell]) -> None:
        """Add a doubt if cells have characters that could not be decoded."""
        if not self._table.replaces:
            return
        header = self._table.header
        texts = {name: text_of(cell) for name, cell in zip(header, cells, strict=False) if REPLACED in text_of(cell)}
        if texts:
            column = column_in(row.sheet, " + ".join(texts))
            row.doubts.append(doubt("encoding_replaced", row.number, column, " ".join(texts.values())))
