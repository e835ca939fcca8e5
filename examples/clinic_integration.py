"""Connect a clinic to the service, in one file with FastAPI and SQLite: send its bookings, and receive webhooks.

The clinic's own code calls ``save_person`` and ``save_booking``. A timer runs ``python clinic_integration.py``, which
sends what they recorded. ``uvicorn --factory clinic_integration:create_app`` runs the receiver. Set the environment
variables CLINIC_DATABASE, FOLLOWUP_API_KEY, FOLLOWUP_BASE_URL and FOLLOWUP_WEBHOOK_SECRET.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from followup import EventInput, FollowUp, PatientInput, WebhookEvent, WebhookSignatureError, construct_event, inbound

logger = logging.getLogger("clinic")

TABLES = """
CREATE TABLE IF NOT EXISTS person (id TEXT PRIMARY KEY, phone TEXT NOT NULL, full_name TEXT, dni TEXT);
CREATE TABLE IF NOT EXISTS booking
    (id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES person, start_at TEXT NOT NULL, kind TEXT, cancelled INTEGER);
CREATE TABLE IF NOT EXISTS outbox
    (number INTEGER PRIMARY KEY, id TEXT UNIQUE, subject TEXT, event TEXT, status TEXT DEFAULT 'pending', error TEXT);
