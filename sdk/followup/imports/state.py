"""What an import has recorded, in the tables of ``_store/import_state.py``, and how it is compared and changed."""

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from followup._store.database import Database
from followup._store.execution import execute_many
from followup._store.import_state import IMPORTS, OBJECTS, SCHEMA, salted_hash
from followup._store.leases import limit_idle_time, take_lock
from followup.imports.who import Person, words_of
from followup.outbox import Outbox
from followup.outbox.events import Recorded

BOOKED: Final = "booked"
CANCELLED: Final = "cancelled"
UNKNOWN: Final = "unknown"
RECORDED: Final = "recorded"
"""The status of a patient or a visit, which has no other."""

_AT_ONCE = 1000
"""Rows that are in memory at once."""

_REMEMBERED = 10_000
"""Words of names whose hashes are remembered."""

_WORD = 8
"""Bytes of the hash of a word."""

_LONGEST_PAUSE = 60.0
"""Seconds between two statements of a run, after which PostgreSQL ends it: its process is frozen."""


class Known(NamedTuple):
    """What was recorded about an object, or what a row says about it.

    Attributes:
        key: hash of the kind of the object and its external id.
        phone, external_id, dni: hashes of what identifies the patient; None for what a row does not say. The phone is
            the first that was recorded, because no event changes it.
        name: short hashes of the words of the patient's name.
        patient: hash of all fields of the patient but the phone; None for a cancelled appointment.
        status: ``booked`` or ``cancelled``; ``recorded`` for a patient or a visit.
        at: start of an appointment, in milliseconds since the epoch.
        number: external id of an appointment, masked.
    """

    key: bytes
    phone: bytes | None
    external_id: bytes | None
    dni: bytes | None
    name: bytes | None = None
    patient: bytes | None = None
    status: str = RECORDED
    at: int | None = None
    number: bytes | None = None

    @property
    def identity(self) -> tuple[bytes | None, ...]:
        """What identifies the patient."""
        return self[1:5]

    @property
    def person(self) -> Person:
        """The patient, by hashes."""
        name = self.name or b""
        words = frozenset(name[start : start + _WORD] for start in range(0, len(name), _WORD))
        return Person(self.phone, self.dni, self.external_id, words)


