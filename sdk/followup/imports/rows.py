"""The rows of a file as the states of objects that they ask for: each is read once, and judged when all are known."""

import itertools
import operator
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs

from followup.imports.fields import Field
from followup.imports.files import OnProgress, Table
from followup.imports.maps import Map
from followup.imports.report import temporary_database
from followup.imports.row_reader import Content, Row, RowReader
from followup.imports.values import At
from followup.imports.who import Person, any_share_wrongly, are_all_one, are_joined, words_of

_AT_ONCE = 100
"""Rows that are in memory at once. Of more, Python's search for cyclic garbage would take long."""

# Pairs grow with the square of the people, and a phone that so many share is no family's.
_MOST_PEOPLE = 50

_JUDGES: Final[Mapping[str, Mapping[str, Callable[[Sequence[Person]], bool]]]] = {
    "phone": {"shares_phone": lambda people: not are_all_one(people)},
    "dni": {"shares_document": any_share_wrongly, "is_joined": are_joined},
    "external_id": {"shares_number": any_share_wrongly, "is_joined": are_joined},
}
"""What the people who have something in common are judged by, and the column of the rows about whom it is true."""


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
        self.table: Table = Table(file, map)
        self._seen = temporary_database(_SEEN)  # because a million rows would take too much memory
        self._times: Field | None = None
        try:
            self._read(on_progress)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, in the order of the file."""
        # In the order of the rows, so that the few that have anything in common need no look-up for each row.
        judged = self._seen.execute(_JUDGED)
        following = judged.fetchone()
        batches = self._seen.execute("SELECT content FROM batches ORDER BY rowid")
        rows = (Row(*each) for (content,) in batches for each in pickle.loads(content))  # noqa: S301 - our own
        for place, row in enumerate(rows):
            if following is not None and following[0] == place:
                self._judge(row, *following)
                following = judged.fetchone()
            if row.outcome == "wanted" and row.at is not None and row.status != "cancelled":
                self._judge_time(row, row.at)
            yield row

    def has(self, external_id: str) -> bool:
        """Return whether a row that is not ignored has this id."""
        # Not before, because a first run asks for none, and the index of a million rows takes a second.
        self._seen.execute("CREATE INDEX IF NOT EXISTS seen_id ON seen (id)")
        return self._seen.execute("SELECT 1 FROM seen WHERE id = ?", (hash(external_id),)).fetchone() is not None

    def close(self) -> None:
        """Remove what is known about the rows."""
        self._seen.close()

    def _read(self, on_progress: OnProgress | None) -> None:
        """Read the file, and find what several rows have."""
        reader = RowReader(self.map, self.table, self.now)
        self._times = reader.times
        rows = (reader.read(*record) for record in self.table.rows(on_progress))
        places = itertools.count()
        while batch := list(itertools.islice(rows, _AT_ONCE)):
            self._seen.executemany(_INSERT, [(next(places), *_identity(*each)) for each in batch])
            content = pickle.dumps([_VALUES(row) for row, _ in batch], protocol=5)
            self._seen.execute("INSERT INTO batches VALUES (?)", (content,))
        if on_progress and (count := next(places)):
            on_progress(count, count)
        self._seen.executescript(_REPEATED)
        for column, judges in _JUDGES.items():
            self._find_shared(column, judges)
        self._seen.execute(_SHARED)

    def _find_shared(self, column: str, judges: Mapping[str, Callable[[Sequence[Person]], bool]]) -> None:
        """Mark different people who have the same; more than so many are not looked at one by one."""
        # All keys at once, because the marks go into the table that they are read from.
        for (key,) in self._seen.execute(_GROUPS.format(column=column)).fetchall():
            found = self._seen.execute(_PEOPLE.format(column=column), (key, _MOST_PEOPLE + 1)).fetchall()
            people = [Person(phone, dni, number, words_of(name)) for phone, dni, number, name in found]
            for mark, judge in judges.items():
                if len(people) > _MOST_PEOPLE or judge(people):
                    self._seen.execute(f"UPDATE people SET {mark} = 1 WHERE {column} = ?", (key,))  # noqa: S608 - constants

    def _judge(self, row: Row, place: int, first: int | None, types: str, doctors: int, *shares: bool) -> None:
        """Judge a row that has something in common with others.

        Args:
            row: the row.
            place: its place in the file.
            first: the place of the first of those that are one with it; None if none is.
            types: the types of these, separated by U+0000.
            doctors: the number of their doctors.
            shares: whether others have its id; whether other patients have its phone, its document, its number; and
                whether patients who are written differently become one by its document or number.
        """
        is_repeated, row.shares_phone, row.shares_document, row.shares_number, is_joined = map(bool, shares)
        if first is not None:
            self._join(row, is_first=place == first, types=types.split("\0"), doctors=doctors)
        elif is_repeated:
            row.reject(row.doubt("id_repeated", self.map, self.map.id_field))
        if row.outcome == "wanted" and is_joined and not row.shares_number:
            row.doubts = [*row.doubts, row.doubt("patient_joined", self.map, "patient.full_name")]

    def _join(self, row: Row, *, is_first: bool, types: Sequence[str], doctors: int) -> None:
        if not is_first:
            row.outcome, row.doubts = "joined", []
        elif row.outcome == "wanted" and (len(types) > 1 or doctors > 1):
            row.doubts = [*row.doubts, row.doubt("rows_joined", self.map, "type" if len(types) > 1 else "")]
            if row.data.get("type") or any(types):
                row.data["type"] = " + ".join(filter(None, types))

    def _judge_time(self, row: Row, at: At) -> None:
        """Judge the time of a row by what times the others have."""
        times, field = self._times, self.map.time_field
        if times is None:
            return
        if at.may_be_mixed and times.has_text_dates and self.map.mixed_dates == "reject":
            row.reject(row.doubt("date_mixed", self.map, field))
        is_midnight = at.local.hour == at.local.minute == 0 or not times.has_clocks
        if is_midnight and self.map.kind == "appointments" and self.map.midnight == "reject":
            row.reject(row.doubt("time_midnight", self.map, field))


def _identity(row: Row, content: Content) -> tuple[Any, ...]:
    """Return hashes of id and content of a row, its type, and what identifies its patient, with the hash of that."""
    if row.outcome == "ignored":  # which has its place, and nothing in common with others
        return (None,) * 9
    # Python's own hash is enough: it has 64 bits, and the database ends with the process.
    key = None if row.external_id is None else hash(row.external_id)
    patient = row.patient
    if not patient:
        return (key, *content, *(None,) * 5)
    phone, dni, external_id = (each and hash(each) for each in map(patient.get, ("phone", "dni", "external_id")))
    person = phone, dni, external_id, patient.get("full_name", "")
    return (key, *content, hash(person), *person)


_VALUES = operator.attrgetter(*(each for each in attrs.fields_dict(Row) if not each.startswith("shares_")))

_SEEN = """
CREATE TABLE batches (content);
CREATE TABLE seen (place INTEGER PRIMARY KEY, id, content, type, doctor, person, phone, dni, external_id, name);
CREATE TABLE repeated (hash INTEGER PRIMARY KEY);
CREATE TABLE joined (hash INTEGER PRIMARY KEY, first, types, doctors);
CREATE TABLE people (person INTEGER PRIMARY KEY, phone, dni, external_id, name,
  shares_phone, shares_document, shares_number, is_joined);