-- The rest is written by the receiver: the state at the service, as the webhooks report it.
CREATE TABLE IF NOT EXISTS webhook (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS newest (object TEXT PRIMARY KEY, occurred_at TEXT);
CREATE TABLE IF NOT EXISTS appointment (id TEXT PRIMARY KEY, booking TEXT, start_at TEXT, status TEXT, source TEXT);
CREATE TABLE IF NOT EXISTS patient (id TEXT PRIMARY KEY, person TEXT, stage TEXT, opted_out INTEGER);
CREATE TABLE IF NOT EXISTS intake_to_load (number INTEGER PRIMARY KEY, patient TEXT, request TEXT);
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
    """The clinic's database, and its client of the service."""

    def __init__(self, path: str | Path, client: FollowUp) -> None:
        self._path = path
        self._client = client
        with closing(sqlite3.connect(path)) as database:
            database.executescript(TABLES)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all that the block writes, or nothing if it raises. Other writers wait."""
        with closing(sqlite3.connect(self._path)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            yield database

    def save_person(self, person: Person) -> None:
        """Store a patient, and record an event if anything has changed."""
        with self.transaction() as database:
            if database.execute("SELECT * FROM person WHERE id = ?", [person.id]).fetchone() != person:
                _replace(database, "person", person)
                _record(database, person.id, inbound.patient_upserted(patient=_patient(person)))

    def save_booking(self, new: Booking) -> None:
        """Store a booking of a stored patient, and record what has changed. A cancelled booking stays as it is."""
        with self.transaction() as database:
            row = database.execute("SELECT * FROM booking WHERE id = ?", [new.id]).fetchone()
            old = row and Booking(*row)
            if old and old.cancelled:
                return
            _replace(database, "booking", new)
            if old is None:
                person = database.execute("SELECT * FROM person WHERE id = ?", [new.person]).fetchone()
                created = inbound.appointment_created(
                    patient=_patient(Person(*person)), start_at=new.start_at, external_id=new.id, type=new.kind
                )
                _record(database, new.id, created)
            elif old.start_at != new.start_at:
                _record(database, new.id, inbound.appointment_rescheduled(external_id=new.id, start_at=new.start_at))
            if new.cancelled:
                _record(database, new.id, inbound.appointment_cancelled(external_id=new.id))

    def push(self) -> None:
        """Send the recorded events. It may be interrupted and repeated: an event keeps its id, so it counts once."""
        decided = True
        while decided:  # the next event of a subject is sent once the one before it is accepted or rejected
            decided = False
            for result in self._client.events.send_all(self._next_events()):
                with self.transaction() as database:
                    marked = [result.status, result.error, result.id]
                    database.execute("UPDATE outbox SET status = ?, error = ? WHERE id = ?", marked)
                if not result.accepted:
                    logger.warning("event %s is %s", result.id, result.status)  # the error may hold personal data
                decided |= result.status != "failed"

    def _next_events(self) -> list[EventInput]:
        """Return the oldest open event of each subject, so that none overtakes an earlier one that failed."""
        with self.transaction() as database:
            rows = database.execute(
                """SELECT event FROM outbox WHERE number IN
                   (SELECT min(number) FROM outbox WHERE status IN ('pending', 'failed') GROUP BY subject)
                   ORDER BY number"""
            ).fetchall()
        return [json.loads(event) for (event,) in rows]

    def receive(self, event: WebhookEvent) -> None:
        """Store what a webhook reports, in one transaction with its id: a repeated delivery changes nothing."""
        # This event carries only part of the request. The call is made before the transaction, so it locks nothing.
        intake = self._client.intake_requests.retrieve(event.ref) if event.type == "intake.ready" else None
        with self.transaction() as database:
            if database.execute("INSERT OR IGNORE INTO webhook VALUES (?)", [event.id]).rowcount == 0:
                return
            if intake:
                to_load = (intake.patient, intake.to_json())
                database.execute("INSERT INTO intake_to_load (patient, request) VALUES (?, ?)", to_load)
            if (appointment := event.appointment) and _is_newest(database, appointment.id, event):
                start_at = appointment.start_at.isoformat()
                row = [appointment.id, appointment.external_id, start_at, appointment.status, appointment.source]
                _replace(database, "appointment", row)
            if (patient := event.patient) and _is_newest(database, patient.id, event):
                _replace(database, "patient", [patient.id, patient.external_id, patient.stage, patient.opted_out])


def _patient(person: Person) -> PatientInput:
    # A column that is NULL is None here, and is not sent.
    return {"phone": person.phone, "full_name": person.full_name, "dni": person.dni, "external_id": person.id}


def _replace(database: sqlite3.Connection, table: str, row: Sequence[str | bool | None]) -> None:
    database.execute(f"REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _record(database: sqlite3.Connection, subject: str, event: EventInput) -> None:
    stored = json.dumps({**event, "occurred_at": datetime.now(UTC).isoformat()})
    database.execute("INSERT INTO outbox (id, subject, event) VALUES (?, ?, ?)", [event["id"], subject, stored])


def _is_newest(database: sqlite3.Connection, object_id: str, event: WebhookEvent) -> bool:
    """Note the time of an event about an object, and return whether no later one was handled before."""
    occurred_at = event.occurred_at.isoformat(timespec="milliseconds")
    sql = """INSERT INTO newest VALUES (?, ?) ON CONFLICT (object) DO UPDATE SET occurred_at = excluded.occurred_at
             WHERE excluded.occurred_at >= newest.occurred_at"""
    return database.execute(sql, [object_id, occurred_at]).rowcount == 1


def create_app(clinic: Clinic | None = None, secret: str | None = None) -> FastAPI:
    """Return the receiver; its arguments default to the environment variables."""
    app = FastAPI()
    receiving = clinic or Clinic(os.environ["CLINIC_DATABASE"], FollowUp())
    signing_secret = secret or os.environ["FOLLOWUP_WEBHOOK_SECRET"]

    @app.post("/webhooks")
    async def webhook(request: Request) -> Response:
        try:
            event = construct_event(await request.body(), request.headers, signing_secret)
        except WebhookSignatureError as error:
            logger.warning("webhook rejected: %s", error)
            return Response(status_code=400)
        await run_in_threadpool(receiving.receive, event)
        return Response(status_code=204)

    return app


if __name__ == "__main__":
    with FollowUp(requests_per_minute=500) as client:  # of 600; the rest is for the receiver
        Clinic(os.environ["CLINIC_DATABASE"], client).push()