class State:
    """The state of an import about which nothing was recorded yet, as ``check`` assumes.

    Attributes:
        hash: returns the salted hash of texts.
        runs: number of runs that have recorded anything.
    """

    def __init__(self, salt: bytes | None = None, runs: int = 0) -> None:
        self._salt = salt or secrets.token_bytes(32)
        self.hash: Callable[..., bytes] = partial(salted_hash, self._salt)
        self._word_hash = lru_cache(_REMEMBERED)(lambda word: self.hash("name", word)[:_WORD])
        self.runs = runs

    def name_hash(self, name: str) -> bytes | None:
        """Return the short hashes of the words of a name; None if it has none."""
        # Sorted, because the order of a set of texts is another one in each process.
        return b"".join(sorted(map(self._word_hash, words_of(name)))) or None

    def masked(self, key: bytes, number: bytes) -> bytes:
        """Mask the external id of the object with this key; masking it again returns it."""
        mask = b""
        # The hash in counter mode: as many bytes as the number has, and others for each object.
        while len(mask) < len(number):
            mask += hashlib.blake2b(key + len(mask).to_bytes(8), key=self._salt, person=b"number").digest()
        return (int.from_bytes(number) ^ int.from_bytes(mask[: len(number)])).to_bytes(len(number))

    def objects(self, keys: Collection[bytes]) -> Mapping[bytes, Known]:  # noqa: ARG002 - for the class below
        """Return what was recorded about objects, by their keys."""
        return {}

    def with_any(self, column: str, hashes: Collection[bytes]) -> Iterable[Known]:  # noqa: ARG002 - for the class below
        """Return what identifies the patients with these phones, or with these documents."""
        return ()

    def ahead(self, now: datetime, first: int, end: int) -> Iterator[Known]:  # noqa: ARG002 - for the class below
        """Return the recorded appointments that are booked, start after this time, and from first until before end."""
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
        new = {"outbox": outbox.name, "name": name, "salt": outbox._cipher.encrypt(secrets.token_bytes(32)), "runs": 0}
        with self._database.transaction() as connection:
            found = connection.execute(sa.select(IMPORTS).where(*mine)).first()
            if found is None:  # another run may insert it at the same time
                connection.execute(self._database.dialect.insert_if_absent(IMPORTS, **new))
                found = connection.execute(sa.select(IMPORTS).where(*mine)).one()
        super().__init__(outbox._cipher.decrypt(found.salt, name), found.runs)
        self._id: int = found.id
        self._name = name
        self._mine = sa.select(OBJECTS).where(OBJECTS.c.import_id == self._id)

    def objects(self, keys: Collection[bytes]) -> Mapping[bytes, Known]:
        """Return what was recorded about objects, by their keys."""
        if not self.runs:
            return {}
        return {each.key: each for each in self._found(self._mine.where(OBJECTS.c.key.in_(keys)))}

    def with_any(self, column: str, hashes: Collection[bytes]) -> Iterable[Known]:
        """Return what identifies the patients with these phones, or with these documents."""
        if not self.runs:
            return ()
        who = [OBJECTS.c[name] for name in ("phone", "external_id", "dni", "name")]
        query = sa.select(*who).distinct().where(OBJECTS.c.import_id == self._id, OBJECTS.c[column].in_(hashes))
        with self._database.transaction() as connection:
            return [Known(b"", *row) for row in connection.execute(query)]

    def ahead(self, now: datetime, first: int, end: int) -> Iterator[Known]:
        """Return the recorded appointments that are booked, start after this time, and from first until before end."""
        # Of a person who was erased, the appointments have no number any more: their absence means nothing.
        at = OBJECTS.c.at
        is_ahead = (OBJECTS.c.status == BOOKED, at > milliseconds(now), at >= first, at < end)
        part = self._mine.where(*is_ahead, OBJECTS.c.number.is_not(None)).order_by(OBJECTS.c.key).limit(_AT_ONCE)
        last = b""
        # By the last key and not by an offset, because each part is read in a transaction of its own.
        while found := self._found(part.where(OBJECTS.c.key > last)):
            yield from found
            last = found[-1].key

    def _found(self, query: sa.Select[Any]) -> list[Known]:
        # A transaction for each query, so that a long run is in nobody's way.
        with self._database.transaction() as connection:
            rows: list[Any] = [*connection.execute(query)]
            return [Known(*row[1:]) for row in rows]

    def commit(
        self, events: Callable[[], Iterable[Sequence[Recorded]]], changes: Callable[[], Iterable[Sequence[Known]]]
    ) -> bool:
        """Record events and state, of which each call returns the batches, in one transaction.

        Returns:
            False if another run has recorded something since this state was read; nothing is recorded then.
        """
        return self._database.repeat(lambda: self._commit(events(), changes()))

    def _commit(self, events: Iterable[Sequence[Recorded]], changes: Iterable[Sequence[Known]]) -> bool:
        with self._database.transaction() as connection:
            # The lock first: the second of two runs waits for it, and then finds that ``runs`` is another number.
            take_lock(connection, SCHEMA.lock_of(f"{self._outbox.name}:{self._name}"))
            limit_idle_time(connection, _LONGEST_PAUSE)
            mine = sa.update(IMPORTS).where(IMPORTS.c.id == self._id, IMPORTS.c.runs == self.runs)
            if connection.execute(mine.values(runs=self.runs + 1)).rowcount == 0:
                return False
            with nullcontext() if self._database.dialect.is_server else _large_cache(connection):
                for batch in events:
                    self._outbox._record_all(connection, batch)
                upsert = self._database.dialect.upsert(OBJECTS, *(name for name in Known._fields if name != "key"))
                names = OBJECTS.c.keys()
                for each in changes:
                    rows = (zip(names, (self._id, *known), strict=True) for known in each)
                    execute_many(connection, upsert, map(dict, rows))
        return True


@contextmanager
def _large_cache(connection: sa.Connection) -> Iterator[None]:
    """Give SQLite more cache than its 2 MB, which is less than the indexes of a large file."""
    before = connection.exec_driver_sql("PRAGMA cache_size").scalar_one()
    connection.exec_driver_sql("PRAGMA cache_size = -32000")
    try:
        yield
    finally:  # the connection may be one of the user's own pool
        connection.exec_driver_sql(f"PRAGMA cache_size = {before}")


def milliseconds(at: datetime) -> int:
    """Return a time as the tables have it."""
    return round(at.timestamp() * 1000)
