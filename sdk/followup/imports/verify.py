"""The comparison of a file with the service."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import attrs

from followup import FollowUp
from followup._core.api_rules import REQUESTS_PER_MINUTE
from followup._core.call.request_rate import Governor
from followup._store.leases import datetime_of
from followup.imports.maps import Map
from followup.imports.report import temporary_database
from followup.imports.row_reader import Row
from followup.imports.rows import Rows
from followup.imports.state import CANCELLED, UNKNOWN, State, StoredState, milliseconds
from followup.imports.who import Person, is_another, words_of

_LOOKED_UP = 100
"""Objects that are looked up one by one. If more were not found, everything else is listed, 100 with each call."""

_PAGE = 100

# What the service should have. ``absent`` is the kind of the difference if it does not: ``missing``, or ``rejected``
# for a row that no run records; NULL if it need not be there. What is in the past has a key alone.
_TABLES = """
CREATE TABLE expected (key PRIMARY KEY, external_id, status, at, absent, line, patient, is_found DEFAULT 0);
CREATE TABLE patients (id PRIMARY KEY, patient) WITHOUT ROWID;
"""
_NOT_FOUND = """
SELECT * FROM expected
  WHERE external_id IS NOT NULL AND NOT is_found ORDER BY at, external_id
"""


_Side = datetime | str | None


@attrs.frozen
class Difference:
    """A difference between a file and the service.

    Attributes:
        external_id: id of the object in the file; None for a rejected row without one.
        kind: ``missing``: it is not at the service. ``unexpected``: it is at the service under an id that was recorded
            from an earlier file, but this file does not have it. ``time``, ``status``: they differ. ``patient``: it is
            another patient's there. ``rejected``: the row is rejected, and the service does not have it as it is in
            the file.
        here: time or status in the file, in UTC; the row of what has none; None if it is not there.
        there: time or status at the service, or the id of the other patient; None if it is not there.
    """

    external_id: str | None
    kind: Literal["missing", "unexpected", "time", "status", "patient", "rejected"]
    here: datetime | str | None
    there: datetime | str | None


class Verification:
    """Compares the rows of a file with the objects of the service.

    Args:
        map: the map of the file.
        rows: the rows.
        state: what was recorded; a new state if that is not known.
        client: the client to list with.
        now: the time; what began before is passed over where the map skips it.
    """

    def __init__(self, map: Map, rows: Rows, state: State, client: FollowUp, now: datetime) -> None:
        self._map = map
        self._rows = rows
        self._state = state
        self._client = _paced(client)
        self._now = now
        self._is_appointments = map.kind == "appointments"
        self._database = temporary_database(_TABLES)
        self._database.row_factory = sqlite3.Row
        self._expected = 0
        self._has_listed_patients = False

    def differences(self) -> Iterator[Difference]:
        """Iterate over the differences."""
        for row in self._rows:
            if row.outcome not in ("ignored", "joined") and not self._expect(row):
                yield Difference(row.external_id, "rejected", f"row {row.number}", None)
        for query in self._queries():
            for page in getattr(self._client, self._map.kind).list(limit=_PAGE, **query).pages():
                yield from self._compare(page.data)
        for each in self._database.execute(_NOT_FOUND):
            if each["absent"] is not None:
                yield Difference(each["external_id"], each["absent"], _here(each), None)

    def _expect(self, row: Row) -> bool:
        """Note what the service should have because of a row; return False if nobody can look for it there."""
        is_skipped = self._map.skips(row.at, self._now)
        if row.external_id is None:
            return is_skipped
        absent: str | None = "missing"
        shares_phone = row.shares_phone and self._map.shared_phones == "reject"
        if row.outcome == "rejected" or shares_phone or row.shares_document or row.shares_number:
            absent = "rejected"
        elif row.status == CANCELLED:
            absent = None
        at = None if row.at is None else milliseconds(row.at.instant)
        found = (row.external_id, row.status, at, absent, row.number, json.dumps(row.patient))
        key = self._state.hash(self._map.kind, row.external_id)
        self._expected += not is_skipped
        add = "INSERT OR IGNORE INTO expected VALUES (?, ?, ?, ?, ?, ?, ?, 0)"
        before = self._database.total_changes  # rowcount is -1 in a Turkish locale before Python 3.13
        self._database.execute(add, (key, *([None] * len(found) if is_skipped else found)))
        return is_skipped or self._database.total_changes > before

    def _queries(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the queries that find all objects in few calls. Each is made when the one before was read."""
        first = last = None
        if self._is_appointments:  # the others list by no time
            first, last = self._database.execute("SELECT min(at), max(at) FROM expected").fetchone()
            if isinstance(self._state, StoredState):
                now = milliseconds(self._now)  # what is unexpected may be anywhere ahead
                first, last = now if first is None else min(first, now), None
        if first is not None:
            yield {"start_at_gte": _time(first), "start_at_lt": _time(last and last + 1)}
        left = self._database.execute(_NOT_FOUND).fetchmany(_LOOKED_UP + 1)
        if len(left) <= _LOOKED_UP:
            yield from ({"external_id": each["external_id"]} for each in left)
        elif first is None:
            yield {}
        else:
            yield {"start_at_lt": _time(first)}
            if last is not None:
                yield {"start_at_gte": _time(last + 1)}

    def _compare(self, objects: Sequence[Any]) -> Iterator[Difference]:
        found = {self._state.hash(self._map.kind, each.external_id): each for each in objects if each.external_id}
        known = self._state.objects([*found])
        for key, each in found.items():
            expected = self._database.execute("SELECT * FROM expected WHERE key = ?", (key,)).fetchone()
            if expected is None:
                if key in known and self._is_ahead(each):
                    yield Difference(each.external_id, "unexpected", None, each.start_at)
                continue
            if expected["is_found"] or expected["external_id"] is None:
                continue
            self._database.execute("UPDATE expected SET is_found = 1 WHERE key = ?", (key,))
            if differing := self._differing(expected, each):
                kind, here, there = differing
                if expected["absent"] == "rejected":
                    yield Difference(each.external_id, "rejected", _here(expected), there)
                else:
                    yield Difference(each.external_id, kind, here, there)

    def _is_ahead(self, found: Any) -> bool:
        is_over = not self._is_appointments or found.status in ("cancelled", "completed")
        return not is_over and bool(found.start_at > self._now)

    def _differing(self, expected: Any, found: Any) -> tuple[Literal["status", "time", "patient"], _Side, _Side] | None:
        """Return the kind of the first difference between an object and what is expected, and both sides."""
        status = expected["status"]
        is_cancelled = self._is_appointments and found.status == CANCELLED
        has_other_status = self._is_appointments and (status == CANCELLED) != is_cancelled
        if status == UNKNOWN or has_other_status:
            return "status", status, found.status
        if status == CANCELLED:
            return None
        if self._map.kind != "patients":
            there = found.start_at if self._is_appointments else found.visited_at
            if milliseconds(there) != expected["at"]:
                return "time", _time(expected["at"]), there
        patient = found.id if self._map.kind == "patients" else found.patient
        if is_another(_person(json.loads(expected["patient"])), self._patient(patient)):
            return "patient", None, patient
        return None

    def _patient(self, id: str) -> Person:
        """Return a patient of the service. For a large file, all are listed at once, which needs fewer calls."""
        if self._expected > _LOOKED_UP and not self._has_listed_patients:
            self._has_listed_patients = True
            for page in self._client.patients.list(limit=_PAGE).pages():
                self._add_patients(page.data)
        query = "SELECT patient FROM patients WHERE id = ?"
        found = self._database.execute(query, (id,)).fetchone()
        if found is None:
            self._add_patients([self._client.patients.retrieve(id)])
            found = self._database.execute(query, (id,)).fetchone()
        return _person(json.loads(found[0]))

    def _add_patients(self, patients: Sequence[Any]) -> None:
        rows = [(each.id, _in_json(each)) for each in patients]
        self._database.executemany("INSERT OR REPLACE INTO patients VALUES (?, ?)", rows)


def _in_json(patient: Any) -> str:
    return json.dumps({name: getattr(patient, name) for name in ("phone", "dni", "external_id", "full_name")})


def _person(patient: Mapping[str, Any]) -> Person:
    name = words_of(patient.get("full_name") or "")
    return Person(patient.get("phone"), patient.get("dni"), patient.get("external_id"), name)


def _here(expected: Any) -> _Side:
    """Return what the file has of an object that is not at the service."""
    return _time(expected["at"]) or (f"row {expected['line']}" if expected["absent"] == "rejected" else None)


def _time(at: int | None) -> datetime | None:
    return None if at is None else datetime_of(at)


def _paced(client: FollowUp) -> FollowUp:
    """Return the client, with the request rate of the service if it has none."""
    if not isinstance(client, FollowUp):
        raise TypeError(f"client must be a FollowUp, not {type(client).__name__}")
    if client._options.governor is not None:
        return client
    paced = client.with_options()
    paced._options = attrs.evolve(paced._options, governor=Governor(REQUESTS_PER_MINUTE))
    return paced
