"""Random sequences of calls against the mock and a small independent model of the service, compared after each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from followup import EventBatchError, InvalidRequestError
from followup_mockserver import MockService

PHONES = st.integers(0, 4).map(lambda number: f"+549115555000{number}")
DNIS = st.integers(0, 3).map(lambda number: f"3000000{number}")
EXTERNAL_IDS = st.integers(0, 2).map(lambda number: f"P-{number}")
NAMES = st.sampled_from(["Ana", "Eva", "Luis"])
HOURS = st.integers(1, 200)
START = datetime(2026, 9, 28, 12, tzinfo=UTC)


class Service(RuleBasedStateMachine):
    """The model: dicts and lists, without a line of the mock's."""

    patients = Bundle("patients")
    appointments = Bundle("appointments")

    @initialize()
    def begin(self) -> None:
        self.service = MockService(start_time=START, rate_limit=0, seed=1)
        self.client = self.service.client(max_retries=0)
        self.people: dict[str, dict[str, Any]] = {}
        self.booked: dict[str, dict[str, Any]] = {}
        self.now = START
        self.reminded = 0
        self.visited: set[str] = set()
        self.events = 0

    def expected_patient(self, details: dict[str, Any], keys: tuple[str, ...] = ("phone", "dni")) -> str | None:
        for name in keys:
            matching = [key for key, each in self.people.items() if name in details and each.get(name) == details[name]]
            if matching:
                return matching[-1]
        return None

    @rule(
        target=patients,
        phone=PHONES,
        dni=st.none() | DNIS,
        name=st.none() | NAMES,
        external_id=st.none() | EXTERNAL_IDS,
    )
    def create_patient(self, phone: str, dni: str | None, name: str | None, external_id: str | None) -> str:
        passed = {"phone": phone, "dni": dni, "full_name": name, "external_id": external_id}
        details = {key: value for key, value in passed.items() if value is not None}
        expected = self.expected_patient(details)
        made = self.client.patients.create(**details)
        assert expected in (None, made.id)
        record = self.people.setdefault(made.id, {})
        for key, value in details.items():
            record.setdefault(key, value)
        return made.id

    @rule(phone=st.none() | PHONES, dni=st.none() | DNIS, name=st.none() | NAMES, external_id=st.none() | EXTERNAL_IDS)
    def upsert_by_event(self, phone: str | None, dni: str | None, name: str | None, external_id: str | None) -> None:
        self.events += 1
        # Nulls and all: in the data of an event they are the same as absent.
        data = {"patient": {"phone": phone, "dni": dni, "fullName": name, "externalId": external_id}}
        event: Any = {"id": str(self.events), "type": "patient.upserted", "data": data}
        passed = {"phone": phone, "dni": dni, "full_name": name, "external_id": external_id}
        details = {key: value for key, value in passed.items() if value is not None}
        expected = self.expected_patient(details, ("phone", "dni", "external_id"))
        if expected is None and not {"phone", "dni"} & set(details):
            with pytest.raises(EventBatchError) as caught:
                self.client.events.create(event)
            assert caught.value.results[0].status == ("failed" if external_id else "invalid")
            return
        result = self.client.events.create(event).results[0]
        assert result.result is not None
        assert expected in (None, result.result.id)
        record = self.people.setdefault(result.result.id, {})
        if "phone" in record:
            details.pop("phone", None)
        record.update(details)

    @rule(id=patients, name=st.none() | NAMES, dni=st.none() | DNIS)
    def update_patient(self, id: str, name: str | None, dni: str | None) -> None:
        self.client.patients.update(id, full_name=name, dni=dni)
        for key, value in {"full_name": name, "dni": dni}.items():
            self.people[id].pop(key, None)
            if value is not None:
                self.people[id][key] = value

    @rule(target=appointments, patient=patients, hours=HOURS, external_id=st.integers(0, 5).map(str))
    def book(self, patient: str, hours: int, external_id: str) -> str:
        known = next((key for key, each in self.booked.items() if each["external_id"] == external_id), None)
        start = self.now + timedelta(hours=hours)
        made = self.client.appointments.create(patient=patient, start_at=start, external_id=external_id)
        assert known in (None, made.id)
        if known is None:
            self.booked[made.id] = {
                "patient": patient,
                "start": start,
                "status": "confirmed",
                "external_id": external_id,
                "reminders": {start - timedelta(hours=each) for each in (24, 3) if hours >= each},
            }
        return made.id

    @rule(id=appointments, hours=HOURS)
    def move(self, id: str, hours: int) -> None:
        record, start = self.booked[id], self.now + timedelta(hours=hours)
        if record["status"] in ("cancelled", "completed"):
            with pytest.raises(InvalidRequestError, match="appointment_not_modifiable"):
                self.client.appointments.update(id, start_at=start)
            return
        self.client.appointments.update(id, start_at=start)
        if start != record["start"]:
            record["reminders"] = {start - timedelta(hours=each) for each in (24, 3) if hours >= each}
            record.update(start=start, status="rescheduled")

    @rule(id=appointments)
    def cancel(self, id: str) -> None:
        self.client.appointments.cancel(id)
        self.booked[id].update(status="cancelled", reminders=set())

    @rule(id=consumes(appointments))
    def attend(self, id: str) -> None:
        record = self.booked[id]
        self.client.visits.create(patient=record["patient"], visited_at=self.now, appointment=id)
        record["reminders"] = set()
        self.visited.add(record["patient"])
        if record["status"] != "cancelled":
            record["status"] = "completed"

    @rule(id=appointments, other=patients)
    def attend_as_another(self, id: str, other: str) -> None:
        if other != self.booked[id]["patient"]:
            with pytest.raises(InvalidRequestError, match="appointment"):
                self.client.visits.create(patient=other, visited_at=self.now, appointment=id)

    def expected_stage(self, patient: str) -> str:
        ahead = ("confirmed", "rescheduled")
        mine = [each for each in self.booked.values() if each["patient"] == patient]
        if any(each["status"] in ahead and each["start"] >= self.now for each in mine):
            return "scheduled"
        return "periodic_follow_up" if patient in self.visited else "pending_follow_up"

    @rule(hours=st.integers(0, 50))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)
        self.service.advance(hours=hours)
        for record in self.booked.values():
            due = {each for each in record["reminders"] if each <= self.now}
            self.reminded += len(due) if "phone" in self.people[record["patient"]] else 0
            record["reminders"] -= due

    @invariant()
    def the_same_is_told(self) -> None:
        if not hasattr(self, "service"):
            return
        listed = {each.id: each for each in self.client.patients.list(limit=3)}
        assert set(listed) == set(self.people)
        for key, record in self.people.items():
            for name in ("phone", "dni", "full_name", "external_id"):
                assert getattr(listed[key], name) == record.get(name)
            assert listed[key].stage == self.expected_stage(key)
        appointments = {each.id: (each.start_at, each.status) for each in self.client.appointments.list(limit=4)}
        assert appointments == {key: (each["start"], each["status"]) for key, each in self.booked.items()}
        pending = sorted((each.appointment, each.send_at) for each in self.service.reminders)
        assert pending == sorted((key, at) for key, each in self.booked.items() for at in each["reminders"])
        assert len([each for each in self.service.messages if each.kind == "reminder"]) == self.reminded


TestService = Service.TestCase
TestService.settings = settings(max_examples=settings.default.max_examples // 6, stateful_step_count=25)
