"""Connect a clinic to the service: send its bookings, and receive webhooks.

The clinic's own code calls ``save_person`` and ``save_booking``. The receiver runs with
``uvicorn --factory clinic_integration:create_app``. Each minute a timer runs
``python clinic_integration.py``, which sends the recorded events and handles the stored webhooks;
each hour it runs ``followup inbox catch-up``. Set the environment variables CLINIC_DATABASE,
FOLLOWUP_API_KEY, FOLLOWUP_BASE_URL and FOLLOWUP_WEBHOOK_SECRET.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI
from sqlalchemy import Connection, create_engine

from followup import (
    FollowUp,
    FollowUpError,
    InvalidRequestError,
    NotFoundError,
    PatientInput,
    inbound,
)
from followup.fastapi import inbox_router
from followup.inbox import Inbox, Received
from followup.outbox import Outbox

TABLES = """
CREATE TABLE IF NOT EXISTS person
    (id TEXT PRIMARY KEY, phone TEXT NOT NULL, full_name TEXT, dni TEXT);
CREATE TABLE IF NOT EXISTS booking
    (id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES person, start_at TEXT NOT NULL,
     kind TEXT, cancelled INTEGER);
-- The handlers of webhooks write the rest: the state at the service, and the time of that state.
CREATE TABLE IF NOT EXISTS appointment
    (id TEXT PRIMARY KEY, known_at TEXT, booking TEXT, start_at TEXT, status TEXT, source TEXT);
CREATE TABLE IF NOT EXISTS patient
    (id TEXT PRIMARY KEY, known_at TEXT, person TEXT, stage TEXT, opted_out INTEGER);
CREATE TABLE IF NOT EXISTS intake_to_load
    (number INTEGER PRIMARY KEY, patient TEXT, request TEXT);
-- Wanted states of appointments that the service booked, until they are sent; no start cancels.
CREATE TABLE IF NOT EXISTS appointment_to_change
    (id TEXT PRIMARY KEY, start_at TEXT, error TEXT);
"""


class Person(NamedTuple):
    """A row of the clinic's table of patients."""

    id: str
    phone: str
    full_name: str | None = None
    dni: str | None = None


class Booking(NamedTuple):
    """A row of the clinic's calendar. ``start_at`` is an ISO 8601 time with an offset."""

    id: str
    person: str
    start_at: str
    kind: str | None = None
    cancelled: bool = False


