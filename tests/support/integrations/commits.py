"""Integrations with one bug each, which shows only when the process ends before or after a commit."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from followup import FollowUp, WebhookEvent
from followup_mockserver.simulation import Booking
from support.integrations.intentions import SCHEMA, Intentions
from support.integrations.stores import Stores
from support.integrations.transactions import WithDjango, WithOrm, row_of

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


class CommitsInTheHelper(Intentions):
    """Saves with a helper that has a ``with connection`` of its own, which commits the transaction around it."""

    def believe(self, booking: Booking, start_at: datetime | None) -> None:
        with self.database:
            super().believe(booking, start_at)


class CommitsEachStatement(Intentions):
    """Uses a connection in autocommit mode, for which ``with connection`` is no transaction."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.database.isolation_level = None


class CommitsInALoop(WithOrm):
    """Adds what belongs together in a loop that commits each time."""

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        with Session(self.engine) as session:
            for add in (lambda: session.merge(row_of(booking, start_at)), lambda: self.outbox.record(session, event)):
                add()
                session.commit()


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


class RemembersBeforeItsWork(Intentions):
    """Commits the row by which it knows a repeated event, and then does the work in the handler."""

    def accept(self, event: WebhookEvent) -> None:
        try:
            with self.database:
                self.database.execute("INSERT INTO events (id, is_done) VALUES (?, 1)", (event.id,))
        except sqlite3.IntegrityError:
            return
        with self.database:
            self.do_work(event.id)


class AdvancesFirst(Intentions):
    """Commits how far it has read, and then does the work of what it has read."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.database.execute("CREATE TABLE IF NOT EXISTS positions (seq INTEGER)")

    def work(self) -> None:
        self.make_calls()
        new = "SELECT rowid, id FROM events WHERE rowid > (SELECT coalesce(max(seq), 0) FROM positions)"
        events = self.database.execute(new).fetchall()
        with self.database:
            self.database.executemany("INSERT INTO positions VALUES (?)", [(seq,) for seq, _ in events])
        for _, event_id in events:
            with self.database:
                self.do_work(event_id)
