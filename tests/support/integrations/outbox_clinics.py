"""Integrations with ``OutboxClinic``: correct ones, and others that commit their work before the inbox marks it."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from followup import FollowUp
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver.simulation import Booking, OutboxClinic
from support.integrations.stores import Recording


class Calendar(Recording, OutboxClinic):
    """A clinic without a receiver."""

    receiver_url = None

    def start(self, client: FollowUp, folder: Path) -> None:
        self.file = folder / "clinic.db"
        self.database = sqlite3.connect(self.file)
        self.database.execute("CREATE TABLE IF NOT EXISTS bookings (id TEXT PRIMARY KEY, start_at TEXT)")
        self.database.execute("CREATE TABLE IF NOT EXISTS effects (event_id TEXT)")
        self.outbox = Outbox(f"sqlite:///{self.file}")
        self.outbox.create_tables()

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        with self.database:
            values = (booking.external_id, start_at and start_at.isoformat())
            self.database.execute("INSERT OR REPLACE INTO bookings VALUES (?, ?)", values)
            self.outbox.record(self.database, event)

    def bookings(self) -> dict[str, datetime | None]:
        rows = self.database.execute("SELECT id, start_at FROM bookings")
        return {external_id: start_at and datetime.fromisoformat(start_at) for external_id, start_at in rows}


class Receiving(Calendar):
    receiver_url = OutboxClinic.receiver_url

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.inbox = Inbox(f"sqlite:///{self.file}", secret=self.secret)
        self.inbox.create_tables()
        self.register()

    def register(self) -> None:
        self.inbox.otherwise(self.handle)

    def handle(self, received: Received) -> None:
        received.connection.exec_driver_sql("INSERT INTO effects VALUES (?)", (received.event.id,))

    def insert(self, database: sqlite3.Connection, received: Received) -> None:
        database.execute("INSERT INTO effects VALUES (?)", (received.event.id,))


class InOwnTransaction(Receiving):
    def register(self) -> None:
        self.inbox.otherwise(self.handle, transaction="own")

    def handle(self, received: Received) -> None:
        with self.database:
            self.insert(self.database, received)
            received.done(self.database)


class InTwoTransactions(InOwnTransaction):
    """Commits its work, and then that it is done."""

    def handle(self, received: Received) -> None:
        with self.database:
            self.insert(self.database, received)
        with self.database:
            self.database.execute("BEGIN")
            received.done(self.database)


class OverAnotherConnection(Receiving):
    """Commits its work by itself, before the inbox commits that it is done."""

    def handle(self, received: Received) -> None:
        with self.database:
            self.insert(self.database, received)
