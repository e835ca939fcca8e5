"""The rows of a file as the states of objects that they ask for: each is read once, and judged when all are known."""

import operator
import pickle
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import attrs

from followup.imports.cells import Cell
from followup.imports.doubts import Doubt, column_in, doubt
from followup.imports.files import Table
from followup.imports.maps import Map
from followup.imports.row_reader import Draft, Field
from followup.imports.values import At, Invalid, instant_of, phone_of
from followup.imports.who import Person, any_share_wrongly, are_all_one, are_joined, words_of

_AT_ONCE = 500
"""Rows that are in memory at once."""

_REMEMBERED = 50_000
"""Phones, and times, that are remembered while a file is read: most patients and times come again."""


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

    @property
    def patient(self) -> Mapping[str, Any]:
        """The ``PatientInput``; empty if there is none."""
        return self.data.get("patient") or {}

    def reject(self, *doubts: Doubt) -> None:
        """Reject the row because of doubts."""
        self.outcome = "rejected"
        self.doubts = [*doubts, *self.doubts]


class Rows:
    """The rows of a file, which can be iterated more than once.

    The file is read here, in a stream; what its rows ask for is kept in temporary files. Empty rows are skipped. Close
    it when you are done.

    Args:
        map: the map of the file.
        file: path of the file.
        now: the time; a visit after it is rejected.
        on_progress: called now and then with the part of the file that has been read, from 0 to 1.

    Attributes:
        table: the table of the file.
        fields: where each field of the map comes from, and how it is read.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the file is no table, lacks a column of the map, or changed meanwhile.
        EncodingDoubtfulError: its letters look like those of another encoding.
    """

    def __init__(
        self, map: Map, file: str | Path, now: datetime, *, on_progress: Callable[[float], object] | None = None
    ) -> None:
        self.map = map
        self.now = now
        self.table: Table = Table(file, map.layout)
        header = self.table.header
        self.fields: dict[str, Field] = {field: Field(column, header) for field, column in map.columns.items()}
        places = {field: self.fields[field].positions for field in map.columns}
        self._of_doctor = [each for field in places if field.startswith("doctor.") for each in places[field]]
        varying = {*self._of_doctor, *places.get("type", ())}
        self._own = sorted({each for field in places for each in places[field]} - varying)
        self.ignored: list[tuple[int, frozenset[str]]] = [(header.index(each), map.ignore[each]) for each in map.ignore]
        self.phone: Callable[[str], tuple[str, str | None]] = lru_cache(_REMEMBERED)(
            lambda text: phone_of(text, map.country, map.mobiles)
        )
        self.at: Callable[[tuple[Cell, ...]], At | Invalid] = lru_cache(_REMEMBERED)(self._read_time)
        self._has_text_dates = self._has_mixed_dates = self._has_other_than_midnight = False
        self._seen = sqlite3.connect("")  # a temporary file, because a million rows would take too much memory
        self._stored = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``close``; nobody else can open it
        try:
            self._read(on_progress)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, in the order of the file."""
        self._stored.seek(0)
        joined: set[str] = set()
        while self._stored.tell() < self._end:
            for values in pickle.load(self._stored):  # noqa: S301 - our own
                row = Row(*values)
                self._judge(row, joined)
                yield row

    def is_shared(self, phone: str) -> bool:
        """Return whether rows of different patients have this normalized phone."""
        return self._has("shared_phones", phone)

    def has_shared_document(self, dni: str) -> bool:
        """Return whether rows of this document have different names and different phones."""
        return self._has("shared_documents", dni)

    def close(self) -> None:
        """Remove what is known about the rows."""
        self._seen.close()
        self._stored.close()

    def _read_time(self, cells: tuple[Cell, ...]) -> At | Invalid:
        column = self.map.columns[self.map.time_field]
        try:
            return instant_of(cells, column.formats, self.map.zone, is_alone=len(column.headers) == 1)
        except Invalid as error:
            self._has_text_dates |= any(isinstance(each, str) and _DATE.fullmatch(each) for each in cells)
            return error

    def _read(self, on_progress: Callable[[float], object] | None) -> None:
        """Read the file, and find what several rows have."""
        self._seen.executescript(_SEEN)
        self._seen.execute("BEGIN")
        batch: list[Row] = []
        identities: list[tuple[object, ...]] = []
        for number, sheet, cells in self.table.rows(on_progress):
            draft = Draft(self, number, sheet, cells)
            row = draft.row()
            batch.append(row)
            if row.at is not None and row.outcome != "ignored":
                self._note_time(row.at)
            if row.outcome != "ignored":
                identities.append(self._identity(row, draft))
            if len(batch) == _AT_ONCE:
                self._store(batch, identities)
                batch, identities = [], []
        self._store(batch, identities)
        self._end = self._stored.tell()
        self._seen.executescript(_REPEATED)
        self._find_shared("phone", "shared_phones", lambda people: not are_all_one(people))
        self._find_shared("dni", "shared_documents", any_share_wrongly)
        self._find_shared("external_id", "shared_numbers", any_share_wrongly)
        self._find_shared("dni", "joined_patients", are_joined)
        self._find_shared("external_id", "joined_patients", are_joined)
        self._seen.execute("DROP TABLE seen")
        tables = ("repeated", "joined", "shared_phones", "shared_documents", "shared_numbers", "joined_patients")
        self._is_filled = {each: self._seen.execute(f"SELECT 1 FROM {each}").fetchone() is not None for each in tables}  # noqa: S608

    def _store(self, batch: Sequence[Row], identities: Sequence[tuple[object, ...]]) -> None:
        self._seen.executemany(_INSERT, identities)
        pickle.dump([_VALUES(row) for row in batch], self._stored, protocol=5)

    def _note_time(self, at: At) -> None:
        if not at.is_written_midnight:
            self._has_other_than_midnight = True
        if at.is_text:
            self._has_text_dates = True

    def _identity(self, row: Row, draft: Draft) -> tuple[object, ...]:
        """Return id and content of a row, its type, and what identifies its patient; texts only as hashes."""
        patient = row.patient if row.outcome == "wanted" else draft.identity
        key = None if row.external_id is None else hash(row.external_id)
        phone, dni, external_id = (value and hash(value) for value in map(patient.get, _IDENTITY))
        name = _hashed_words(patient.get("full_name", "")) if phone or dni else ""
        return (
            key,
            draft.hash_of(self._own),
            draft.text("type"),
            draft.hash_of(self._of_doctor),
            phone,
            dni,
            external_id,
            name,
        )

    def _find_shared(self, column: str, table: str, judge: Callable[[Sequence[Person]], bool]) -> None:
        """Store the hashes of what different people have; more than so many are not looked at one by one."""
        groups = self._seen.execute(_GROUPS.format(column=column)).fetchall()
        for (key,) in groups:
            found = self._seen.execute(_PEOPLE.format(column=column), (key, _MOST_PEOPLE + 1)).fetchall()
            people = [Person(phone, dni, external, frozenset(name.split())) for phone, dni, external, name in found]
            if len(people) > _MOST_PEOPLE or judge(people):
                self._seen.execute(f"INSERT OR IGNORE INTO {table} VALUES (?)", (key,))  # noqa: S608 - a constant

    def _judge(self, row: Row, joined: set[str]) -> None:
        """Judge a row by what the others have."""
        external_id = row.external_id
        if row.outcome == "ignored":
            return
        if external_id is not None and self._has("joined", external_id):
            self._join(row, external_id, joined)
        elif external_id is not None and self._has("repeated", external_id):
            row.reject(self._doubt(row, "id_repeated", self.map.id_field, external_id))
        at, number = row.at, row.patient.get("external_id")
        if row.outcome == "wanted" and number is not None and self._has("shared_numbers", number):
            row.reject(self._doubt(row, "document_shared", "patient.external_id", number))
        elif row.outcome == "wanted" and any(
            self._has("joined_patients", each) for each in (row.patient.get("dni"), number) if each is not None
        ):
            row.doubts = [*row.doubts, self._doubt(row, "patient_joined", "patient.full_name")]
        if row.outcome != "wanted" or at is None or row.status == "cancelled":
            return
        if at.may_be_mixed and self._has_text_dates and self.map.mixed_dates == "reject":
            row.reject(self._doubt(row, "date_mixed", self.map.time_field))
        is_midnight = at.local.hour == at.local.minute == 0 or not self._has_other_than_midnight
        if self.map.kind == "appointments" and is_midnight and self.map.midnight == "reject":
            row.reject(self._doubt(row, "time_midnight", self.map.time_field))

    def _join(self, row: Row, external_id: str, joined: set[str]) -> None:
        if external_id in joined:
            row.outcome, row.doubts = "joined", []
            return
        joined.add(external_id)
        types, doctors = self._seen.execute(_JOINED, (hash(external_id),)).fetchone()
        if row.outcome == "wanted" and (types.count("\0") or doctors > 1):
            row.doubts = [*row.doubts, self._doubt(row, "rows_joined", "type" if types.count("\0") else "")]
            if row.data.get("type") or types.strip("\0"):
                row.data["type"] = " + ".join(filter(None, types.split("\0")))

    def _doubt(self, row: Row, code: str, field: str, value: str | None = None) -> Doubt:
        column = column_in(row.sheet, self.map.column_of(field))
        return doubt(code, row.number, column, value if value is not None else row.written.get(field))

    def _has(self, table: str, text: str) -> bool:
        if not self._is_filled[table]:
            return False
        query = f"SELECT 1 FROM {table} WHERE hash = ?"  # noqa: S608 - a constant
        return self._seen.execute(query, (hash(text),)).fetchone() is not None


_DATE = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}")
_VALUES = operator.attrgetter(*attrs.fields_dict(Row))


@lru_cache(_REMEMBERED)
def _hashed_words(name: str) -> str:
    return " ".join(str(hash(each)) for each in words_of(name))


_IDENTITY = ("phone", "dni", "external_id")
_MOST_PEOPLE = 50

_SEEN = """
PRAGMA journal_mode = OFF;
CREATE TABLE seen (
  id INTEGER, content INTEGER, type, doctor INTEGER, phone INTEGER, dni INTEGER, external_id INTEGER, name);
