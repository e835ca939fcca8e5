"""A correct integration with the outbox and the inbox: what a person does and its event commit together."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from followup import FollowUp, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver.simulation import Booking, Clinic

URL = "https://clinic.example/webhooks"


class Recording(Clinic):
    """What each change and its event have in common."""

    receiver_url = URL

    def book(self, booking: Booking) -> None:
        patient: Any = {"phone": booking.phone, "full_name": booking.full_name}
        event = inbound.appointment_created(patient=patient, external_id=booking.external_id, start_at=booking.start_at)
        self.commit(booking, booking.start_at, event)

    def reschedule(self, booking: Booking) -> None:
        event = inbound.appointment_rescheduled(external_id=booking.external_id, start_at=booking.start_at)
        self.commit(booking, booking.start_at, event)

    def cancel(self, booking: Booking) -> None:
        self.commit(booking, None, inbound.appointment_cancelled(external_id=booking.external_id))

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        raise NotImplementedError


class Stores(Recording):
    """Events in an outbox, webhooks in an inbox, both in the clinic's own SQLite file."""

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        url = f"sqlite:///{folder / 'clinic.db'}"
        self.outbox = Outbox(url)
        self.inbox = Inbox(url, secret=self.secret)
        self.inbox.otherwise(self.handle)
        self.outbox.create_tables()
        self.inbox.create_tables()
        self.database = sqlite3.connect(folder / "clinic.db")
        with self.database:
            self.database.execute("CREATE TABLE IF NOT EXISTS bookings (external_id TEXT PRIMARY KEY, start_at TEXT)")
            self.database.execute("CREATE TABLE IF NOT EXISTS work (event_id TEXT)")

    def receiver(self) -> Any:
        return self.inbox.wsgi_app

    def handle(self, received: Received) -> None:
        received.connection.execute(text("INSERT INTO work VALUES (:id)"), {"id": received.event.id})

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        with self.database:
            values = (booking.external_id, start_at and start_at.isoformat())
            self.database.execute("INSERT OR REPLACE INTO bookings VALUES (?, ?)", values)
            self.outbox.record(self.database, event)

    def work(self) -> None:
        self.outbox.drain(self.client)
        self.inbox.drain()

    def bookings(self) -> dict[str, datetime | None]:
        rows = self.database.execute("SELECT external_id, start_at FROM bookings")
        return {external_id: start_at and datetime.fromisoformat(start_at) for external_id, start_at in rows}

    def handled(self) -> list[str]:
        return [event_id for (event_id,) in self.database.execute("SELECT event_id FROM work")]
