"""What an import finds: doubts about rows, what was understood of the others, events, and changes of the state.

It is on disk until it is recorded or shown, because a file of a million rows is never held in memory. Rows are only
appended to a temporary database of SQLite; what has to be looked up is sorted once, when all are there.
"""

import marshal
import pickle
import sqlite3
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import attrs

from followup import EventInput
from followup._core.package_data import package_text
from followup.imports.state import Known
from followup.outbox.events import Recorded, as_input

T = TypeVar("T")

_AT_ONCE = 500
"""Rows that are in memory at once."""

# What needs no other order than that in which it was added is in batches; each column of a row would take time.
_TABLES = """
CREATE TABLE events (count, content);
CREATE TABLE doubts (count, content);
CREATE TABLE changes (key, content);
CREATE TABLE patients (patient, lacks_phone, lacks_document);
CREATE TABLE sent (patient PRIMARY KEY);
"""
_SORTED = {"changes": "INSERT INTO changes VALUES (?, ?)", "patients": "INSERT INTO patients VALUES (?, ?, ?)"}


class Doubt(NamedTuple):
    """Something about a row that is not certain, or that is invalid.

    ``repr`` does not show the value, which may be personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it: the header is row 1. None for the whole file.
        column: header of the column, several joined by `` + ``; None for a row as a whole.
        code: what the doubt is about, such as ``phone_invalid``.
        value: text of the cell; None for a row as a whole.
        text: what was done, and how to decide otherwise. It never contains the value.
    """

    row: int | None
    column: str | None
    code: str
    value: str | None
    text: str

    def __repr__(self) -> str:
        return f"Doubt(row={self.row!r}, column={self.column!r}, code={self.code!r}, text={self.text!r})"

    @property
    def rejects(self) -> bool:
        """Whether the row was rejected because of this doubt."""
        return CODES[self.code].rejects


@attrs.frozen
class Code:
    """A kind of doubt.

    Attributes:
        rejects: whether it rejects the row.
        text: what was done, and how to decide otherwise; ``{detail}`` stands for what differs from row to row.
    """

    rejects: bool
    text: str


CODES: Final[Mapping[str, Code]] = {
    code: Code(**each) for code, each in tomllib.loads(package_text(__name__, "doubts.toml")).items()
}
"""The codes of doubts."""


def doubt(
    code: str, row: int | None = None, column: str | None = None, value: str | None = None, *, detail: str = ""
) -> Doubt:
    """Return a doubt with the text of its code."""
    return Doubt(row, column, code, value, _text(code, detail))


@lru_cache(maxsize=1000)
def _text(code: str, detail: str) -> str:
    return CODES[code].text.format(detail=detail)


def column_in(sheet: str, column: str | None) -> str | None:
    """Return the column of a doubt, with the sheet if several are read."""
    return f"{sheet}!{column or ''}" if sheet else column


@attrs.frozen
class Understood:
    """A row as it was understood. ``repr`` shows no personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it.
        name: the patient's name, as it will be sent; empty if the row has none.
        start: date and time in the map's zone, without an offset; None for a patient.
        phone: the patient's phone in E.164; empty if the row has none.
        status: ``booked`` or ``cancelled``.
    """

    row: int
    name: str = attrs.field(repr=False)
    start: datetime | None
    phone: str = attrs.field(repr=False)
    status: str


@attrs.frozen(kw_only=True)
class Summary:
    """Numbers about the accepted rows; days and times are those of the map's zone.

    Attributes:
        first, last: the first and the last day; None if there is none.
        first_time, last_time: the earliest and the latest time of day.
        midnight, before6, after22, sundays: numbers of rows at midnight, before 6 (midnight too), from 22 on, and on
            Sundays.
        patients: number of patients in the rows.
        without_phone, without_document: numbers of patients who have none.
        ignored: number of rows that are no objects.
        hidden_rows: number of rows that the spreadsheet hides, and that were read.
    """

    first: date | None = None
    last: date | None = None
    first_time: time | None = None
    last_time: time | None = None
    midnight: int = 0
    before6: int = 0
    after22: int = 0
    sundays: int = 0
    patients: int = 0
    without_phone: int = 0
    without_document: int = 0
    ignored: int = 0
    hidden_rows: int = 0


