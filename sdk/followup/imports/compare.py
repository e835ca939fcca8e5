"""Compares the rows of a file with what was recorded before: the difference is events, and doubts."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import attrs

from followup import EventInput, EventSourceInput, inbound
from followup._version import __version__
from followup.imports.doubts import Doubt, column_in, doubt
from followup.imports.maps import Map
from followup.imports.rows import Row, Rows
from followup.imports.spool import Spool
from followup.imports.state import CANCELLED, RECORDED, Known, State, milliseconds
from followup.imports.summary import Summary, Understanding, Understood
from followup.imports.who import are_one, is_certainly, is_recorded_as, share_a_document_wrongly
from followup.outbox.events import checked_event

_IDENTITY = ("phone", "external_id", "dni")

_BEST = ("patient.dni", "patient.external_id", "patient.phone")
"""What a number of a slot or a line is joined with, so that it becomes the number of an appointment."""

_AT_ONCE = 1000
"""Rows that are in memory at once."""


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
        doubts: what was not certain, or wrong, in the order of the rows.
        preview: the first accepted rows, as they were understood.
        summary: the days, hours and patients of the accepted rows.
    """

    rows: int
    rejected: int
    ignored: int
    unchanged: int
    gone: int
    events: Collection[EventInput] = attrs.field(repr=False)
    doubts: Collection[Doubt] = attrs.field(repr=False)
    preview: Sequence[Understood] = attrs.field(repr=False)
    summary: Summary = attrs.field(repr=False)


