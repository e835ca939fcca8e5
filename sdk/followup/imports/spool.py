"""What a run finds, on disk until it is recorded or shown: a file of a million rows is never held in memory.

It is a temporary database of SQLite that nobody else can open, and that ends with the report. Rows are only appended;
what has to be looked up is sorted once, when all are there.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from followup import EventInput
from followup.imports.report import Doubt
from followup.imports.state import Known
from followup.outbox.events import Recorded, as_input

T = TypeVar("T")

_AT_ONCE, _READ_AT_ONCE = 100, 500
"""Rows that are in memory at once, before they are written here, and when they are read again."""

_TABLES = {
    "events": ("id", "subject", "text"),
    "changes": Known._fields,
    "doubts": ("line", "col", "code", "value", "text"),
    "patients": ("patient", "lacks_phone", "lacks_document"),
    "sent": ("patient PRIMARY KEY",),
}


class _TemporaryDatabase(sqlite3.Connection):
    """A connection that is closed when nobody needs it any more, as a temporary file is."""

    def __del__(self) -> None:
        self.close()


def temporary_database(script: str) -> sqlite3.Connection:
    """Return a database that is a temporary file as soon as it is large, with the tables that a script creates.

    Nobody else can open it, and it ends with the connection: so it needs no journal, and no waiting for the disk.
    """
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False, factory=_TemporaryDatabase)
    settings = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000;"
    database.executescript(f"{settings} {script}; BEGIN")
    return database


class Spooled(Collection[T]):
    """Items on disk, which can be iterated any number of times."""

    def __init__(self, spool: "Spool", table: str, make: Callable[..., T]) -> None:
        self._spool = spool  # whose database ends with it
        self._table = table
        self._make = make

    def __len__(self) -> int:
        [count] = self._spool.rows(f"SELECT count(*) FROM {self._table}")  # noqa: S608 - a constant
        return int(count[0])

    def __iter__(self) -> Iterator[T]:
        query = f"SELECT * FROM {self._table} ORDER BY rowid"  # noqa: S608 - a constant
        return (self._make(*row) for row in self._spool.rows(query))

    def __contains__(self, item: object) -> bool:
        return any(each == item for each in self)

    def __reduce__(self) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, (list(self),)  # for errors that have a report


class Spool:
    """The events, changes of state, doubts and patients of one comparison."""

    def __init__(self) -> None:
        self._database = temporary_database(
            "".join(f"CREATE TABLE {name} ({', '.join(columns)});" for name, columns in _TABLES.items())
        )
        self._waiting: dict[str, list[Sequence[object]]] = {each: [] for each in _TABLES}

    @property
    def events(self) -> Collection[EventInput]:
        """The events, in order."""
        return Spooled(self, "events", lambda _id, _subject, text: as_input(text))

    @property
    def doubts(self) -> Collection[Doubt]:
        """The doubts, in the order of the rows; those about no row come last."""
        return Spooled(self, "doubts", Doubt)

    def add(self, table: str, row: Sequence[object]) -> None:
        """Append a row to a table."""
        waiting = self._waiting[table]
        waiting.append(row)
        if len(waiting) >= _AT_ONCE:
            self._write(table)

    def add_sent(self, patient: bytes) -> bool:
        """Note that an event about a patient is sent; return whether it is the first."""
        before = self._database.total_changes  # rowcount is -1 in a Turkish locale before Python 3.13
        self._database.execute("INSERT OR IGNORE INTO sent VALUES (?)", (patient,))
        return self._database.total_changes > before

    def patients(self) -> tuple[int, int, int]:
        """Return the numbers of patients, of those without a phone, and of those without a document."""
        first = "SELECT lacks_phone, lacks_document, min(rowid) FROM patients GROUP BY patient"
        [numbers] = self.rows(f"SELECT count(*), total(lacks_phone), total(lacks_document) FROM ({first})")  # noqa: S608
        return int(numbers[0]), int(numbers[1]), int(numbers[2])

    def has_changes(self) -> bool:
        """Return whether there is anything to record."""
        return next(self.rows("SELECT 1 FROM changes LIMIT 1"), None) is not None

    def recorded(self) -> Iterator[Sequence[Recorded]]:
        """Iterate over the events as they are stored, in batches."""
        return self._batches("SELECT * FROM events ORDER BY rowid", Recorded)

    def changes(self) -> Iterator[Sequence[Known]]:
        """Iterate over the changes of state, in batches, in the order in which a database keeps them."""
        return self._batches("SELECT * FROM changes ORDER BY key", Known)

    def rows(self, query: str) -> Iterator[Sequence[Any]]:
        """Iterate over the rows of a query."""
        for table in _TABLES:
            self._write(table)
        return self._database.execute(query)

    def _write(self, table: str) -> None:
        if waiting := self._waiting[table]:
            values = ", ".join("?" * len(_TABLES[table]))
            self._database.executemany(f"INSERT INTO {table} VALUES ({values})", waiting)  # noqa: S608 - constants
            waiting.clear()

    def _batches(self, query: str, make: Callable[..., T]) -> Iterator[Sequence[T]]:
        cursor: Any = self.rows(query)
        while rows := cursor.fetchmany(_READ_AT_ONCE):
            yield [make(*row) for row in rows]
