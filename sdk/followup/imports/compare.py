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
from followup.imports.state import CANCELLED, RECORDED, Known, State, milliseconds
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
    """A row, and what is known of its object once the row is recorded."""

    wanted: Wanted
    new: Known


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
    """

    def __init__(self, map: Map, rows: Rows, state: State, now: datetime) -> None:
        self.spool: Spool = Spool()
        self.ahead: int = 0
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
        numbers = {name: self._count[name] for name in ("rows", "rejected", "unchanged", "gone")}
        return Report(**numbers, events=self.spool.events, doubts=self.spool.doubts)

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
        known = self._state.objects([each.new.key for each in entries])
        phones = {each.new.phone or b"" for each in entries if _may_meet_others(each, known.get(each.new.key))}
        owners: defaultdict[bytes | None, list[Known]] = defaultdict(list)
        for owner in self._state.with_phones(phones) if phones else ():
            owners[owner.phone].append(owner)
        for entry in entries:
            self._decide(entry, known.get(entry.new.key), owners[entry.new.phone])

    def _entry(self, wanted: Wanted, key: bytes) -> _Entry:
        patient = wanted.patient
        identity = {name: self._state.hash(name, patient[name]) if name in patient else None for name in _IDENTITY}
        others = {name: value for name, value in patient.items() if name != "phone"}
        hashed = self._state.hash("patient", json.dumps(others, sort_keys=True)) if patient else None
        status, at, number = RECORDED, None, None
        if self._map.kind == "appointments":
            status, at = wanted.status, None if wanted.at is None else milliseconds(wanted.at)
            number = self._state.masked(key, wanted.external_id.encode())
        return _Entry(wanted, Known(key=key, patient=hashed, status=status, at=at, number=number, **identity))

    def _decide(self, entry: _Entry, known: Known | None, owners: Collection[Known]) -> None:
        """Decide what a row means for its object: events, a doubt, or nothing."""
        wanted = entry.wanted
        if wanted.status == CANCELLED:
            if known is None or known.status == CANCELLED:
                self._count["unchanged"] += 1
            else:
                event = self._cancelled(wanted.external_id, wanted.data["reason"])
                self._record(attrs.evolve(known, status=CANCELLED), event)
        elif known is not None and known.status == CANCELLED:
            self._reject([self._doubt("booked_again", wanted, "external_id")])
        elif known is None and self._map.skips(wanted.at, self._now):
            self.spool.add_doubts([self._doubt("in_the_past", wanted, "start_at")])
        elif self._meets_others(entry, known, owners):
            self._reject([self._doubt("phone_shared", wanted, "patient.phone")])
        elif known is None:
            self._record(entry.new, self._first_event(wanted))
        else:
            self._update(entry, known)

    def _meets_others(self, entry: _Entry, known: Known | None, owners: Collection[Known]) -> bool:
        """Return whether another patient has the phone of a row whose patient was never recorded with it."""
        if not _may_meet_others(entry, known) or self._map.shared_phones == "send":
            return False
        new = entry.new
        if any(new.has_patient_of(each) for each in owners):
            return False
        return self._rows.is_shared(entry.wanted.patient["phone"]) or any(map(new.has_other_patient_than, owners))

    def _update(self, entry: _Entry, known: Known) -> None:
        """Record what changed of a known object: its patient first, then its start."""
        wanted = entry.wanted
        new, events = self._update_patient(entry, known)
        if wanted.at is not None and entry.new.at != known.at:
            new = attrs.evolve(new, at=entry.new.at)
            identity: Any = {"external_id": wanted.external_id, "source": self._source}
            events.append(inbound.appointment_rescheduled(start_at=wanted.at, **identity))
        if new == known:
            self._count["unchanged"] += 1
        else:
            self._record(new, *events)

    def _update_patient(self, entry: _Entry, known: Known) -> tuple[Known, list[EventInput]]:
        """Return the state with the present patient, and the event, unless this run has it for another row."""
        now = entry.new
        if known.patient is None:
            return known, []  # the patient was erased
        patient: Any = dict(entry.wanted.patient)
        if known.phone and now.phone and known.phone != now.phone:
            self.spool.add_doubts([self._doubt("phone_changed", entry.wanted, "patient.phone")])
            del patient["phone"]  # the service would look for a patient who has it
        is_new = now.patient != known.patient or (known.phone is None and now.phone is not None)
        if not is_new or patient.keys().isdisjoint(_IDENTITY):
            return known, []
        best = now.external_id or now.dni or now.phone or b""
        is_first = self.spool.add_key(self._state.hash("sent", best.hex()))
        events = [inbound.patient_upserted(patient=patient, source=self._source)] if is_first else []
        new = attrs.evolve(known, patient=now.patient, phone=known.phone or now.phone)
        external_id, dni = now.external_id or known.external_id, now.dni or known.dni
        return attrs.evolve(new, external_id=external_id, dni=dni), events

    def _first_event(self, wanted: Wanted) -> EventInput:
        """Return the event of an object that was not known."""
        if self._map.kind == "patients":
            return inbound.patient_upserted(patient=wanted.data["patient"], source=self._source)
        build: Any = inbound.appointment_created if self._map.kind == "appointments" else inbound.visit_completed
        time = {self._map.time_field: wanted.at}
        event: EventInput = build(**time, external_id=wanted.external_id, source=self._source, **wanted.data)
        return event

    def _cancelled(self, external_id: str, reason: str | None = None) -> EventInput:
        return inbound.appointment_cancelled(external_id=external_id, reason=reason, source=self._source)

    def _record(self, known: Known, *events: EventInput) -> None:
        """Record events with ids that the same run has again if it is repeated, and no other run."""
        for event in events:
            content = json.dumps(event["data"], sort_keys=True)
            event["id"] = self._state.hash(str(self._state.runs), known.key.hex(), event["type"], content).hex()
            self.spool.add_event(checked_event(event, None, self._now))
        self.spool.add_change(known)

    def _find_gone(self) -> None:
        cancels = self._map.missing == "cancel"
        detail = "it was cancelled" if cancels else 'nothing was sent. missing = "cancel" in the map cancels it'
        for known in self._state.ahead(self._now):
            self.ahead += 1
            if self.spool.has_key(known.key):
                continue
            self._count["gone"] += 1
            external_id = self._state.masked(known.key, known.number or b"").decode()
            self.spool.add_doubts([doubt("gone", value=external_id, detail=detail)])
            if cancels:
                self._record(attrs.evolve(known, status=CANCELLED), self._cancelled(external_id))

    def _doubt(self, code: str, wanted: Wanted, field: str) -> Doubt:
        return doubt(code, wanted.row, self._map.column_of(field), wanted.written.get(field))

    def _reject(self, doubts: Iterable[Doubt]) -> None:
        self._count["rejected"] += 1
        self.spool.add_doubts(doubts)


def _may_meet_others(entry: _Entry, known: Known | None) -> bool:
    """Return whether a row could make one patient of two: it is not only what was recorded already."""
    new = entry.new
    if new.status == CANCELLED or new.phone is None:
        return False
    if known is None:
        return True
    return known.patient is not None and (new.patient, new.phone) != (known.patient, known.phone)