class Clinic:
    """The clinic's database with its outbox and inbox, and its client of the service."""

    def __init__(self, path: str | Path, client: FollowUp, secret: str | None = None) -> None:
        self._client = client
        self._engine = create_engine(f"sqlite:///{path}")
        self.outbox = Outbox(self._engine)
        self.inbox = Inbox(self._engine, secret=secret)  # or FOLLOWUP_WEBHOOK_SECRET
        with self._engine.begin() as connection:
            for table in TABLES.split(";\n")[:-1]:
                connection.exec_driver_sql(table)
        self.outbox.create_tables()
        self.inbox.create_tables()
        self.inbox.on("intake.ready")(self._load_intake)
        self.inbox.otherwise(self._store_state)

    def save_person(self, person: Person) -> None:
        """Store a patient, and record an event if anything has changed."""
        with self._transaction() as connection:
            if _find(connection, "person", person.id) != person:
                _replace(connection, "person", *person)
                self.outbox.record(connection, inbound.patient_upserted(patient=_patient(person)))

    def save_booking(self, new: Booking) -> None:
        """Store a booking, and record its change. A cancelled booking never changes."""
        with self._transaction() as connection:
            row = _find(connection, "booking", new.id)
            old = Booking(*row) if row else None
            if old and old.cancelled:
                return
            _replace(connection, "booking", *new)
            if old is None:
                person = Person(*_find(connection, "person", new.person) or ())
                created = inbound.appointment_created(
                    patient=_patient(person),
                    start_at=new.start_at,
                    external_id=new.id,
                    type=new.kind,
                )
                self.outbox.record(connection, created)
            elif old.start_at != new.start_at:
                moved = inbound.appointment_rescheduled(external_id=new.id, start_at=new.start_at)
                self.outbox.record(connection, moved)
            if new.cancelled:
                self.outbox.record(connection, inbound.appointment_cancelled(external_id=new.id))

    def change_appointment(self, id: str, start_at: str | None) -> None:
        """Move an appointment that the service's agent booked, or cancel it if there is no start.

        It has no id of the clinic, so no event can name it: it is changed by its id at the service.
        """
        with self._transaction() as connection:
            _replace(connection, "appointment_to_change", id, start_at, None)

    def work(self) -> None:
        """Send the recorded events and changes, and handle the stored webhooks.

        It may be killed at any moment, and several processes may run it at once.
        """
        self.inbox.drain(deadline=20)
        self.outbox.drain(self._client, deadline=20)
        self._change_appointments()

    def _change_appointments(self) -> None:
        client = self._client.with_options(max_retries=0, deadline=3)
        with self._engine.connect() as connection:
            waiting = "SELECT id FROM appointment_to_change WHERE error IS NULL"
            ids = connection.exec_driver_sql(waiting).scalars().all()
        for appointment in ids:
            # The transaction lasts as long as the call, so that no older change arrives after a
            # newer one. A crash before it commits repeats the call, which is harmless.
            with self._transaction() as connection:
                row = _find(connection, "appointment_to_change", appointment)
                if row is None or row[2]:  # another process was faster
                    continue
                try:
                    if row[1] is None:
                        client.appointments.cancel(appointment)
                    else:
                        client.appointments.update(appointment, start_at=row[1])
                except (InvalidRequestError, NotFoundError) as error:
                    # It can never succeed: somebody must look at it.
                    failed = "UPDATE appointment_to_change SET error = ? WHERE id = ?"
                    connection.exec_driver_sql(failed, (error.code, appointment))
                except FollowUpError:
                    return  # the next round tries again
                else:
                    sent = "DELETE FROM appointment_to_change WHERE id = ?"
                    connection.exec_driver_sql(sent, (appointment,))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Commit all writes of the block, or none if it raises; what it reads does not change."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def _load_intake(self, received: Received) -> None:
        # The event carries only a part of the request. The call comes before the first write,
        # because a write locks the file.
        intake = self._client.intake_requests.retrieve(received.event.ref)
        values = (intake.patient, intake.to_json())
        received.connection.exec_driver_sql(
            "INSERT INTO intake_to_load (patient, request) VALUES (?, ?)", values
        )

    def _store_state(self, received: Received) -> None:
        """Store the objects of an event, as they were when it occurred."""
        event = received.event
        known_at = event.occurred_at.isoformat(timespec="milliseconds")
        if (appointment := event.appointment) is not None:
            start_at, booking = appointment.start_at.isoformat(), appointment.external_id
            state = (booking, start_at, appointment.status, appointment.source)
            _replace_older(received.connection, "appointment", appointment.id, known_at, *state)
        if (patient := event.patient) is not None:
            person, stage, opted_out = patient.external_id, patient.stage, patient.opted_out
            _replace_older(
                received.connection, "patient", patient.id, known_at, person, stage, opted_out
            )


def _patient(person: Person) -> PatientInput:
    # A column that is NULL is None here, and is not sent.
    return {
        "phone": person.phone,
        "full_name": person.full_name,
        "dni": person.dni,
        "external_id": person.id,
    }


def _find(connection: Connection, table: str, id: str) -> tuple[Any, ...] | None:
    row = connection.exec_driver_sql(f"SELECT * FROM {table} WHERE id = ?", (id,)).one_or_none()
    return row and tuple(row)


def _replace(connection: Connection, table: str, *row: str | bool | None) -> None:
    connection.exec_driver_sql(f"REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _replace_older(
    connection: Connection, table: str, id: str, known_at: str, *state: str | bool | None
) -> None:
    """Store the state of an object, unless a newer one is known: events arrive in any order."""
    newer = f"SELECT 1 FROM {table} WHERE id = ? AND known_at > ?"
    if connection.exec_driver_sql(newer, (id, known_at)).first() is None:
        _replace(connection, table, id, known_at, *state)


def create_app(clinic: Clinic | None = None) -> FastAPI:
    """Return the receiver, which stores each webhook before it responds."""
    receiving = clinic or Clinic(os.environ["CLINIC_DATABASE"], FollowUp())
    app = FastAPI()
    app.include_router(inbox_router(receiving.inbox, "/webhooks"))
    return app


if __name__ == "__main__":
    with FollowUp() as client:
        Clinic(os.environ["CLINIC_DATABASE"], client).work()
