"""Clinics to simulate."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine, event, text

from followup import FollowUp, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver.simulation import Booking, Clinic


@contextmanager
def transaction(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


class Careful(Clinic):
    """Stores first, and sends in the background what differs from what it has sent, under keys that it can repeat."""

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.path = folder / "clinic.db"
        with transaction(self.path) as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS booking (id TEXT PRIMARY KEY, phone TEXT, name TEXT, start_at TEXT, "
                "cancelled INTEGER DEFAULT 0, sent TEXT)"
            )

    def book(self, booking: Booking) -> None:
        with transaction(self.path) as database:
            database.execute(
                "INSERT OR IGNORE INTO booking (id, phone, name, start_at) VALUES (?, ?, ?, ?)",
                (booking.external_id, booking.phone, booking.full_name, booking.start_at.isoformat()),
            )

    def reschedule(self, booking: Booking) -> None:
        with transaction(self.path) as database:
            database.execute(
                "UPDATE booking SET start_at = ? WHERE id = ?", (booking.start_at.isoformat(), booking.external_id)
            )

    def cancel(self, booking: Booking) -> None:
        with transaction(self.path) as database:
            database.execute("UPDATE booking SET cancelled = 1 WHERE id = ?", (booking.external_id,))

    def work(self) -> None:
        with transaction(self.path) as database:
            rows = database.execute("SELECT id, phone, name, start_at, cancelled, sent FROM booking").fetchall()
        for external_id, phone, name, start_at, cancelled, sent in rows:
            wanted = "cancelled" if cancelled else start_at
            if sent != wanted:
                self.send(external_id, phone, name, start_at, cancelled=cancelled)
                with transaction(self.path) as database:
                    database.execute("UPDATE booking SET sent = ? WHERE id = ?", (wanted, external_id))

    def send(self, external_id: str, phone: str, name: str, start_at: str, *, cancelled: bool) -> None:
        appointment = self.client.appointments.create(
            patient={"phone": phone, "full_name": name},
            start_at=start_at,
            external_id=external_id,
            idempotency_key=f"book-{external_id}-{start_at}",
        )
        if cancelled:
            self.client.appointments.cancel(appointment.id)
        else:
            self.client.appointments.update(appointment.id, start_at=start_at)

    def bookings(self) -> dict[str, datetime | None]:
        with transaction(self.path) as database:
            rows = database.execute("SELECT id, start_at, cancelled FROM booking").fetchall()
        return {
            external_id: None if cancelled else datetime.fromisoformat(start_at)
            for external_id, start_at, cancelled in rows
        }


class Naive(Clinic):
    """Stores first, and tells the service at once. What fails in between is forgotten."""

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.database = sqlite3.connect(folder / "clinic.db")
        self.database.execute("CREATE TABLE IF NOT EXISTS booking (id TEXT PRIMARY KEY, service_id TEXT, time TEXT)")

    def book(self, booking: Booking) -> None:
        with self.database:
            self.database.execute(
                "INSERT INTO booking (id, time) VALUES (?, ?)", (booking.external_id, booking.start_at.isoformat())
            )
        appointment = self.client.appointments.create(
            patient={"phone": booking.phone, "full_name": booking.full_name},
            start_at=booking.start_at,
            external_id=booking.external_id,
            idempotency_key=str(uuid.uuid4()),
        )
        with self.database:
            self.database.execute(
                "UPDATE booking SET service_id = ? WHERE id = ?", (appointment.id, booking.external_id)
            )

    def reschedule(self, booking: Booking) -> None:
        self.client.appointments.update(self.service_id(booking), start_at=booking.start_at)
        with self.database:
            self.database.execute(
                "UPDATE booking SET time = ? WHERE id = ?", (booking.start_at.isoformat(), booking.external_id)
            )

    def cancel(self, booking: Booking) -> None:
        self.client.appointments.cancel(self.service_id(booking))
        with self.database:
            self.database.execute("UPDATE booking SET time = NULL WHERE id = ?", (booking.external_id,))

    def service_id(self, booking: Booking) -> str:
        [(found,)] = self.database.execute("SELECT service_id FROM booking WHERE id = ?", (booking.external_id,))
        return str(found)

    def bookings(self) -> dict[str, datetime | None]:
        rows = self.database.execute("SELECT id, time FROM booking").fetchall()
        return {external_id: time and datetime.fromisoformat(time) for external_id, time in rows}


class WithStores(Clinic):
    """Uses Outbox and Inbox."""

    receiver_url = "https://clinic.example/webhooks"

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.engine = create_engine(f"sqlite:///{folder / 'clinic.db'}")
        event.listen(self.engine, "connect", _autocommit)
        event.listen(self.engine, "begin", _begin_immediate)
        self.outbox = Outbox(self.engine)
        self.inbox = Inbox(self.engine, secret=self.secret)
        self.inbox.otherwise(self.handle)
        self.outbox.create_tables()
        self.inbox.create_tables()
        with self.engine.begin() as connection:
            connection.execute(text("CREATE TABLE IF NOT EXISTS booking (id TEXT PRIMARY KEY, start_at TEXT)"))
            connection.execute(text("CREATE TABLE IF NOT EXISTS done (id TEXT)"))

    def receiver(self) -> Any:
        return self.receive

    def receive(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(self.inbox.receive(request.content, request.headers))

    def handle(self, received: Received) -> None:
        received.connection.execute(text("INSERT INTO done VALUES (:id)"), {"id": received.event.id})

    def book(self, booking: Booking) -> None:
        with self.engine.begin() as connection:
            added = connection.execute(
                text("INSERT OR IGNORE INTO booking VALUES (:id, :time)"),
                {"id": booking.external_id, "time": booking.start_at.isoformat()},
            )
            if added.rowcount:
                self.outbox.record(
                    connection,
                    inbound.appointment_created(
                        patient={"phone": booking.phone, "full_name": booking.full_name},
                        start_at=booking.start_at,
                        external_id=booking.external_id,
                    ),
                )

    def reschedule(self, booking: Booking) -> None:
        with self.engine.begin() as connection:
            connection.execute(
                text("UPDATE booking SET start_at = :time WHERE id = :id"),
                {"id": booking.external_id, "time": booking.start_at.isoformat()},
            )
            self.outbox.record(
                connection,
                inbound.appointment_rescheduled(external_id=booking.external_id, start_at=booking.start_at),
            )

    def cancel(self, booking: Booking) -> None:
        with self.engine.begin() as connection:
            connection.execute(text("UPDATE booking SET start_at = NULL WHERE id = :id"), {"id": booking.external_id})
            self.outbox.record(connection, inbound.appointment_cancelled(external_id=booking.external_id))

    def work(self) -> None:
        self.outbox.drain(self.client, deadline=60)
        self.inbox.drain(deadline=60)

    def bookings(self) -> dict[str, datetime | None]:
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT id, start_at FROM booking")).all()
        return {row.id: row.start_at and datetime.fromisoformat(row.start_at) for row in rows}

    def handled(self) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.execute(text("SELECT id FROM done")).scalars())


def _autocommit(connection: Any, _: object) -> None:
    connection.isolation_level = None


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
