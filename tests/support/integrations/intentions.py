"""A correct integration by hand: calls are stored with their idempotency keys before they are made, and repeated."""

import json
import sqlite3
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from followup import FollowUp, FollowUpError, WebhookEvent, WebhookSignatureError, construct_event
from followup_mockserver.simulation import Booking, Clinic

URL = "https://clinic.example/webhooks"

SCHEMA = """
CREATE TABLE IF NOT EXISTS bookings (external_id TEXT PRIMARY KEY, start_at TEXT);
CREATE TABLE IF NOT EXISTS calls (
    seq INTEGER PRIMARY KEY, external_id TEXT, kind TEXT, arguments TEXT, key TEXT, is_done INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, is_done INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS work (event_id TEXT);
"""


class Intentions(Clinic):
    """Calls of the API in the order of each booking, from a table in the clinic's own SQLite file."""

    receiver_url = URL

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.database = sqlite3.connect(folder / "clinic.db")
        self.database.executescript(SCHEMA)

    # --- what a person does ----------------------------------------------------------------------------------------

    def book(self, booking: Booking) -> None:
        patient = {"phone": booking.phone, "full_name": booking.full_name}
        self.commit(booking, booking.start_at, "create", {"patient": patient, "start_at": self.written(booking)})

    def reschedule(self, booking: Booking) -> None:
        self.commit(booking, booking.start_at, "update", {"start_at": self.written(booking)})

    def cancel(self, booking: Booking) -> None:
        self.commit(booking, None, "cancel", {})

    def commit(self, booking: Booking, start_at: datetime | None, kind: str, arguments: dict[str, Any]) -> None:
        with self.database:
            self.believe(booking, start_at)
            self.intend(booking, kind, arguments)

    def believe(self, booking: Booking, start_at: datetime | None) -> None:
        values = (booking.external_id, start_at and start_at.isoformat())
        self.database.execute("INSERT OR REPLACE INTO bookings VALUES (?, ?)", values)

    def intend(self, booking: Booking, kind: str, arguments: dict[str, Any]) -> None:
        values = (booking.external_id, kind, json.dumps(arguments), self.key_for(booking))
        self.database.execute("INSERT INTO calls (external_id, kind, arguments, key) VALUES (?, ?, ?, ?)", values)

    def key_for(self, booking: Booking) -> str:
        return str(uuid.uuid4())

    def written(self, booking: Booking) -> str:
        return booking.start_at.isoformat()

    def bookings(self) -> dict[str, datetime | None]:
        rows = self.database.execute("SELECT external_id, start_at FROM bookings")
        return {external_id: start_at and datetime.fromisoformat(start_at) for external_id, start_at in rows}

    # --- calls -----------------------------------------------------------------------------------------------------

    def work(self) -> None:
        self.make_calls()
        for (event_id,) in self.database.execute("SELECT id FROM events WHERE NOT is_done ORDER BY rowid").fetchall():
            with self.database:
                self.do_work(event_id)
                self.database.execute("UPDATE events SET is_done = 1 WHERE id = ?", (event_id,))

    def make_calls(self) -> None:
        waiting = set()
        rows = self.database.execute("SELECT * FROM calls WHERE NOT is_done ORDER BY seq").fetchall()
        for seq, external_id, kind, arguments, key, _ in rows:
            if external_id in waiting:
                continue
            try:
                self.call(external_id, kind, json.loads(arguments), key)
            except FollowUpError:
                waiting.add(external_id)  # what comes later of this booking must not overtake it
            else:
                self.finish(seq)

    def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
        if kind == "create":
            self.client.appointments.create(external_id=external_id, idempotency_key=key, **arguments)
            return
        appointment = self.client.appointments.list(external_id=external_id).first()
        assert appointment is not None
        if kind == "cancel":
            self.client.appointments.cancel(appointment.id, idempotency_key=key)
        else:
            self.client.appointments.update(appointment.id, **arguments)

    def finish(self, seq: int) -> None:
        with self.database:
            self.database.execute("UPDATE calls SET is_done = 1 WHERE seq = ?", (seq,))

    # --- webhooks --------------------------------------------------------------------------------------------------

    def receiver(self) -> Any:
        return self.receive

    def receive(self, request: httpx.Request) -> httpx.Response:
        try:
            event = self.verified(request)
        except WebhookSignatureError:
            return httpx.Response(400)
        self.accept(event)
        return httpx.Response(204)

    def verified(self, request: httpx.Request) -> WebhookEvent:
        return construct_event(request.content, request.headers, self.secret)

    def accept(self, event: WebhookEvent) -> None:
        with self.database:
            self.database.execute("INSERT OR IGNORE INTO events (id) VALUES (?)", (event.id,))

    def do_work(self, event_id: str) -> None:
        self.database.execute("INSERT INTO work VALUES (?)", (event_id,))

    def handled(self) -> list[str]:
        return [event_id for (event_id,) in self.database.execute("SELECT event_id FROM work")]
