"""The rows of a file as the states of objects that they ask for: each is read once, and judged when all are known."""

import itertools
import operator
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import attrs

from followup.imports.files import OnProgress, Table
from followup.imports.maps import Map
from followup.imports.report import Doubt, column_in, doubt
from followup.imports.row_reader import Content, Row, RowReader
from followup.imports.spool import temporary_database
from followup.imports.who import Person, any_share_wrongly, are_all_one, are_joined, words_of

_AT_ONCE = 100
"""Rows that are in memory at once. Of more, Python's search for cyclic garbage would take long."""

_REMEMBERED = 50_000
"""Names whose words are remembered while a file is read: most patients come again."""

_MOST_PEOPLE = 50

_JUDGES: Final[Mapping[str, Mapping[str, Callable[[Sequence[Person]], bool]]]] = {
    "phone": {"shared_phones": lambda people: not are_all_one(people)},
    "dni": {"shared_documents": any_share_wrongly, "joined_documents": are_joined},
    "external_id": {"shared_numbers": any_share_wrongly, "joined_numbers": are_joined},
}
"""What the people who have something in common are judged by, and the table of those about whom it is true."""


class Rows:
    """The rows of a file, which can be iterated more than once.

    The file is read here, in a stream; what its rows ask for is kept in temporary files. Empty rows are skipped. Close
    it when you are done.

    Args:
        map: the map of the file.
        file: path of the file.
        now: the time; a visit after it is rejected.
        on_progress: called now and then.

    Attributes:
        table: the table of the file.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the file is no table, lacks a column of the map, or changed meanwhile.
        EncodingDoubtfulError: its letters look like those of another encoding.
    """

    def __init__(self, map: Map, file: str | Path, now: datetime, *, on_progress: OnProgress | None = None) -> None:
        self.map = map
        self.now = now
        self.table: Table = Table(file, map.layout)
        self._seen = temporary_database(_SEEN)  # because a million rows would take too much memory
        self._stored = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``close``; nobody else can open it
        try:
            self._read(on_progress)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, in the order of the file."""
        self._stored.seek(0)
        judged = self._seen.execute(_JUDGED)
        while found := judged.fetchmany(_AT_ONCE):
            for common, values in zip(found, pickle.load(self._stored), strict=True):  # noqa: S301 - our own
                row = Row(*values)
                if row.outcome != "ignored":
                    self._judge(row, _Common(*common))
                yield row

    def close(self) -> None:
        """Remove what is known about the rows."""
        self._seen.close()
        self._stored.close()

    def _read(self, on_progress: OnProgress | None) -> None:
        """Read the file, and find what several rows have."""
        self._reader = RowReader(self.map, self.table, self.now)
        rows = (self._reader.read(*record) for record in self.table.rows(on_progress))
        places = itertools.count()
        while batch := list(itertools.islice(rows, _AT_ONCE)):
            self._seen.executemany(_INSERT, [(next(places), *_identity(*each)) for each in batch])
            pickle.dump([_VALUES(row) for row, _ in batch], self._stored, protocol=5)
        for statement in _REPEATED.split(";"):
            self._seen.execute(statement)
        for column, judges in _JUDGES.items():
            self._find_shared(column, judges)

    def _find_shared(self, column: str, judges: Mapping[str, Callable[[Sequence[Person]], bool]]) -> None:
        """Store the hashes of what different people have; more than so many are not looked at one by one."""
        groups = self._seen.execute(_GROUPS.format(column=column)).fetchall()
        for (key,) in groups:
            found = self._seen.execute(_PEOPLE.format(column=column), (key, _MOST_PEOPLE + 1)).fetchall()
            people = [Person(phone, dni, external, frozenset(name.split())) for phone, dni, external, name in found]
            for table, judge in judges.items():
                if len(people) > _MOST_PEOPLE or judge(people):
                    self._seen.execute(f"INSERT OR IGNORE INTO {table} VALUES (?)", (key,))  # noqa: S608 - a constant

    def _judge(self, row: Row, common: "_Common") -> None:
        """Judge a row by what the others have."""
        row.shares_phone, row.shares_document = bool(common.shares_phone), bool(common.shares_document)
        row.shares_number = bool(common.shares_number)
        if common.first is not None:
            self._join(row, common)
        elif common.is_repeated:
            row.reject(self._doubt(row, "id_repeated", self.map.id_field))
        if row.outcome == "wanted" and common.is_joined and not row.shares_number:
            row.doubts = [*row.doubts, self._doubt(row, "patient_joined", "patient.full_name")]
        at, times = row.at, self._reader.times
        if row.outcome != "wanted" or at is None or times is None or row.status == "cancelled":
            return
        if at.may_be_mixed and times.has_text_dates and self.map.mixed_dates == "reject":
            row.reject(self._doubt(row, "date_mixed", self.map.time_field))
        is_midnight = at.local.hour == at.local.minute == 0 or not times.has_clocks
        if self.map.kind == "appointments" and is_midnight and self.map.midnight == "reject":
            row.reject(self._doubt(row, "time_midnight", self.map.time_field))

    def _join(self, row: Row, common: "_Common") -> None:
        if common.place != common.first:
            row.outcome, row.doubts = "joined", []
            return
        types = common.types.split("\0")
        if row.outcome == "wanted" and (len(types) > 1 or common.doctors > 1):
            row.doubts = [*row.doubts, self._doubt(row, "rows_joined", "type" if len(types) > 1 else "")]
            if row.data.get("type") or any(types):
                row.data["type"] = " + ".join(filter(None, types))

    def _doubt(self, row: Row, code: str, field: str) -> Doubt:
        return doubt(code, row.number, column_in(row.sheet, self.map.column_of(field)), row.written.get(field))


class _Common(NamedTuple):
    """What a row has in common with others.

    Attributes:
        place: its place in the file.
        is_repeated: whether others have its id.
        first: the place of the first of those that are one with it; None if none is.
        types: the types of these, separated by U+0000.
        doctors: the number of their doctors.
        shares_phone: whether other patients have its phone.
        shares_document, shares_number: whether other patients have its document, or its number of the patient.
        is_joined: whether patients who are written differently become one by its document or number.
    """

    place: int
    is_repeated: int | None
    first: int | None
    types: str
    doctors: int
    shares_phone: int | None
    shares_document: int | None
    shares_number: int | None
    is_joined: int | None


def _identity(row: Row, content: Content) -> tuple[object, ...]:
    """Return id and content of a row, its type, and what identifies its patient; texts only as hashes."""
    if row.outcome == "ignored":
        return (None,) * 8
    patient = row.patient
    key = None if row.external_id is None else hash(row.external_id)
    phone, dni, external_id = (each and hash(each) for each in map(patient.get, ("phone", "dni", "external_id")))
    name = _hashed_words(patient.get("full_name", "")) if phone or dni or external_id else ""
    return (key, *content, phone, dni, external_id, name)


@lru_cache(_REMEMBERED)
def _hashed_words(name: str) -> str:
    return " ".join(str(hash(each)) for each in words_of(name))


_VALUES = operator.attrgetter(*(each for each in attrs.fields_dict(Row) if not each.startswith("shares_")))

_SEEN = (
    "seen (place INTEGER PRIMARY KEY, id, content, type, doctor, phone, dni, external_id, name)",
    "repeated (hash INTEGER PRIMARY KEY)",
    "joined (hash INTEGER PRIMARY KEY, first, types, doctors)",
    "shared_phones (hash INTEGER PRIMARY KEY)",
    "shared_documents (hash INTEGER PRIMARY KEY)",
    "shared_numbers (hash INTEGER PRIMARY KEY)",
    "joined_documents (hash INTEGER PRIMARY KEY)",
    "joined_numbers (hash INTEGER PRIMARY KEY)",
)
_INSERT = "INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

# Rows with one id are one if they differ in nothing but type and doctor.
_REPEATED = """
INSERT INTO repeated SELECT id FROM seen WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1;
INSERT INTO joined SELECT id, min(first), group_concat(type, char(0)), 1 + (min(low) IS NOT max(high)) FROM
  (SELECT id, content, type, min(doctor) AS low, max(doctor) AS high, min(place) AS first FROM seen
    WHERE id IN repeated GROUP BY id, content, type ORDER BY first)
  GROUP BY id HAVING COUNT(DISTINCT content) = 1;
CREATE INDEX seen_phone ON seen (phone) WHERE phone IS NOT NULL;
CREATE INDEX seen_dni ON seen (dni) WHERE dni IS NOT NULL;
CREATE INDEX seen_external_id ON seen (external_id) WHERE external_id IS NOT NULL;
"""
_GROUPS = """
SELECT {column} FROM seen WHERE {column} IS NOT NULL GROUP BY {column}
  HAVING COUNT(*) > 1 AND (min(phone) IS NOT max(phone) OR min(dni) IS NOT max(dni) OR COUNT(dni) <> COUNT(*)
    OR min(external_id) IS NOT max(external_id) OR COUNT(external_id) <> COUNT(*) OR min(name) IS NOT max(name))
"""
_PEOPLE = "SELECT DISTINCT phone, dni, external_id, name FROM seen WHERE {column} = ? LIMIT ?"
_JUDGED = """
SELECT place, id IN repeated, first, types, doctors, phone IN shared_phones, dni IN shared_documents,
    external_id IN shared_numbers, dni IN joined_documents OR external_id IN joined_numbers
  FROM seen LEFT JOIN joined ON hash = id ORDER BY place
"""