CREATE TABLE repeated (hash INTEGER PRIMARY KEY);
CREATE TABLE joined (hash INTEGER PRIMARY KEY, types, doctors INTEGER);
CREATE TABLE shared_phones (hash INTEGER PRIMARY KEY);
CREATE TABLE shared_documents (hash INTEGER PRIMARY KEY);
CREATE TABLE shared_numbers (hash INTEGER PRIMARY KEY);
CREATE TABLE joined_patients (hash INTEGER PRIMARY KEY);
"""
_INSERT = "INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

# Rows with one id are one if they differ in nothing but type and doctor.
_REPEATED = """
INSERT INTO repeated SELECT id FROM seen WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1;
INSERT INTO joined SELECT id, group_concat(type, char(0)), COUNT(DISTINCT doctor) FROM
  (SELECT id, content, type, max(doctor) AS doctor, min(rowid) AS place FROM seen
    WHERE id IN repeated GROUP BY id, content, type ORDER BY place)
  GROUP BY id HAVING COUNT(DISTINCT content) = 1;
CREATE INDEX seen_phone ON seen (phone) WHERE phone IS NOT NULL;
CREATE INDEX seen_dni ON seen (dni) WHERE dni IS NOT NULL;
"""
_JOINED = "SELECT types, doctors FROM joined WHERE hash = ?"
_GROUPS = """
SELECT {column} FROM seen WHERE {column} IS NOT NULL GROUP BY {column}
  HAVING COUNT(*) > 1 AND (min(phone) IS NOT max(phone) OR min(dni) IS NOT max(dni) OR COUNT(dni) <> COUNT(*)
    OR min(external_id) IS NOT max(external_id) OR COUNT(external_id) <> COUNT(*) OR min(name) IS NOT max(name))
"""
_PEOPLE = "SELECT DISTINCT phone, dni, external_id, name FROM seen WHERE {column} = ? LIMIT ?"
