"""The tests of the clinic's integration. Run them with ``pytest test_clinic_integration.py``."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clinic_integration import Booking, Clinic, Person, create_app
from sqlalchemy.exc import OperationalError

from followup import FollowUp, IntakeRequest
from followup_mockserver import MockService, simulation
from followup_mockserver.simulation import OutboxClinic

ANA = Person("P-1", "+54 9 11 5555-0000", "Ana Pérez", "30123456")
EVA = Person("P-2", "+54 9 11 5555-0001")  # full_name and dni are NULL

Query = Callable[[str], list[Any]]


@pytest.fixture
def clinic(followup_client: FollowUp, tmp_path: Path) -> Clinic:
    return Clinic(tmp_path / "clinic.db", followup_client)


@pytest.fixture
def query(clinic: Clinic, tmp_path: Path) -> Query:
    def run(sql: str) -> list[Any]:
        with closing(sqlite3.connect(tmp_path / "clinic.db")) as database, database:
            return database.execute(sql).fetchall()

    return run


@pytest.fixture
def start(followup_service: MockService) -> datetime:
    return followup_service.clock.now.replace(microsecond=0) + timedelta(days=3)


@pytest.fixture
def booking(clinic: Clinic, start: datetime) -> Booking:
    """A booking of Ana, which is not sent yet."""
    clinic.save_person(ANA)
    booking = Booking("T-1", ANA.id, start.isoformat(), "check-up")
    clinic.save_booking(booking)
    return booking


@pytest.fixture
def receiver(
    clinic: Clinic, followup_client: FollowUp, followup_service: MockService, tmp_path: Path
) -> None:
    """The clinic's receiver, registered with the service."""
    endpoint = followup_client.webhook_endpoints.create(
        url="https://clinic.example/webhooks", enabled_events=["*"]
    )
    receiving = Clinic(tmp_path / "clinic.db", followup_client, endpoint.secret)
    followup_service.mount("https://clinic.example", create_app(receiving))


def test_a_booking_is_sent_with_its_patient(
    clinic: Clinic, booking: Booking, followup_client: FollowUp, start: datetime
) -> None:
    clinic.work()
    appointment = followup_client.appointments.list(external_id="T-1").first()
    assert appointment is not None
    assert (appointment.start_at, appointment.status, appointment.type) == (
        start,
        "confirmed",
        "check-up",
    )
    patient = followup_client.patients.retrieve(appointment.patient)
    assert (patient.full_name, patient.dni, patient.external_id) == ("Ana Pérez", "30123456", "P-1")


def test_a_booking_is_rescheduled_and_cancelled(
    clinic: Clinic, booking: Booking, followup_client: FollowUp, start: datetime
) -> None:
    for days in (1, 0, 2, 0):  # back to a time that it had before, too
        clinic.save_booking(booking._replace(start_at=(start + timedelta(days=days)).isoformat()))
    clinic.work()
    (appointment,) = followup_client.appointments.list()
    assert (appointment.start_at, appointment.status) == (start, "rescheduled")
    clinic.save_booking(booking._replace(cancelled=True))
    clinic.work()
    (appointment,) = followup_client.appointments.list()
    assert appointment.status == "cancelled"


def test_a_file_that_is_read_twice_is_sent_once(
    clinic: Clinic, booking: Booking, followup_client: FollowUp, query: Query
) -> None:
    for _ in range(2):
        clinic.save_person(ANA)
        clinic.save_booking(booking)
        clinic.work()
    assert {event.type for event in followup_client.events.list()} == {
        "patient.upserted",
        "appointment.created",
    }
    assert (clinic.outbox.status().sent, clinic.outbox.status().waiting) == (2, 0)


def test_the_events_of_a_booking_are_sent_one_after_the_other(
    clinic: Clinic, booking: Booking, followup_service: MockService
) -> None:
    clinic.save_booking(booking._replace(cancelled=True))
    clinic.work()
    assert clinic.outbox.status().sent == 3
    assert [request.operation for request in followup_service.requests] == ["events.create"] * 2