@attrs.frozen
class _Entry:
    """A row, and what is known of its object once the row is recorded."""

    wanted: Row
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
        ahead: number of appointments that were known, booked and ahead, on the days of the file.
    """

    def __init__(self, map: Map, rows: Rows, state: State, now: datetime) -> None:
        self.spool: Spool = Spool()
        self.ahead: int = 0
        self._count: Counter[str] = Counter()
        self._days: tuple[date, date] | None = None
        self._understanding: Understanding = Understanding(self._is_new_patient)
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
        for name in self._rows.table.unread:
            self.spool.add_doubts([doubt("sheet_unread", value=name)])
        if self._map.kind == "appointments" and self._days:
            self._find_gone(*self._days)
        numbers = {name: self._count[name] for name in ("rows", "rejected", "ignored", "unchanged", "gone")}
        summary = self._understanding.summary(ignored=self._count["ignored"], hidden=self._rows.table.hidden)
        preview = self._understanding.first
        return Report(**numbers, events=self.spool.events, doubts=self.spool.doubts, preview=preview, summary=summary)

    def _compare(self, rows: Sequence[Row]) -> None:
        self._count["rows"] += len(rows)
        kind = self._map.kind
        keys = [self._state.hash(kind, each.external_id) if each.external_id else None for each in rows]
        pairs = [*zip(rows, keys, strict=True)]
        entries = [self._entry(row, key) if row.outcome == "wanted" and key else None for row, key in pairs]
        new = [each.new for each in entries if each]
        known = self._state.objects([each.key for each in new])
        changed = [each.new for each in entries if each and _may_meet_others(each, known.get(each.new.key))]
        phones, documents = (self._owners(name, changed) for name in ("phone", "dni"))
        for (row, key), entry in zip(pairs, entries, strict=True):
            if row.at is not None:
                self._widen(row.at.local.date())
            if row.outcome in ("ignored", "joined"):
                self._count[row.outcome] += 1
                continue
            if key:
                self.spool.add_key(key)
            if entry is None:
                self._reject(row.doubts)
                continue
            if row.doubts:
                self.spool.add_doubts(row.doubts)
            others = [*phones[entry.new.phone], *documents[entry.new.dni]]
            self._decide(entry, known.get(entry.new.key), others)

    def _owners(self, name: str, new: Sequence[Known]) -> Mapping[bytes | None, list[Known]]:
        """Return who was recorded with the phones, or with the documents, of the rows."""
        found: defaultdict[bytes | None, list[Known]] = defaultdict(list)
        hashes = {value for each in new if (value := getattr(each, name)) is not None}
        for owner in self._state.with_any(name, hashes) if hashes else ():
            found[getattr(owner, name)].append(owner)
        return found

    def _widen(self, day: date) -> None:
        first, last = self._days or (day, day)
        self._days = min(first, day), max(last, day)

    def _is_new_patient(self, patient: Mapping[str, Any]) -> bool:
        best = next((patient[name] for name in ("external_id", "dni", "phone") if name in patient), "")
        return self.spool.add_key(self._state.hash("counted", best))

    def _entry(self, wanted: Row, key: bytes) -> _Entry:
        patient = wanted.patient
        identity = {name: self._state.hash(name, patient[name]) if name in patient else None for name in _IDENTITY}
        others = {name: value for name, value in patient.items() if name != "phone"}
        hashed = self._state.hash("patient", *map("=".join, sorted(others.items()))) if patient else None
        name = self._state.name_hash(patient["full_name"]) if "full_name" in patient else None
        status, at, number = RECORDED, None, None
        if self._map.kind == "appointments":
            status, at = wanted.status, None if wanted.at is None else milliseconds(wanted.at.instant)
            number = self._state.masked(key, str(wanted.external_id).encode())
        new = Known(key=key, name=name, patient=hashed, status=status, at=at, number=number, **identity)
        return _Entry(wanted, new)

    def _decide(self, entry: _Entry, known: Known | None, owners: Collection[Known]) -> None:
        """Decide what a row means for its object: events, a doubt, or nothing."""
        wanted = entry.wanted
        if problem := self._problem(entry, known, owners):
            self._reject([self._doubt(*problem)])
            return
        if known is None and self._map.skips(wanted.at, self._now):
            if wanted.status == CANCELLED:
                self._count["unchanged"] += 1
            else:
                self.spool.add_doubts([self._doubt("in_the_past", wanted, "start_at")])
            return
        self._understanding.add(wanted)
        if wanted.status == CANCELLED:
            if known is None or known.status == CANCELLED:
                self._count["unchanged"] += 1
            else:
                event = self._cancelled(str(wanted.external_id), wanted.data["reason"])
                self._record(attrs.evolve(known, status=CANCELLED), event)
        elif known is None:
            self._record(entry.new, self._first_event(wanted))
        else:
            self._update(entry, known)

    def _problem(
        self, entry: _Entry, known: Known | None, owners: Collection[Known]
    ) -> tuple[str, Row, str, str] | None:
        """Return the code, row, field and detail of a doubt that rejects a row because of what was recorded."""
        wanted, new = entry.wanted, entry.new
        if wanted.status == CANCELLED:
            return None
        if known is not None and known.status == CANCELLED:
            return "booked_again", wanted, "external_id", ""
        if known is not None and known.patient is not None:
            verdict = is_recorded_as(new.person, known.person)
            if verdict == "patient_changed":
                return verdict, wanted, self._map.id_field, self._template()
            if verdict == "document_shared":
                return verdict, wanted, "patient.dni", ""
        if known is None and self._map.skips(wanted.at, self._now):
            return None
        dni = wanted.patient.get("dni")
        is_shared = dni is not None and self._rows.has_shared_document(dni)
        if is_shared or any(share_a_document_wrongly(new.person, each.person) for each in owners):
            return "document_shared", wanted, "patient.dni", ""
        if self._meets_others(entry, known, [each for each in owners if each.phone == new.phone]):
            return "phone_shared", wanted, "patient.phone", ""
        return None

    def _template(self) -> str:
        """Return a template of the id and what identifies the patient, with the headers of the file."""
        columns = self._map.columns
        best = next((each for each in _BEST if each in columns and columns[each].headers), None)
        headers = [*columns[self._map.id_field].headers, *(columns[best].headers[:1] if best else ())]
        return "-".join(f"{{{each}}}" for each in headers)

    def _meets_others(self, entry: _Entry, known: Known | None, owners: Collection[Known]) -> bool:
        """Return whether another patient has the phone of a row whose patient was never recorded with it."""
        if not _may_meet_others(entry, known) or self._map.shared_phones == "send":
            return False
        new = entry.new.person
        if new.phone is None or any(is_certainly(new, each.person) for each in owners):
            return False
        is_shared = self._rows.is_shared(entry.wanted.patient["phone"])
        return is_shared or not all(are_one(new, each.person) for each in owners)

    def _update(self, entry: _Entry, known: Known) -> None:
        """Record what changed of a known object: its patient first, then its start."""
        wanted = entry.wanted
        new, events = self._update_patient(entry, known)
        if wanted.at is not None and entry.new.at != known.at:
            new = attrs.evolve(new, at=entry.new.at)
            identity: Any = {"external_id": wanted.external_id, "source": self._source}
            events.append(inbound.appointment_rescheduled(start_at=wanted.at.instant, **identity))
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
        new = attrs.evolve(known, patient=now.patient, phone=known.phone or now.phone, name=now.name or known.name)
        external_id, dni = now.external_id or known.external_id, now.dni or known.dni
        return attrs.evolve(new, external_id=external_id, dni=dni), events

    def _first_event(self, wanted: Row) -> EventInput:
        """Return the event of an object that was not known."""
        if self._map.kind == "patients":
            return inbound.patient_upserted(patient=wanted.data["patient"], source=self._source)
        build: Any = inbound.appointment_created if self._map.kind == "appointments" else inbound.visit_completed
        time = {self._map.time_field: wanted.at and wanted.at.instant}
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

    def _find_gone(self, first: date, last: date) -> None:
        """Find the known appointments that are ahead, on the days of the file, and not in it."""
        cancels = self._map.missing == "cancel"
        detail = "it was cancelled" if cancels else 'nothing was sent. missing = "cancel" in the map cancels it'
        start, end = (self._midnight(day) for day in (first, min(last, date.max - timedelta(1)) + timedelta(1)))
        for known in self._state.ahead(self._now, start, end):
            self.ahead += 1
            if self.spool.has_key(known.key):
                continue
            self._count["gone"] += 1
            external_id = self._state.masked(known.key, known.number or b"").decode()
            self.spool.add_doubts([doubt("gone", value=external_id, detail=detail)])
            if cancels:
                self._record(attrs.evolve(known, status=CANCELLED), self._cancelled(external_id))

    def _midnight(self, day: date) -> int:
        return milliseconds(datetime.combine(day, time(), self._map.zone))

    def _doubt(self, code: str, wanted: Row, field: str, detail: str = "") -> Doubt:
        column = column_in(wanted.sheet, self._map.column_of(field))
        return doubt(code, wanted.number, column, wanted.written.get(field), detail=detail)

    def _reject(self, doubts: Iterable[Doubt]) -> None:
        self._count["rejected"] += 1
        self.spool.add_doubts(doubts)


def _may_meet_others(entry: _Entry, known: Known | None) -> bool:
    """Return whether a row could make one patient of two: it is not only what was recorded already."""
    new = entry.new
    if new.status == CANCELLED or (new.phone is None and new.dni is None):
        return False
    if known is None:
        return True
    return known.patient is not None and (new.patient, new.phone) != (known.patient, known.phone)
