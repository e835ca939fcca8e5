"""A clinic with our outbox and inbox needs only its own work; what its handlers did is counted for it."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from followup import FollowUp, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver.simulation import Booking, OutboxClinic, simulate
from followup_mockserver.simulation.history import Book, CrashAtCommit, History, PassTime, Work, seed_of

ONCE = "Promise: The work of every genuine webhook event is done exactly once."


class Calendar(OutboxClinic):
    """A clinic without a receiver."""

    receiver_url = None

    def start(self, client: FollowUp, folder: Path) -> None:
        self.file = folder / "clinic.db"
        self.database = sqlite3.connect(self.file)
        self.database.execute("CREATE TABLE IF NOT EXISTS bookings (id TEXT PRIMARY KEY, start_at TEXT)")
        self.database.execute("CREATE TABLE IF NOT EXISTS effects (event_id TEXT)")
        self.outbox = Outbox(f"sqlite:///{self.file}")
        self.outbox.create_tables()

    def book(self, booking: Booking) -> None:
        patient: Any = {"phone": booking.phone, "full_name": booking.full_name}
        event = inbound.appointment_created(patient=patient, external_id=booking.external_id, start_at=booking.start_at)
        self.save(booking, booking.start_at, event)

    def reschedule(self, booking: Booking) -> None:
        event = inbound.appointment_rescheduled(external_id=booking.external_id, start_at=booking.start_at)
        self.save(booking, booking.start_at, event)

    def cancel(self, booking: Booking) -> None:
        self.save(booking, None, inbound.appointment_cancelled(external_id=booking.external_id))

    def save(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
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


class FailsAfterItsCommit(OverAnotherConnection):
    def handle(self, received: Received) -> None:
        super().handle(received)
        if received.attempt == 1:
            raise RuntimeError


class LacksAHandler(Receiving):
    def register(self) -> None:
        self.inbox.on("appointment.created", "appointment.rescheduled", "appointment.cancelled")(self.handle)


class ParsesTheBody(Receiving):
    """Passes JSON on that it has parsed and written again."""

    def receiver(self) -> Any:
        def receive(request: httpx.Request) -> httpx.Response:
            body = httpx.Response(200, content=request.content).json()
            return httpx.Response(
                self.inbox.receive(httpx.Request("POST", "", json={**body, "x": 1}).content, request.headers)
            )

        return receive


@pytest.mark.parametrize("clinic", [Calendar, Receiving, InOwnTransaction])
def test_a_correct_integration_keeps_every_promise(clinic: type[OutboxClinic]) -> None:
    simulate(clinic, examples=4, seed=1)


ARRIVED = (Book(0, 0), Work(), PassTime(1))
"""A booking whose webhooks are in the inbox."""

CUT_OFF = (*ARRIVED, CrashAtCommit(4), Work())
"""The third commit is not made: that of the mark that the first event is done."""


@pytest.mark.parametrize(
    ("clinic", "history", "problem"),
    [
        (InTwoTransactions, CUT_OFF, "was done 2 times."),
        (OverAnotherConnection, CUT_OFF, "was done 2 times."),
        (FailsAfterItsCommit, ARRIVED, "was done 2 times."),
        (LacksAHandler, ARRIVED, "was not done."),
        (ParsesTheBody, ARRIVED, "was not done."),
    ],
)
def test_work_that_is_done_twice_or_never_is_found(clinic: type[OutboxClinic], history: History, problem: str) -> None:
    with pytest.raises(AssertionError) as found:
        simulate(clinic, examples=1, seed=seed_of(history))
    promise, detail, _ = str(found.value).split("\n\n")[2].splitlines()
    assert promise == ONCE
    assert detail.endswith(problem)


@pytest.mark.parametrize("clinic", [Receiving, InOwnTransaction])
@pytest.mark.parametrize("point", range(6))
def test_a_handler_that_is_cut_off_at_any_commit_is_repeated_once(clinic: type[OutboxClinic], point: int) -> None:
    simulate(clinic, examples=1, seed=seed_of((*ARRIVED, CrashAtCommit(point), Work())))


def test_a_run_that_was_rolled_back_does_not_count() -> None:
    class FailsAtFirst(Receiving):
        def handle(self, received: Received) -> None:
            super().handle(received)
            if received.attempt == 1:
                raise RuntimeError

    simulate(FailsAtFirst, examples=3, seed=1)


def test_a_receiver_without_an_inbox_is_named() -> None:
    class WithoutInbox(Calendar):
        receiver_url = OutboxClinic.receiver_url

    with pytest.raises(AssertionError, match=r"WithoutInbox\.start\(\) must set self\.inbox; without a receiver"):
        simulate(WithoutInbox, examples=1, seed=1)
