"""What an import has recorded: a row for each object, with its start and status, and salted hashes of all else.

A hash is keyed with a salt that is random for each import, so that two databases have different hashes of one phone.
The external id of an appointment has to be known again, because an appointment that is missing in a file may have to be
cancelled. It is stored under a mask of the same salt, so that it cannot be read in a copy of this table alone.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from followup._store.database import Database, insert_if_absent
from followup._store.leases import limit_idle_time, take_lock
from followup._store.schema import LONGEST_TEXT, Schema
from followup.outbox import Outbox
from followup.outbox.events import Recorded

BOOKED: Final = "booked"
CANCELLED: Final = "cancelled"
RECORDED: Final = "recorded"
"""The status of a patient or a visit, which has no other."""

IMPORTS = Table(
    "followup_imports",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("outbox", String(LONGEST_TEXT), nullable=False),
    Column("name", String(LONGEST_TEXT), nullable=False),
    Column("salt", LargeBinary, nullable=False),
    # How many runs have recorded anything: a run that began before another one ended notices it by this number.
    Column("runs", Integer, nullable=False),
    UniqueConstraint("outbox", "name", name="followup_imports_name"),
)

OBJECTS = Table(
    "followup_imported",
    MetaData(),
    Column("import_id", Integer, primary_key=True),
    # Hashes: of the kind of the object and its external id, of the patient without the phone, and of what identifies
    # the patient.
    Column("key", LargeBinary, primary_key=True),
    Column("patient", LargeBinary),
    Column("phone", LargeBinary),
    Column("external_id", LargeBinary),
    Column("dni", LargeBinary),
    Column("status", String(16), nullable=False),
    # Milliseconds since the epoch: the start of an appointment.
    Column("at", BigInteger),
    # The external id of an appointment, masked.
    Column("number", LargeBinary),
)
Index("followup_imported_by_phone", OBJECTS.c.import_id, OBJECTS.c.phone)

SCHEMA = Schema("import", 1, (IMPORTS, OBJECTS))

_AT_ONCE = 1000
"""Rows that are in memory at once."""

_LONGEST_PAUSE = 60.0
"""Seconds between two statements of a run, after which PostgreSQL ends it: its process is frozen."""


@attrs.frozen
class Person:
    """The hashes of what identifies a patient; None for what a row does not say.

    The service identifies a patient by the phone. Here, two rows are about one patient if they have the same external
    id or document, and differ in neither.
    """

    phone: bytes | None = None
    external_id: bytes | None = None
    dni: bytes | None = None

    @property
    def key(self) -> bytes | None:
        """The best of the three."""
        return self.external_id or self.dni or self.phone

    def is_same_as(self, other: "Person") -> bool:
        """Return whether both are one patient."""
        pairs = ((self.external_id, other.external_id), (self.dni, other.dni))
        equal = [mine == theirs for mine, theirs in pairs if mine and theirs]
        return bool(equal) and all(equal)

    def differs_from(self, other: "Person") -> bool:
        """Return whether they are two patients. Nobody can know that of one who has a phone only."""
        are_identified = all(each.external_id or each.dni for each in (self, other))
        return are_identified and not self.is_same_as(other)


@attrs.frozen
class Known:
    """What was recorded about an object.

    Attributes:
        status: its status.
        at: the start of an appointment, in milliseconds since the epoch.
        patient: hash of all fields of the patient but the phone; None if no event has had a patient.
        person: who the patient is, with the phone that was recorded first, because no event changes it.
    """

    status: str
    at: int | None = None
    patient: bytes | None = None
    person: Person = Person()


@attrs.frozen
class Change:
    """The new state of an object, for ``State.commit``."""

    key: bytes
    known: Known
    number: bytes | None


class State:
    """The state of an import about which nothing was recorded yet, as ``check`` assumes.

    Attributes:
        runs: number of runs that have recorded anything.
    """

    def __init__(self, salt: bytes | None = None, runs: int = 0) -> None:
        self._salt = salt or secrets.token_bytes(32)
        self.runs = runs

    def hash(self, *parts: str) -> bytes:
        """Return the salted hash of texts."""
        text = "\0".join(parts).encode(errors="surrogatepass")
        return hashlib.blake2b(text, digest_size=16, key=self._salt).digest()

    def masked(self, key: bytes, number: bytes) -> bytes:
        """Mask the external id of the object with this key; masking it again returns it."""
        mask = b""
        while len(mask) < len(number):
            mask += hashlib.blake2b(key + len(mask).to_bytes(8), key=self._salt, person=b"number").digest()
        return bytes(mine ^ theirs for mine, theirs in zip(number, mask, strict=False))

    def objects(self, keys: Collection[bytes]) -> Mapping[bytes, Known]:  # noqa: ARG002 - for the class below
        """Return what was recorded about objects, by their keys."""
        return {}

    def people(self, phones: Collection[bytes]) -> Sequence[Person]:  # noqa: ARG002 - for the class below
        """Return the patients that were recorded with these phones."""
        return ()

    def ahead(self, now: datetime) -> Iterator[tuple[bytes, Known, bytes]]:  # noqa: ARG002 - for the class below
        """Return the recorded appointments that are booked and start after this time, each with its masked number."""
        return iter(())


class StoredState(State):
    """The state of an import in the database of an outbox.

    Args:
        outbox: the outbox, whose tables exist.
        name: name of the import.
    """

    def __init__(self, outbox: Outbox, name: str) -> None:
        outbox._check_tables()  # before the file of a misspelt path is created
        SCHEMA.create(outbox._database)
        self._outbox = outbox
        self._database: Database = outbox._database
        mine = (IMPORTS.c.outbox == outbox.name, IMPORTS.c.name == name)
        new = {"outbox": outbox.name, "name": name, "salt": secrets.token_bytes(32), "runs": 0}
        with self._database.transaction() as connection:
            found = connection.execute(select(IMPORTS).where(*mine)).first()
            if found is None:
                connection.execute(insert_if_absent(IMPORTS, self._database.dialect, **new))
                found = connection.execute(select(IMPORTS).where(*mine)).one()
        super().__init__(found.salt, found.runs)
        self._id: int = found.id
        self._name = name

    def objects(self, keys: Collection[bytes]) -> Mapping[bytes, Known]:
        """Return what was recorded about objects, by their keys."""
        query = select(OBJECTS).where(OBJECTS.c.import_id == self._id, OBJECTS.c.key.in_(keys))
        with self._database.transaction() as connection:
            return {row.key: _known(row) for row in connection.execute(query)}

    def people(self, phones: Collection[bytes]) -> Sequence[Person]:
        """Return the patients that were recorded with these phones."""
        columns = (OBJECTS.c.phone, OBJECTS.c.external_id, OBJECTS.c.dni)
        query = select(*columns).where(OBJECTS.c.import_id == self._id, OBJECTS.c.phone.in_(phones)).distinct()
        with self._database.transaction() as connection:
            return [Person(*row) for row in connection.execute(query)]

    def ahead(self, now: datetime) -> Iterator[tuple[bytes, Known, bytes]]:
        """Return the recorded appointments that are booked and start after this time, each with its masked number."""
        is_ahead = (OBJECTS.c.import_id == self._id, OBJECTS.c.status == BOOKED, OBJECTS.c.at > milliseconds(now))
        last = b""
        while True:  # a transaction for each part, so that a long run is in nobody's way
            part = select(OBJECTS).where(*is_ahead, OBJECTS.c.key > last).order_by(OBJECTS.c.key).limit(_AT_ONCE)
            with self._database.transaction() as connection:
                rows = connection.execute(part).all()
            if not rows:
                return
            yield from ((row.key, _known(row), row.number) for row in rows)
            last = rows[-1].key

    def commit(self, events: Iterable[Sequence[Recorded]], changes: Iterable[Sequence[Change]]) -> bool:
        """Record events and state in one transaction.

        Returns:
            False if another run has recorded something since this state was read; nothing is recorded then.
        """
        with self._database.transaction() as connection:
            take_lock(connection, SCHEMA.lock_of(f"{self._outbox.name}:{self._name}"))
            limit_idle_time(connection, _LONGEST_PAUSE)
            mine = update(IMPORTS).where(IMPORTS.c.id == self._id, IMPORTS.c.runs == self.runs)
            if connection.execute(mine.values(runs=self.runs + 1)).rowcount == 0:
                return False
            for batch in events:
                self._outbox._record_all(connection, batch)
            for each in changes:
                self._write(connection, each)
        return True

    def _write(self, connection: Connection, changes: Sequence[Change]) -> None:
        rows = [
            {"import_id": self._id, "key": each.key, "number": each.number}
            | {"status": each.known.status, "at": each.known.at, "patient": each.known.patient}
            | attrs.asdict(each.known.person)
            for each in changes
        ]
        insert = postgresql.insert(OBJECTS) if connection.dialect.name == "postgresql" else sqlite.insert(OBJECTS)
        new = {name: insert.excluded[name] for name in rows[0] if name not in ("import_id", "key")}
        connection.execute(insert.on_conflict_do_update(index_elements=["import_id", "key"], set_=new), rows)


def _known(row: Any) -> Known:
    return Known(row.status, row.at, row.patient, Person(row.phone, row.external_id, row.dni))


def milliseconds(at: datetime) -> int:
    """Return a time as the tables have it."""
    return round(at.timestamp() * 1000)