def test_columns_that_are_null_are_omitted(
    clinic: Clinic, start: datetime, followup_client: FollowUp
) -> None:
    clinic.save_person(EVA)
    clinic.save_booking(Booking("T-2", EVA.id, start.isoformat()))
    clinic.work()
    assert clinic.outbox.status().sent == 2
    patient = followup_client.patients.list(external_id=EVA.id).first()
    assert patient is not None
    assert (patient.full_name, patient.dni) == (None, None)


def test_a_booking_that_rolls_back_is_not_sent(
    clinic: Clinic, booking: Booking, followup_client: FollowUp, query: Query
) -> None:
    query("ALTER TABLE followup_outbox RENAME TO unavailable")
    with pytest.raises(OperationalError):
        clinic.save_booking(booking._replace(id="T-2"))
    query("ALTER TABLE unavailable RENAME TO followup_outbox")
    clinic.work()
    assert query("SELECT id FROM booking") == [("T-1",)]
    assert [each.external_id for each in followup_client.appointments.list()] == ["T-1"]


def test_a_lost_response_has_no_second_effect(
    clinic: Clinic, booking: Booking, followup_client: FollowUp, followup_service: MockService
) -> None:
    followup_service.add_fault(operation="events.create", kind="disconnect", when="after")
    clinic.work()
    assert clinic.outbox.status().waiting == 2
    followup_service.advance(seconds=1)
    clinic.work()
    assert clinic.outbox.status().sent == 2
    assert len([*followup_client.appointments.list()]) == 1


def test_an_invalid_event_delays_no_other(clinic: Clinic, booking: Booking) -> None:
    clinic.save_person(EVA._replace(phone="none"))
    clinic.save_person(EVA._replace(id="P-3"))
    clinic.work()
    assert clinic.outbox.status().sent == 3
    (dead,) = clinic.outbox.dead()
    assert dead.event["data"]["patient"]["externalId"] == "P-2"
    assert "phone" in dead.error


def test_webhooks_are_stored(
    clinic: Clinic, booking: Booking, receiver: None, followup_service: MockService, query: Query
) -> None:
    clinic.work()
    followup_service.advance()
    clinic.work()
    appointments = query("SELECT booking, start_at, status, source FROM appointment")
    assert appointments == [("T-1", booking.start_at, "confirmed", "api")]
    assert query("SELECT person, stage, opted_out FROM patient") == [("P-1", "scheduled", 0)]


def test_an_older_webhook_does_not_replace_a_newer_one(
    clinic: Clinic, booking: Booking, receiver: None, followup_service: MockService, query: Query
) -> None:
    followup_service.disturb(kind="reorder", type="appointment.created")
    clinic.work()
    followup_service.advance()
    clinic.work()
    assert query("SELECT * FROM appointment") == []
    clinic.save_booking(booking._replace(cancelled=True))
    clinic.work()
    followup_service.advance()
    clinic.work()
    assert {delivery.status for delivery in followup_service.deliveries} == {"succeeded"}
    assert query("SELECT status FROM appointment") == [("cancelled",)]


def test_an_appointment_of_the_agent_is_moved_and_cancelled(
    clinic: Clinic,
    receiver: None,
    followup_client: FollowUp,
    followup_service: MockService,
    query: Query,
    start: datetime,
) -> None:
    patient = followup_client.patients.create(phone=ANA.phone)
    booked = followup_service.add_appointment(patient=patient.id, start_at=start)
    followup_service.advance()
    clinic.work()
    assert query("SELECT id, booking, source FROM appointment") == [(booked.id, None, "agent")]
    later = start + timedelta(days=1)
    clinic.change_appointment(booked.id, start.isoformat())
    clinic.change_appointment(booked.id, later.isoformat())  # replaces the change before it
    followup_service.add_fault(operation="appointments.update", kind="status", status=503)
    followup_service.add_fault(operation="appointments.update", kind="disconnect", when="after")
    for _ in range(3):
        clinic.work()
    assert query("SELECT * FROM appointment_to_change") == []
    assert followup_client.appointments.retrieve(booked.id).start_at == later
    clinic.change_appointment(booked.id, None)
    clinic.work()
    clinic.change_appointment(booked.id, later.isoformat())  # too late
    clinic.work()
    assert followup_client.appointments.retrieve(booked.id).status == "cancelled"
    assert query("SELECT id, error FROM appointment_to_change") == [
        (booked.id, "appointment_not_modifiable")
    ]
    followup_service.advance()
    clinic.work()
    assert query("SELECT status FROM appointment") == [("cancelled",)]


