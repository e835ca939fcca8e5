"""Integrations with one bug each, which shows only when the process ends before or after a commit."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from followup import FollowUp
from followup_mockserver.simulation import Booking
from support.integrations.intentions import SCHEMA, Intentions
from support.integrations.stores import Stores
from support.integrations.transactions import WithDjango

# --- bookings and what is sent about them --------------------------------------------------------------------------


class CommitsTheBookingFirst(Stores):
    """Commits the booking, and then its event in a transaction of its own."""

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        values = (booking.external_id, start_at and start_at.isoformat())
        with self.database:
            self.database.execute("INSERT OR REPLACE INTO bookings VALUES (?, ?)", values)
        with self.database:
            self.outbox.record(self.database, event)


class CommitsTheEventFirst(Stores):
    """Commits the event, and then the booking in a transaction of its own."""

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        values = (booking.external_id, start_at and start_at.isoformat())
        with self.database:
            self.outbox.record(self.database, event)
        with self.database:
            self.database.execute("INSERT OR REPLACE INTO bookings VALUES (?, ?)", values)


class RecordsOnCommit(WithDjango):
    """Records each event in a hook that Django runs after the commit."""

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        with self.transaction.atomic(using="clinic"):
            self.believe(booking, start_at)
            self.transaction.on_commit(lambda: self.record(event), using="clinic")

    def record(self, event: Any) -> None:
        with self.transaction.atomic(using="clinic"):
            self.outbox.record(self.connection, event)


class MigratesInSteps(Intentions):
    """Creates its tables, and then commits that they exist."""

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.database = sqlite3.connect(folder / "clinic.db")
        [version] = self.database.execute("PRAGMA user_version").fetchone()
        if not version:
            self.database.executescript(SCHEMA.replace("IF NOT EXISTS", ""))
            self.database.execute("PRAGMA user_version = 1")


# --- webhooks --------------------------------------------------------------------------------------------------------


class MarksBeforeItsWork(Intentions):
    """Commits that an event is done, and then does its work."""

    def work(self) -> None:
        self.make_calls()
        for (event_id,) in self.database.execute("SELECT id FROM events WHERE NOT is_done").fetchall():
            with self.database:
                self.database.execute("UPDATE events SET is_done = 1 WHERE id = ?", (event_id,))
            with self.database:
                self.do_work(event_id)


class MarksAfterItsWork(Intentions):
    """Does the work of an event, and then commits that it is done."""

    def work(self) -> None:
        self.make_calls()
        for (event_id,) in self.database.execute("SELECT id FROM events WHERE NOT is_done").fetchall():
            with self.database:
                self.do_work(event_id)
            with self.database:
                self.database.execute("UPDATE events SET is_done = 1 WHERE id = ?", (event_id,))
