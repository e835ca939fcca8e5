"""Exports and erases the data of one person: what an Outbox and an Inbox both do.

A row that is erased keeps its id, so that the event is neither sent nor handled again, its state and its times.
On SQLite, the file is then written anew (``_scrub``).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Connection, RowMapping, case, func, null, select, update

from followup._core.redaction import visible
from followup._store.leases import RELEASED, datetime_of
from followup._store.person import Person
from followup._store.rows import StoredRows
from followup._store.schema import DEAD, IN_FLIGHT, WAITING, from_ascii

_UNFINISHED = frozenset({WAITING, IN_FLIGHT, DEAD})

_AT_ONCE = 500
"""Rows that are in memory at once, or that one statement names."""

_MOST_IDS = 20
"""Ids that a message lists."""


class PersonalData(StoredRows):
    """The events of a store, of which those about one person can be exported and erased."""

    _given_up: ClassVar[str]
    """The state of an event that was still to be worked on when it was erased."""

    _content: ClassVar[str]
    """The column of the event as JSON."""

    _about: ClassVar[str]
    """The column of what the event is about."""

    _stored_at: ClassVar[str]
    """The column of the time at which the event was stored."""

    _emptied: ClassVar[Mapping[str, Any]]
    """The columns with personal data, besides the error, and what an erased row has in them."""

    _is_there: ClassVar[ColumnElement[bool]]
    """The condition that a row was neither erased nor purged."""

    def _forget(self, connection: Connection, person: Person) -> None:
        """Erase what other tables hold about the person."""

    def export(
        self,
        *,
        phone: str | None = None,
        dni: str | None = None,
        external_id: str | None = None,
        email: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return every event about one person, with the data in it.

        An event is about the person if its patient, or a contact of an intake request, matches one of the criteria. An
        event that names no other patient is about them too if it has the same appointment, or the same id of an object
        of the service, as one that matches.

        Args:
            phone: the phone, in any spelling. The spellings with and without prefixes are found if the extra
                ``import`` is installed, and the country code is there in one of them.
            dni: the national document; dots, spaces and hyphens do not matter.
            external_id: the patient's id in your system.
            email: the e-mail address; case does not matter.

        Returns:
            The events in the order in which they were stored, as dicts that can be encoded as JSON. What was erased or
            purged is not among them.

        Raises:
            ValueError: no criterion was passed, or one is empty.
        """
        person = Person(phone=phone, dni=dni, external_id=external_id, email=email)
        with self._checked_transaction() as connection:
            rows: dict[int, RowMapping] = {}
            found = self._find(connection, person, rows)
            return [
                {
                    "store": self._schema.component,
                    "id": row["event_id"],
                    "state": row["state"],
                    self._stored_at: datetime_of(row[self._stored_at]).isoformat(),
                    self._about: from_ascii(row[self._about]),
                    "event": self._payload(row),
                    "attempts": row["attempts"],
                    "error": self._cipher.reason_in(row) or None,
                }
                for row in map(rows.__getitem__, found)
            ]

    def erase(
        self,
        *,
        phone: str | None = None,
        dni: str | None = None,
        external_id: str | None = None,
        email: str | None = None,
        waiting: bool = False,
    ) -> int:
        """Erase the data of one person from every event that ``export`` would return.

        The ids of the events remain, so that none is sent or handled again. On SQLite the file is then written anew,
        which takes a while for a large one; other processes wait meanwhile.

        Args:
            phone: as for ``export``; so are the other criteria.
            dni: the national document.
            external_id: the patient's id in your system.
            email: the e-mail address.
            waiting: also erase events that wait, are in flight or are dead. One in flight may have taken effect.

        Returns:
            The number of events that were erased.

        Raises:
            ValueError: no criterion was passed, or one is empty; or events are still to be worked on, whose ids the
                message lists. Nothing was erased then.
            FollowUpError: the events are erased, but a SQLite file still has copies of their data, because other
                processes use it. Call it again, also if it finds no event any more.
        """
        count = self._erase(Person(phone=phone, dni=dni, external_id=external_id, email=email), waiting=waiting)
        self._scrub()
        return count

    def _erase(self, person: Person, *, waiting: bool) -> int:
        """Erase what the tables hold about a person, and return the number of events."""
        # Before the lock: to read and decrypt all rows takes long, and others would wait meanwhile.
        with self._checked_transaction() as connection:
            found = self._find(connection, person)
        with self._locked_transaction() as (connection, now):
            rows = [{"id": row["event_id"], "state": row["state"]} for row in self._rows(connection, found)]
            if not waiting:
                check_finished(rows)
        columns = self._events.c
        is_unfinished = columns.state.in_(_UNFINISHED)
        values = {
            "finished_at": func.coalesce(columns.finished_at, now),
            "error": None,
            **{name: case((is_unfinished, null()), else_=columns[name]) for name in RELEASED},
            **self._emptied,
            # A handler may have committed since the row was read. MySQL uses the new state in what follows.
            "state": case((is_unfinished, self._given_up), else_=columns.state),
        }
        erasing = update(self._events).ordered_values(*((columns[name], new) for name, new in values.items()))
        # The latest first, because a later event may be known as the person's by an earlier one only.
        ids = [row["id"] for row in reversed(rows)]
        count = self._in_steps(ids, lambda part: erasing.where(columns.name == self.name, columns.event_id.in_(part)))
        with self._locked_transaction() as (connection, _):
            self._forget(connection, person)
        return count

    def _find(self, connection: Connection, person: Person, seen: dict[int, RowMapping] | None = None) -> Sequence[int]:
        """Return the rows that are about a person, and add what was read to those seen."""

        def payloads(wanted: Sequence[int] | None) -> Iterator[tuple[int, Any, str]]:
            for row in self._all_rows(connection) if wanted is None else self._rows(connection, wanted):
                if seen is not None:
                    seen[row["seq"]] = row
                yield row["seq"], self._payload(row), from_ascii(row[self._about])

        return person.find(payloads)

    def _payload(self, row: RowMapping) -> Any:
        stored: Any = row[self._content]
        if not isinstance(stored, str):
            stored = bytes(stored)
        return json.loads(self._cipher.decrypt(stored, row["event_id"]))

    def _all_rows(self, connection: Connection) -> Iterator[RowMapping]:
        seq, last = self._events.c.seq, -1
        part = select(self._events).where(self._is_there).order_by(seq).limit(_AT_ONCE)
        while rows := connection.execute(part.where(seq > last)).mappings().all():
            # With a condition on the name, SQLite would use an index by it, and sort all rows for each part.
            yield from (row for row in rows if row["name"] == self.name)
            last = rows[-1]["seq"]

    def _rows(self, connection: Connection, found: Sequence[int]) -> Iterator[RowMapping]:
        for part in _parts(found):
            query = select(self._events).where(self._events.c.seq.in_(part), self._is_there)
            yield from connection.execute(query.order_by(self._events.c.seq)).mappings()


def _parts(found: Sequence[int]) -> Iterator[Sequence[int]]:
    return (found[start : start + _AT_ONCE] for start in range(0, len(found), _AT_ONCE))


def check_finished(exported: Iterable[Mapping[str, Any]]) -> None:
    """Check that nothing has to be done any more with the events of an export.

    Raises:
        ValueError: one waits, is in flight or is dead.
    """
    ids = [visible(each["id"]) for each in exported if each["state"] in _UNFINISHED]
    if ids:
        more = f" and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else ""
        raise ValueError(
            f"events wait, are in flight or are dead: {', '.join(ids[:_MOST_IDS])}{more}. Nothing was erased; pass "
            "waiting=True to give them up too"
        )