def test_a_forged_webhook_is_rejected(
    clinic: Clinic, booking: Booking, receiver: None, followup_service: MockService, query: Query
) -> None:
    followup_service.disturb(kind="wrong_signature", times=2)
    clinic.work()
    followup_service.advance()
    clinic.work()
    assert {delivery.last_status_code for delivery in followup_service.deliveries} == {400}
    assert query("SELECT * FROM appointment") == []
    followup_service.advance(minutes=1)  # the second attempts are genuine
    clinic.work()
    assert len(query("SELECT * FROM appointment")) == 1


@pytest.fixture
def intake(followup_client: FollowUp) -> IntakeRequest:
    """An intake request that lacks some data."""
    return followup_client.intake_requests.create(
        patient={"phone": ANA.phone, "full_name": ANA.full_name}
    )


def complete(service: MockService, intake: IntakeRequest) -> None:
    """Complete an intake request, as the patient does, so that it becomes ready."""
    service.answer_intake_request(
        intake.id,
        patient={"dni": ANA.dni},
        coverage={"insurer": "OSDE"},
        address="Mitre 1",
        requested_service="home nursing",
    )


def test_an_intake_request_is_stored_when_it_is_ready(
    clinic: Clinic,
    receiver: None,
    intake: IntakeRequest,
    followup_service: MockService,
    query: Query,
) -> None:
    followup_service.advance()
    clinic.work()
    assert query("SELECT * FROM intake_to_load") == []
    complete(followup_service, intake)
    followup_service.advance()
    clinic.work()
    stored = query(
        "SELECT patient, json_extract(request, '$.data.requestedService') FROM intake_to_load"
    )
    assert stored == [(intake.patient, "home nursing")]


def test_a_repeated_webhook_has_no_second_effect(
    clinic: Clinic,
    receiver: None,
    intake: IntakeRequest,
    followup_service: MockService,
    query: Query,
) -> None:
    followup_service.disturb(kind="duplicate", type="intake.ready")
    complete(followup_service, intake)
    followup_service.advance()
    clinic.work()
    assert followup_service.webhook_faults == []
    assert query("SELECT count(*) FROM intake_to_load") == [(1,)]


def test_a_webhook_whose_handler_fails_is_handled_later(
    clinic: Clinic,
    receiver: None,
    intake: IntakeRequest,
    followup_service: MockService,
    query: Query,
) -> None:
    complete(followup_service, intake)
    followup_service.advance()
    query("ALTER TABLE intake_to_load RENAME TO unavailable")
    clinic.work()
    query("ALTER TABLE unavailable RENAME TO intake_to_load")
    assert clinic.inbox.status().waiting == 1
    query("UPDATE followup_inbox SET due_at = 0")  # half a second later
    clinic.work()
    assert query("SELECT patient FROM intake_to_load") == [(intake.patient,)]


class SimulatedClinic(OutboxClinic):
    """The integration, with the bookings that a simulation makes."""

    def start(self, client: FollowUp, folder: Path) -> None:
        self.path = folder / "clinic.db"
        self.clinic = Clinic(self.path, client, self.secret)
        self.outbox, self.inbox = self.clinic.outbox, self.clinic.inbox

    def work(self) -> None:
        self.clinic.work()

    def book(self, booking: simulation.Booking) -> None:
        person = Person(booking.phone, booking.phone, booking.full_name)
        self.clinic.save_person(person)
        self.reschedule(booking)

    def reschedule(self, booking: simulation.Booking, *, cancelled: bool = False) -> None:
        start_at = booking.start_at.isoformat()
        row = Booking(booking.external_id, booking.phone, start_at, cancelled=cancelled)
        self.clinic.save_booking(row)

    def cancel(self, booking: simulation.Booking) -> None:
        self.reschedule(booking, cancelled=True)

    def bookings(self) -> dict[str, datetime | None]:
        with closing(sqlite3.connect(self.path)) as database:
            rows = database.execute("SELECT id, start_at, cancelled FROM booking")
            return {key: None if off else datetime.fromisoformat(at) for key, at, off in rows}


def test_a_simulation_finds_nothing() -> None:
    simulation.simulate(SimulatedClinic, examples=3, seed=1)