@attrs.frozen(kw_only=True)
class Report:
    """What an import recorded, or would record. ``repr`` shows no personal data.

    Attributes:
        rows: number of rows, without the header and empty ones.
        rejected: number of rows that were rejected; nothing was recorded of them.
        ignored: number of rows that are no objects: totals, notes, and those that the map ignores.
        unchanged: number of rows about which there is nothing to tell the service.
        gone: number of appointments that are known and still ahead, on the days of this file, but not in it.
        events: the events, in order. They are read from a temporary file each time.
        types: numbers of the events by type.
        doubts: what was not certain, or wrong, in the order of the rows.
        preview: the first accepted rows, as they were understood.
        summary: the days, hours and patients of the accepted rows.
    """

    rows: int = 0
    rejected: int = 0
    ignored: int = 0
    unchanged: int = 0
    gone: int = 0
    events: Collection[EventInput] = attrs.field(default=(), repr=False)
    types: Mapping[str, int] = attrs.field(factory=dict, repr=False)
    doubts: Collection[Doubt] = attrs.field(default=(), repr=False)
    preview: Sequence[Understood] = attrs.field(default=(), repr=False)
    summary: Summary = attrs.field(factory=Summary, repr=False)


class _TemporaryDatabase(sqlite3.Connection):
    """A connection that is closed when nobody needs it any more, as a temporary file is."""

    def __del__(self) -> None:
        self.close()


def temporary_database(script: str) -> sqlite3.Connection:
    """Return a database that is a temporary file as soon as it is large, with the tables that a script creates.

    Nobody else can open it, and it ends with the connection: so it needs no journal, and no waiting for the disk.
    """
    # An empty name is a file of its own that SQLite removes at once; the cache is part of what an import may hold.
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
        [count] = self._spool.rows(f"SELECT total(count) FROM {self._table}")  # noqa: S608 - a constant
        return int(count[0])

    def __iter__(self) -> Iterator[T]:
        return (self._make(*row) for batch in self._spool.batches(self._table) for row in batch)

    def __contains__(self, item: object) -> bool:
        return any(each == item for each in self)

    def __reduce__(self) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, (list(self),)  # for errors that have a report


class Spool:
    """The events, changes of state, doubts and patients of one comparison."""

    def __init__(self) -> None:
        self._database = temporary_database(_TABLES)
        self._waiting: dict[str, list[Sequence[object]]] = {each: [] for each in ("events", "doubts", *_SORTED)}

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

    def add_change(self, known: Known) -> None:
        """Append a change of the state."""
        self.add("changes", (known.key, marshal.dumps(tuple(known))))

    def add_sent(self, patient: bytes) -> bool:
        """Note that an event about a patient is sent; return whether it is the first."""
        before = self._database.total_changes  # rowcount is -1 in a Turkish locale before Python 3.13
        self._database.execute("INSERT OR IGNORE INTO sent VALUES (?)", (patient,))
        return self._database.total_changes > before

    def patients(self) -> tuple[int, int, int]:
        """Return the numbers of patients, of those without a phone, and of those without a document."""
        # With min(), the other columns are those of the same row in SQLite.
        first = "SELECT lacks_phone, lacks_document, min(rowid) FROM patients GROUP BY patient"
        [numbers] = self.rows(f"SELECT count(*), total(lacks_phone), total(lacks_document) FROM ({first})")  # noqa: S608
        return int(numbers[0]), int(numbers[1]), int(numbers[2])

    def has_changes(self) -> bool:
        """Return whether there is anything to record."""
        return next(self.rows("SELECT 1 FROM changes LIMIT 1"), None) is not None

    def recorded(self) -> Iterator[Sequence[Recorded]]:
        """Iterate over the events as they are stored, in batches."""
        return ([Recorded(*each) for each in batch] for batch in self.batches("events"))

    def changes(self) -> Iterator[Sequence[Known]]:
        """Iterate over the changes of state, in batches, in the order in which a database keeps them."""
        cursor: Any = self.rows("SELECT content FROM changes ORDER BY key")
        while rows := cursor.fetchmany(_AT_ONCE):
            yield [Known(*marshal.loads(content)) for (content,) in rows]  # noqa: S302 - our own

    def rows(self, query: str) -> Iterator[Sequence[Any]]:
        """Iterate over the rows of a query."""
        for table in self._waiting:
            self._write(table)
        return self._database.execute(query)

    def batches(self, table: str) -> Iterator[Sequence[Sequence[Any]]]:
        """Iterate over what was added to a table without an order of its own."""
        contents = self.rows(f"SELECT content FROM {table} ORDER BY rowid")  # noqa: S608 - a constant
        return (pickle.loads(content) for (content,) in contents)  # noqa: S301 - our own

    def _write(self, table: str) -> None:
        waiting = self._waiting[table]
        if table in _SORTED:
            self._database.executemany(_SORTED[table], waiting)
        elif waiting:
            # As plain tuples, because pickle takes five times as long for those that have a class.
            content = pickle.dumps([*map(tuple, waiting)], protocol=5)
            self._database.execute(f"INSERT INTO {table} VALUES (?, ?)", (len(waiting), content))  # noqa: S608
        waiting.clear()
