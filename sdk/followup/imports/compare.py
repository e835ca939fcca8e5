"""Compares the rows of a file with what was recorded before: the difference is events, and doubts."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import attrs

from followup import EventInput, EventSourceInput, inbound
from followup._version import __version__
from followup.imports.doubts import Doubt, doubt
from followup.imports.maps import Map
from followup.imports.rows import Ignored, Row, Rows, Wanted
from followup.imports.spool import Spool
from followup.imports.state import BOOKED, CANCELLED, RECORDED, Change, Known, Person, State, milliseconds
from followup.outbox.events import checked_event

_IDENTITY = ("phone", "external_id", "dni")

_AT_ONCE = 1000
"""Rows that are in memory at once."""


@attrs.frozen(kw_only=True)
class Report:
    """What an import recorded, or would record. ``repr`` shows no personal data.

    Attributes:
        rows: number of rows, without the header and empty ones.
        rejected: number of rows that were rejected; nothing was recorded of them.
        unchanged: number of rows about which there is nothing to tell the service.
        gone: number of appointments that are known and still ahead, but not in this file.
        events: the events, in order. They are read from a temporary file each time.
        doubts: what was not certain, or wrong, in the order of the rows.
    """

    rows: int
    rejected: int
    unchanged: int
    gone: int
    events: Collection[EventInput] = attrs.field(repr=False)
    doubts: Collection[Doubt] = attrs.field(repr=False)


@attrs.frozen
class _Entry:
    """A row with the hashes by which it is compared."""

    wanted: Wanted
    key: bytes
    person: Person
    patient: bytes | None


class Comparison:
    """Compares a file with a state, into a spool.

    Args:
        map: the map of the file.
        rows: the rows.
        state: what was recorded before.
        now: the time; what began before is in the past.

    Attributes:
        spool: events, changes of the state and doubts.
        ahead: number of appointments that were known, booked and ahead.
        count: numbers of rows.
    """

    def __init__(self, map: Map, rows: Rows, state: State, now: datetime) -> None:
        self.spool = Spool()
        self.ahead = 0
        self._gone = 0
        self._count: Counter[str] = Counter()
        self._map = map
        self._rows = rows
        self._state = state
        self._now = now
        self._source: EventSourceInput = {"system": f"import {map.name}", "version": __version__}

    def report(self) -> Report:
        """Compare all rows, and return what was found."""
        rows = iter(self._rows)
        while batch := list(itertools.islice(rows, _AT_ONCE)):
            self._compare(batch)
        if self._map.kind == "appointments":
            self._find_gone()
        numbers = {name: self._count[name] for name in ("rows", "rejected", "unchanged")}
        return Report(**numbers, gone=self._gone, events=self.spool.events, doubts=self.spool.doubts)

    def _compare(self, rows: Sequence[Row]) -> None:
        entries: list[_Entry] = []
        self._count["rows"] += len(rows)
        for row in rows:
            key = None if row.external_id is None else self._state.hash(self._map.kind, row.external_id)
            if key is not None:
                self.spool.add_key(key)
            if isinstance(row, Wanted) and key is not None:
                self.spool.add_doubts(row.doubts)
                entries.append(self._entry(row, key))
            elif not isinstance(row, Ignored):
                self._reject(row.doubts)
        known = self._state.objects([each.key for each in entries])
        phones = {each.person.phone or b"" for each in entries if _may_meet_others(each, known.get(each.key))}
        owners: defaultdict[bytes | None, list[Person]] = defaultdict(list)
        for person in self._state.people(phones) if phones else ():
            owners[person.phone].append(person)
        for entry in entries:
            self._decide(entry, known.get(entry.key), owners[entry.person.phone])

    def _entry(self, wanted: Wanted, key: bytes) -> _Entry:
        if wanted.patient is None:
            return _Entry(wanted, key, Person(), None)
        identity = {
            name: self._state.hash(name, wanted.patient[name]) if wanted.patient.get(name) else None
            for name in _IDENTITY
        }
        others = {name: value for name, value in wanted.patient.items() if name != "phone"}
        text = json.dumps(others, sort_keys=True, default=str)
        return _Entry(wanted, key, Person(**identity), self._state.hash("patient", text))

    def _decide(self, entry: _Entry, known: Known | None, owners: Iterable[Person]) -> None:
        """Decide what a row means for its object: events, a doubt, or nothing."""
        wanted = entry.wanted
        is_appointment = self._map.kind == "appointments"
        if wanted.status == CANCELLED:
            if known is None or known.status == CANCELLED:
                self._count["unchanged"] += 1
            else:
                self._record(entry, attrs.evolve(known, status=CANCELLED), self._cancelled(wanted.external_id, wanted))
        elif known is not None and known.status == CANCELLED:
            self._reject([self._doubt("booked_again", wanted, "external_id")])
        elif is_appointment and known is None and self._map.past == "skip" and self._is_past(wanted):
            self.spool.add_doubts([self._doubt("in_the_past", wanted, "start_at")])
        elif self._meets_others(entry, known, owners):
            self._reject([self._doubt("phone_shared", wanted, "patient.phone")])
        elif known is None:
            at = None if wanted.at is None or not is_appointment else milliseconds(wanted.at)
            status = BOOKED if is_appointment else RECORDED
            self._record(entry, Known(status, at, entry.patient, entry.person), self._first_event(wanted))
        else:
            self._update(entry, known)

    def _is_past(self, wanted: Wanted) -> bool:
        return wanted.at is not None and wanted.at < self._now

    def _meets_others(self, entry: _Entry, known: Known | None, owners: Iterable[Person]) -> bool:
        """Return whether another patient has the phone of a row whose patient was never recorded with it."""
        if not _may_meet_others(entry, known) or self._map.shared_phones == "send":
            return False
        person = entry.person
        if any(each == person or each.is_same_as(person) for each in owners):
            return False
        assert entry.wanted.patient is not None
        return self._rows.is_shared(entry.wanted.patient["phone"]) or any(map(person.differs_from, owners))

    def _update(self, entry: _Entry, known: Known) -> None:
        """Record what changed of a known object: its patient first, then its start."""
        wanted = entry.wanted
        new, events = self._update_patient(entry, known)
        if wanted.at is not None and known.status == BOOKED and milliseconds(wanted.at) != known.at:
            new = attrs.evolve(new, at=milliseconds(wanted.at))
            identity: Any = {"external_id": wanted.external_id, "source": self._source}
            events.append(inbound.appointment_rescheduled(start_at=wanted.at, **identity))
        if new == known:
            self._count["unchanged"] += 1
        else:
            self._record(entry, new, *events)

    def _update_patient(self, entry: _Entry, known: Known) -> tuple[Known, list[EventInput]]:
        """Return the state with the present patient, and the event, unless this run has it for another row."""
        before, now = known.person, entry.person
        patient: Any = dict(entry.wanted.patient or {})
        if before.phone and now.phone and before.phone != now.phone:
            self.spool.add_doubts([self._doubt("phone_changed", entry.wanted, "patient.phone")])
            del patient["phone"]  # the service would look for a patient who has it
        is_new = entry.patient != known.patient or (before.phone is None and now.phone is not None)
        if not is_new or patient.keys().isdisjoint(_IDENTITY):
            return known, []
        new = attrs.evolve(known, patient=entry.patient, person=attrs.evolve(now, phone=before.phone or now.phone))
        is_first = self.spool.add_key(self._state.hash("sent", (now.key or b"").hex()))
        return new, [inbound.patient_upserted(patient=patient, source=self._source)] if is_first else []

    def _first_event(self, wanted: Wanted) -> EventInput:
        """Return the event of an object that was not known."""
        at: Any = wanted.at  # patients alone have none
        common: dict[str, Any] = {"patient": wanted.patient, "source": self._source}
        if self._map.kind == "patients":
            return inbound.patient_upserted(**common)
        common |= {"external_id": wanted.external_id, "type": wanted.type, "doctor": wanted.doctor}
        if self._map.kind == "appointments":
            return inbound.appointment_created(start_at=at, **common)
        return inbound.visit_completed(visited_at=at, diagnosis=wanted.diagnosis, notes=wanted.notes, **common)

    def _cancelled(self, external_id: str, wanted: Wanted | None = None) -> EventInput:
        reason = None if wanted is None else wanted.reason
        return inbound.appointment_cancelled(external_id=external_id, reason=reason, source=self._source)

    def _record(self, entry: _Entry, known: Known, *events: EventInput) -> None:
        number = None
        if self._map.kind == "appointments":
            number = self._state.masked(entry.key, entry.wanted.external_id.encode())
        self._add(Change(entry.key, known, number), *events)

    def _add(self, change: Change, *events: EventInput) -> None:
        """Add events with ids that the same run has again if it is repeated, and no other run."""
        for event in events:
            content = json.dumps(event["data"], sort_keys=True)
            event["id"] = self._state.hash(str(self._state.runs), change.key.hex(), event["type"], content).hex()
            self.spool.add_event(checked_event(event, None, self._now))
        self.spool.add_change(change)

    def _find_gone(self) -> None:
        cancels = self._map.missing == "cancel"
        detail = "it was cancelled" if cancels else 'nothing was sent. missing = "cancel" in the map cancels it'
        for key, known, number in self._state.ahead(self._now):
            self.ahead += 1
            if self.spool.has_key(key):
                continue
            self._gone += 1
            external_id = self._state.masked(key, number).decode()
            self.spool.add_doubts([doubt("gone", value=external_id, detail=detail)])
            if cancels:
                change = Change(key, attrs.evolve(known, status=CANCELLED), number)
                self._add(change, self._cancelled(external_id))

    def _doubt(self, code: str, wanted: Wanted, field: str) -> Doubt:
        return doubt(code, wanted.row, self._map.column_of(field), wanted.written.get(field))

    def _reject(self, doubts: Iterable[Doubt]) -> None:
        self._count["rejected"] += 1
        self.spool.add_doubts(doubts)


def _may_meet_others(entry: _Entry, known: Known | None) -> bool:
    """Return whether a row could make one patient of two: it is not only what was recorded already."""
    if entry.wanted.status == CANCELLED or entry.person.phone is None:
        return False
    return known is None or (entry.patient, entry.person.phone) != (known.patient, known.person.phone)
