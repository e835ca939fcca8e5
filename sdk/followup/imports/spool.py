"""What a run finds, on disk until it is recorded or shown: a file of a million rows is never held in memory.

It is a temporary database of SQLite that nobody else can open, and that ends with the report.
"""

import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

import attrs

from followup import EventInput
from followup.imports.doubts import Doubt
from followup.imports.state import Known
from followup.outbox.events import Recorded, as_input

T = TypeVar("T")

_AT_ONCE = 1000
"""Rows that are in memory at once."""

_TABLES = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA cache_size = -16000",  # KiB
    "CREATE TABLE events (id, subject, text)",
    "CREATE TABLE changes (key, phone, external_id, dni, name, patient, status, at, number)",
    "CREATE TABLE doubts (line, col, code, value, text)",
    "CREATE TABLE keys (key PRIMARY KEY, external_id, status, at, absent, line, patient, is_found DEFAULT 0)",
    "CREATE TABLE patients (id PRIMARY KEY, patient) WITHOUT ROWID",
    "BEGIN",
)

_CHANGED = tuple(attrs.fields_dict(Known))

_COLUMNS = "external_id, status, at, absent, line, patient"
_EXPECTED = f"{_COLUMNS} FROM keys WHERE external_id IS NOT NULL AND NOT is_found"


@attrs.frozen
class Expected:
    """An object that the service should have.

    Attributes:
        external_id: its external id.
        status: its status in the file.
        at: its time in the file, in milliseconds since the epoch.
        absent: the kind of the difference if the service does not have it: ``missing``, or ``rejected`` for a row that
            no run records; None if it need not be there.
        row: number of its row.
        patient: the patient's data in JSON.
    """

    external_id: str
    status: str | None
    at: int | None
    absent: Literal["missing", "rejected"] | None
    row: int
    patient: str = attrs.field(repr=False)


class Spooled(Collection[T]):
    """Items on disk, which can be iterated any number of times."""

    def __init__(self, spool: "Spool", table: str, order: str, make: Callable[..., T]) -> None:
        self._spool = spool  # whose database ends with it
        self._query = f"FROM {table} ORDER BY {order}"
        self._make = make

    def __len__(self) -> int:
        count: int = self._spool._database.execute(f"SELECT count(*) {self._query}").fetchone()[0]
        return count

    def __iter__(self) -> Iterator[T]:
        return (self._make(*row) for row in self._spool._database.execute(f"SELECT * {self._query}"))

    def __contains__(self, item: object) -> bool:
        return any(each == item for each in self)

    def __reduce__(self) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, (list(self),)  # for errors that have a report


class Spool:
    """The events, changes of state, doubts and keys of one comparison."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._database.close)
        for statement in _TABLES:
            self._database.execute(statement)

    @property
    def events(self) -> Collection[EventInput]:
        """The events, in order."""
        return Spooled(self, "events", "rowid", lambda _id, _subject, text: as_input(text))

    @property
    def doubts(self) -> Collection[Doubt]:
        """The doubts, in the order of the rows; those about no row come last."""
        return Spooled(self, "doubts", "rowid", Doubt)

    def add_event(self, event: Recorded) -> None:
        """Add an event."""
        self._database.execute("INSERT INTO events VALUES (?, ?, ?)", (event.id, event.subject, event.text))

    def add_change(self, known: Known) -> None:
        """Add the new state of an object."""
        values = [getattr(known, name) for name in _CHANGED]
        self._database.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def add_doubts(self, doubts: Iterable[Doubt]) -> None:
        """Add doubts."""
        values = ((each.row, each.column, each.code, each.value, each.text) for each in doubts)
        self._database.executemany("INSERT INTO doubts VALUES (?, ?, ?, ?, ?)", values)

    def add_key(self, key: bytes, expected: Expected | None = None) -> bool:
        """Add a key, with the object that the service should have under it; return whether it is new."""
        values = (None,) * 6 if expected is None else attrs.astuple(expected)
        add = f"INSERT OR IGNORE INTO keys (key, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
        before = (
            self._database.total_changes
        )  # in a Turkish locale, sqlite3 before Python 3.13 counts no rows of INSERT
        self._database.execute(add, (key, *values))
        return self._database.total_changes > before

    def has_key(self, key: bytes) -> bool:
        """Return whether a key was added."""
        return self._database.execute("SELECT 1 FROM keys WHERE key = ?", (key,)).fetchone() is not None

    def find(self, key: bytes) -> Expected | None:
        """Return the object that the service should have under a key, the first time that it is asked for."""
        query = f"SELECT {_EXPECTED} AND key = ?"
        found = self._database.execute(query, (key,)).fetchone()
        self._database.execute("UPDATE keys SET is_found = 1 WHERE key = ?", (key,))
        return found and Expected(*found)

    def add_patients(self, patients: Iterable[tuple[str, str]]) -> None:
        """Add patients of the service, by their ids, in JSON."""
        self._database.executemany("INSERT OR REPLACE INTO patients VALUES (?, ?)", patients)

    def patient(self, id: str) -> str | None:
        """Return a patient of the service."""
        found = self._database.execute("SELECT patient FROM patients WHERE id = ?", (id,)).fetchone()
        return found and str(found[0])

    def not_found(self) -> Iterator[Expected]:
        """Iterate over the objects that the service should have, and that ``find`` was not asked for."""
        query = f"SELECT {_EXPECTED} ORDER BY at, external_id"
        return (Expected(*row) for row in self._database.execute(query))

    def times(self) -> tuple[int | None, int | None]:
        """Return the earliest and the latest time of the objects that the service should have."""
        first, last = self._database.execute("SELECT min(at), max(at) FROM keys").fetchone()
        return first, last

    def has_changes(self) -> bool:
        """Return whether there is anything to record."""
        return self._database.execute("SELECT 1 FROM changes LIMIT 1").fetchone() is not None

    def recorded(self) -> Iterator[Sequence[Recorded]]:
        """Iterate over the events as they are stored, in batches."""
        return self._batches("SELECT * FROM events ORDER BY rowid", Recorded)

    def changes(self) -> Iterator[Sequence[Known]]:
        """Iterate over the changes of state, in batches."""
        return self._batches("SELECT * FROM changes ORDER BY rowid", Known)

    def _batches(self, query: str, make: Callable[..., T]) -> Iterator[Sequence[T]]:
        cursor = self._database.execute(query)
        while rows := cursor.fetchmany(_AT_ONCE):
            yield [make(*row) for row in rows]