CREATE TABLE shared (person INTEGER PRIMARY KEY, shares_phone, shares_document, shares_number, is_joined);
"""
_INSERT = "INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

# Rows with one id are one if they differ in nothing but type and doctor.
_REPEATED = """
INSERT INTO repeated SELECT id FROM seen WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1;
INSERT INTO joined SELECT id, min(first), group_concat(type, char(0)), 1 + (min(low) IS NOT max(high)) FROM
  (SELECT id, content, type, min(doctor) AS low, max(doctor) AS high, min(place) AS first FROM seen
    WHERE id IN repeated GROUP BY id, content, type ORDER BY first)
  GROUP BY id HAVING COUNT(DISTINCT content) = 1;
INSERT INTO people SELECT person, phone, dni, external_id, name, NULL, NULL, NULL, NULL FROM seen
  WHERE person IS NOT NULL GROUP BY person;
CREATE INDEX people_phone ON people (phone) WHERE phone IS NOT NULL;
CREATE INDEX people_dni ON people (dni) WHERE dni IS NOT NULL;
CREATE INDEX people_external_id ON people (external_id) WHERE external_id IS NOT NULL;
"""
# People differ from each other, so two of them with the same are already a question.
_GROUPS = "SELECT {column} FROM people WHERE {column} IS NOT NULL GROUP BY {column} HAVING COUNT(*) > 1"
_PEOPLE = "SELECT phone, dni, external_id, name FROM people WHERE {column} = ? LIMIT ?"
_SHARED = """
INSERT INTO shared SELECT person, shares_phone, shares_document, shares_number, is_joined FROM people
  WHERE shares_phone OR shares_document OR shares_number OR is_joined
"""
_JUDGED = """
SELECT place, first, types, doctors, id IN repeated, shares_phone, shares_document, shares_number, is_joined
  FROM seen LEFT JOIN joined ON hash = id LEFT JOIN shared ON shared.person = seen.person
  WHERE id IN repeated OR shared.person IS NOT NULL ORDER BY place
"""
