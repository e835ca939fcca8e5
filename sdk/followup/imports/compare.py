"""Compares the rows of a file with what was recorded before: the difference is events, and doubts."""

import functools
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from followup import DoctorInput, PatientInput
from followup._core.api_rules import EventType
from followup._core.codec.kinds import camel
from followup._core.codec.wire import format_exactly, format_timestamp
from followup._version import __version__
from followup.imports.maps import Map
from followup.imports.report import Doubt, Report, Spool, Summary, Understood, doubt
from followup.imports.row_reader import Row
from followup.imports.rows import Rows
from followup.imports.state import CANCELLED, RECORDED, Known, State, milliseconds
from followup.imports.values import At
from followup.imports.who import is_recorded_as, share_a_document_wrongly, share_a_phone_wrongly
from followup.outbox.events import recorded

_BEST = ("patient.dni", "patient.external_id", "patient.phone")
"""What a number of a slot or a line is joined with, so that it becomes the number of an appointment."""

_AT_ONCE = 100
"""Rows that are in memory at once. Of more, Python's search for cyclic garbage would take long."""

_IN_WIRE: Final = {each: camel(each) for each in (*PatientInput.__annotations__, *DoctorInput.__annotations__)}
_CREATED: Final[Mapping[str, tuple[EventType, str]]] = {
    "appointments": ("appointment.created", "appointment"),
    "visits": ("visit.completed", "visit"),
}
"""The type of the first event of an object, and the key of the object in its data (specification, section 6.1)."""

_SHOWN = 3
_AFTER_MIDNIGHT, _EARLY, _LATE = time(0, 1), time(6), time(22)
_SUNDAY: Final = 7

_in_json = json.JSONEncoder(separators=(",", ":")).encode


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
        self._types: Counter[str] = Counter()
        self._span: tuple[date, date] | None = None
        self._first: list[Understood] = []
        self._days: Counter[date] = Counter()
        self._clocks: Counter[time] = Counter()
        self._map = map
        self._rows = rows
        self._state = state
        self._now = now
        source = {"system": f"import {map.name}", "version": __version__}
        self._envelope = _in_json({"occurredAt": format_timestamp(now), "source": source})[1:]

    def report(self) -> Report:
        """Compare all rows, and return what was found."""
        rows = iter(self._rows)
        while batch := list(itertools.islice(rows, _AT_ONCE)):
            self._compare(batch)
        for name in self._rows.table.unread:
            self._add_doubts([doubt("sheet_unread", value=name)])
        if self._map.kind == "appointments" and self._span:
            self._find_gone(*self._span)
        return Report(
            **{name: self._count[name] for name in ("rows", "rejected", "ignored", "unchanged", "gone")},
            events=self.spool.events,
            types=self._types,
            doubts=self.spool.doubts,
            preview=self._first,
            summary=self._summary(),
        )

    def _compare(self, rows: Sequence[Row]) -> None:
        self._count["rows"] += len(rows)
        # Of ignored and rejected rows, too: the file says of these days which appointments there are.
        days = [row.at.local for row in rows if row.at is not None]
        if days:
            first, last = self._span or (date.max, date.min)
            self._span = min(first, min(days).date()), max(last, max(days).date())
        wanted = [self._wanted(row) for row in rows]
        known = self._state.objects([new.key for new in wanted if new])
        changed = [new for new in wanted if new and _may_meet_others(new, known.get(new.key))]
        phones, documents = (self._owners(name, changed) for name in ("phone", "dni"))
        for row, new in zip(rows, wanted, strict=True):
            if row.outcome in ("ignored", "joined"):
                self._count[row.outcome] += 1
            elif new is None:
                self._reject(row.doubts)
            else:
                if row.doubts:
                    self._add_doubts(row.doubts)
                self._decide(row, new, known.get(new.key), [*phones.get(new.phone, ()), *documents.get(new.dni, ())])

    def _owners(self, name: str, new: Sequence[Known]) -> Mapping[bytes | None, list[Known]]:
        """Return who was recorded with the phones, or with the documents, of the rows."""
        found: defaultdict[bytes | None, list[Known]] = defaultdict(list)
        hashes = {value for each in new if (value := getattr(each, name)) is not None}
        for owner in self._state.with_any(name, hashes) if hashes else ():
            found[getattr(owner, name)].append(owner)
        return found

    def _wanted(self, row: Row) -> Known | None:
        """Return what is known of the object of a row once it is recorded; None if the row is not accepted."""
        if row.external_id is None or row.outcome != "wanted":
            return None
        state, patient = self._state, row.patient
        key = state.hash(self._map.kind, row.external_id)
        phone, external_id, dni = (
            state.hash(name, patient[name]) if name in patient else None for name in ("phone", "external_id", "dni")
        )
        # Without the phone, because no event changes it.
        others = [f"{name}={patient[name]}" for name in sorted(patient) if name != "phone"]
        hashed = state.hash("patient", *others) if patient else None
        name = state.name_hash(patient["full_name"]) if "full_name" in patient else None
        status, at, number = RECORDED, None, None
        if self._map.kind == "appointments":
            status, at = row.status, None if row.at is None else milliseconds(row.at.instant)
            number = state.masked(key, row.external_id.encode())
        return Known(key, phone, external_id, dni, name, hashed, status, at, number)

    def _decide(self, row: Row, new: Known, known: Known | None, owners: Collection[Known]) -> None:
        """Decide what a row means for its object: events, a doubt, or nothing."""
        # Before all else, because what is known stays as it is until the row is resolved.
        if problem := self._problem(row, new, known, owners):
            self._reject([self._doubt(row, *problem)])
            return
        if known is None and self._map.skips(row.at, self._now):
            if row.status == CANCELLED:
                self._count["unchanged"] += 1
            else:
                self._add_doubts([self._doubt(row, "in_the_past", "start_at")])
            return
        self._understand(row)
        if row.patient:
            best = new.external_id or new.dni or new.phone
            self.spool.add("patients", (best, new.phone is None, new.dni is None))
        if row.status == CANCELLED:
            if known is None or known.status == CANCELLED:
                self._count["unchanged"] += 1
            else:
                self._cancel(known, str(row.external_id), row.data["reason"])
        elif known is None:
            self._record(new, self._first_event(row))
        else:
            self._update(row, new, known)

    def _understand(self, row: Row) -> None:
        """Count an accepted row, and note how the first were understood."""
        local = row.at.local if row.at else None
        if len(self._first) < _SHOWN:
            name = row.patient.get("full_name") or row.written.get("patient.full_name", "")
            self._first.append(Understood(row.number, name, local, row.patient.get("phone", ""), row.status))
        if local is not None:
            self._days[local.date()] += 1
            self._clocks[local.time()] += 1

    def _summary(self) -> Summary:
        days, clocks = self._days, self._clocks
        patients, without_phone, without_document = self.spool.patients()
        return Summary(
            first=min(days, default=None),
            last=max(days, default=None),
            first_time=min(clocks, default=None),
            last_time=max(clocks, default=None),
            midnight=sum(count for each, count in clocks.items() if each < _AFTER_MIDNIGHT),
            before6=sum(count for each, count in clocks.items() if each < _EARLY),
            after22=sum(count for each, count in clocks.items() if each >= _LATE),
            sundays=sum(count for each, count in days.items() if each.isoweekday() == _SUNDAY),
            patients=patients,
            without_phone=without_phone,
            without_document=without_document,
            ignored=self._count["ignored"],
            hidden_rows=self._rows.table.hidden,
        )

    def _problem(self, row: Row, new: Known, known: Known | None, owners: Collection[Known]) -> tuple[str, str] | None:
        """Return the code and the field of a doubt that rejects a row because of what was recorded."""
        if row.status == CANCELLED:
            return None
        if known is not None and known.status == CANCELLED:
            return "booked_again", "external_id"
        if known is not None and known.patient is not None and new.identity != known.identity:
            verdict = is_recorded_as(new.person, known.person)
            if verdict != "same":
                return verdict, self._map.id_field if verdict == "patient_changed" else "patient.dni"
        if _is_settled(new, known) or (known is None and self._map.skips(row.at, self._now)):
            return None
        if row.shares_number:
            return "document_shared", "patient.external_id"
        if row.shares_document or any(share_a_document_wrongly(new.person, each.person) for each in owners):
            return "document_shared", "patient.dni"
        if new.phone is not None and self._map.shared_phones == "reject":
            people = [each.person for each in owners if each.phone == new.phone]
            if (people or row.shares_phone) and share_a_phone_wrongly(new.person, people, is_shared=row.shares_phone):
                return "phone_shared", "patient.phone"
        return None

    def _template(self) -> str:
        """Return a template of the id and what identifies the patient, with the headers of the file."""
        columns = self._map.columns
        best = next((each for each in _BEST if each in columns and columns[each].headers), None)
        headers = [*columns[self._map.id_field].headers, *(columns[best].headers[:1] if best else ())]
        return "-".join(f"{{{each}}}" for each in headers)

    def _update(self, row: Row, new: Known, known: Known) -> None:
        """Record what changed of a known object: its patient first, then its start."""
        changed, events = self._update_patient(row, new, known)
        if row.at is not None and new.at != known.at:
            changed = changed._replace(at=new.at)
            appointment = {"externalId": row.external_id, "startAt": _start_of(row.at)}
            events.append(("appointment.rescheduled", {"appointment": appointment}))
        if changed == known:
            self._count["unchanged"] += 1
        else:
            self._record(changed, *events)

    def _update_patient(self, row: Row, now: Known, known: Known) -> tuple[Known, list["_Event"]]:
        """Return the state with the present patient, and the event, unless this run has it for another row."""
        if known.patient is None:
            return known, []  # the patient was erased
        patient = _in_wire(row.patient)
        if known.phone and now.phone and known.phone != now.phone:
            self._add_doubts([self._doubt(row, "phone_changed", "patient.phone")])
            del patient["phone"]  # the service would look for a patient who has it
        is_new = now.patient != known.patient or (known.phone is None and now.phone is not None)
        if not is_new or patient.keys().isdisjoint(("phone", "externalId", "dni")):
            return known, []
        is_first = self.spool.add_sent(now.external_id or now.dni or now.phone or b"")
        changed = known._replace(
            patient=now.patient,
            phone=known.phone or now.phone,
            name=now.name or known.name,
            external_id=now.external_id or known.external_id,
            dni=now.dni or known.dni,
        )
        return changed, [("patient.upserted", {"patient": patient})] if is_first else []

    def _first_event(self, row: Row) -> "_Event":
        """Return the event of an object that was not known."""
        data: dict[str, Any] = {"patient": _in_wire(row.patient)}
        if self._map.kind == "patients":
            return "patient.upserted", data
        event_type, key = _CREATED[self._map.kind]
        found = {name: value for name, value in row.data.items() if name != "patient" and value is not None}
        if "doctor" in found:
            found["doctor"] = _in_wire(found["doctor"])
        time = {camel(self._map.time_field): _start_of(row.at)} if row.at else {}
        return event_type, {**data, key: {"externalId": row.external_id, **time, **found}}

    def _cancel(self, known: Known, external_id: str, reason: str | None = None) -> None:
        reasons = {} if reason is None else {"reason": reason}
        data = {"appointment": {"externalId": external_id, **reasons}}
        self._record(known._replace(status=CANCELLED), ("appointment.cancelled", data))

    def _record(self, known: Known, *events: "_Event") -> None:
        """Record events with ids that the same run has again if it is repeated, and no other run."""
        for event_type, data in events:
            content = _in_json(data)
            # With the number of the run, because the same change in a later run is another event.
            event_id = self._state.hash(str(self._state.runs), known.key.hex(), event_type, content).hex()
            text = f'{{"id":"{event_id}","type":"{event_type}","data":{content},{self._envelope}'
            event = recorded(event_id, data, text)
            self.spool.add("events", (event.id, event.subject, event.text))
            self._types[event_type] += 1
        self.spool.add_change(known)

    def _find_gone(self, first: date, last: date) -> None:
        """Find the known appointments that are ahead, on the days of the file, and not in it."""
        cancels = self._map.missing == "cancel"
        detail = "it was cancelled" if cancels else 'nothing was sent. missing = "cancel" in the map cancels it'
        # The day after the last one that Python knows cannot be expressed.
        start, end = (self._midnight(day) for day in (first, min(last, date.max - timedelta(1)) + timedelta(1)))
        for known in self._state.ahead(self._now, start, end):
            self.ahead += 1
            external_id = self._state.masked(known.key, known.number or b"").decode()
            if self._rows.has(external_id):
                continue
            self._count["gone"] += 1
            self._add_doubts([doubt("gone", value=external_id, detail=detail)])
            if cancels:
                self._cancel(known, external_id)

    def _midnight(self, day: date) -> int:
        return milliseconds(datetime.combine(day, time(), self._map.zone))

    def _doubt(self, row: Row, code: str, field: str) -> Doubt:
        return row.doubt(code, self._map, field, detail=self._template() if code == "patient_changed" else "")

    def _reject(self, doubts: Iterable[Doubt]) -> None:
        self._count["rejected"] += 1
        self._add_doubts(doubts)

    def _add_doubts(self, doubts: Iterable[Doubt]) -> None:
        for each in doubts:
            self.spool.add("doubts", each)


_Event = tuple[EventType, Mapping[str, Any]]
"""The type and the data of an event."""


def _in_wire(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {_IN_WIRE[name]: value for name, value in fields.items()}


@functools.lru_cache(maxsize=1000)
def _start_of(at: At) -> str:
    return format_exactly(at.instant)


def _is_settled(new: Known, known: Known | None) -> bool:
    """Return whether a row says of the patient only what was recorded already."""
    return known is not None and (known.patient is None or (new.patient, new.phone) == (known.patient, known.phone))


def _may_meet_others(new: Known, known: Known | None) -> bool:
    """Return whether a row could make one patient of two."""
    return new.status != CANCELLED and (new.phone or new.dni) is not None and not _is_settled(new, known)
