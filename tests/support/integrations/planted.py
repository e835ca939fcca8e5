"""Integrations with one bug each, of the kinds that teams make. Each differs from a correct one where the bug is."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from followup import (
    APIStatusError,
    Appointment,
    FollowUp,
    FollowUpError,
    WebhookEvent,
    WebhookSignatureError,
    construct_event,
    inbound,
)
from followup_mockserver.simulation import Booking
from support.integrations.intentions import Intentions
from support.integrations.reconciling import Reconciling

# --- sending -------------------------------------------------------------------------------------------------------


class SendsAfterCommit(Intentions):
    """Commits, and then calls the service: a crash in between, or a failed call, is forgotten."""

    def commit(self, booking: Booking, start_at: datetime | None, kind: str, arguments: dict[str, Any]) -> None:
        with self.database:
            self.believe(booking, start_at)
        self.call(booking.external_id, kind, arguments, self.key_for(booking))


class SendsBeforeCommit(Intentions):
    """Calls the service, and then commits: after a crash in between, the service has what the clinic does not know."""

    def commit(self, booking: Booking, start_at: datetime | None, kind: str, arguments: dict[str, Any]) -> None:
        self.call(booking.external_id, kind, arguments, self.key_for(booking))
        with self.database:
            self.believe(booking, start_at)


class QueuesInMemory(Intentions):
    """Keeps what it has to send in memory, where it does not survive a crash."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.queue: list[tuple[str, str, dict[str, Any], str]] = []

    def intend(self, booking: Booking, kind: str, arguments: dict[str, Any]) -> None:
        self.queue.append((booking.external_id, kind, arguments, self.key_for(booking)))

    def make_calls(self) -> None:
        while self.queue:
            self.call(*self.queue[0])
            self.queue.pop(0)


class MarksBeforeSending(Intentions):
    """Marks a call as done before it makes it, so that no other worker takes it; a call that fails is lost."""

    def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
        with self.database:
            self.database.execute("UPDATE calls SET is_done = 1 WHERE key = ?", (key,))
        super().call(external_id, kind, arguments, key)


class GivesUp(Intentions):
    """Takes every error of the service for a permanent one, also a 429 or a 503."""

    def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
        try:
            super().call(external_id, kind, arguments, key)
        except APIStatusError:
            return


class Overtakes(Intentions):
    """Retries a failed call after later calls about the same booking."""

    def make_calls(self) -> None:
        rows = self.database.execute("SELECT * FROM calls WHERE NOT is_done ORDER BY seq").fetchall()
        for seq, external_id, kind, arguments, key, _ in rows:
            try:
                self.call(external_id, kind, json.loads(arguments), key)
            except (FollowUpError, AssertionError):
                continue
            self.finish(seq)


class KeysOfPhones(Intentions):
    """Derives the idempotency key of a booking from the patient's phone, which two bookings may share."""

    def key_for(self, booking: Booking) -> str:
        return f"book-{booking.phone}"


class ForgetsToCancel(Intentions):
    """Does not send a cancellation if the service does not have the booking yet, which still waits to be sent."""

    def cancel(self, booking: Booking) -> None:
        sent = "SELECT 1 FROM calls WHERE external_id = ? AND kind = 'create' AND is_done"
        if self.database.execute(sent, (booking.external_id,)).fetchone():
            super().cancel(booking)
        else:
            with self.database:
                self.believe(booking, None)


class ReadsOnePage(Reconciling):
    """Compares its bookings with the first page of the appointments only."""

    async def appointments(self) -> list[Appointment]:
        return (await self.async_client.appointments.list()).data


# --- events --------------------------------------------------------------------------------------------------------


class SendsEvents(Intentions):
    """Correct: sends its changes as events in batches, with ids that are stored, and looks at each result."""

    def commit(self, booking: Booking, start_at: datetime | None, kind: str, arguments: dict[str, Any]) -> None:
        before = self.bookings()
        if kind == "cancel" and before[booking.external_id] is None:
            return  # a person repeats what a crash hid; the service would reject the batch with a second cancellation
        super().commit(booking, start_at, kind, arguments)

    def make_calls(self) -> None:
        rows = self.database.execute("SELECT * FROM calls WHERE NOT is_done ORDER BY seq").fetchall()
        subjects = set()
        batch: dict[int, Any] = {}
        for seq, external_id, kind, arguments, key, _ in rows:
            if external_id not in subjects:
                batch[seq] = self.event(external_id, kind, json.loads(arguments), key)
            subjects.add(external_id)
        if batch:
            self.send(batch)

    def event(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> Any:
        if kind == "create":
            return inbound.appointment_created(id=key, external_id=external_id, **arguments)
        if kind == "cancel":
            return inbound.appointment_cancelled(id=key, external_id=external_id)
        return inbound.appointment_rescheduled(id=key, external_id=external_id, **arguments)

    def send(self, batch: dict[int, Any]) -> None:
        results = self.client.events.create(list(batch.values())).results
        for seq, result in zip(batch, results, strict=True):
            if result.accepted:
                self.finish(seq)


class IgnoresResults(SendsEvents):
    """Takes a 200 for the whole batch to mean that each event was accepted."""

    def send(self, batch: dict[int, Any]) -> None:
        self.client.events.create(list(batch.values()))
        for seq in batch:
            self.finish(seq)


class MakesNewIds(SendsEvents):
    """Makes a new id for each try, and goes on with later changes of the booking after a failure."""

    def make_calls(self) -> None:
        rows = self.database.execute("SELECT * FROM calls WHERE NOT is_done ORDER BY seq").fetchall()
        for seq, external_id, kind, arguments, _, _ in rows:
            try:
                self.send({seq: self.event(external_id, kind, json.loads(arguments), f"try-{self.tries()}")})
            except FollowUpError:
                continue

    def tries(self) -> int:
        with self.database:
            self.database.execute("CREATE TABLE IF NOT EXISTS tries (number INTEGER PRIMARY KEY)")
            return int(self.database.execute("INSERT INTO tries DEFAULT VALUES").lastrowid or 0)


# --- webhooks ------------------------------------------------------------------------------------------------------


class DeduplicatesFirst(Intentions):
    """Notes an event as seen, and then does its work; if the work fails, the retry is taken for a duplicate."""

    def accept(self, event: WebhookEvent) -> None:
        with self.database:
            inserting = "INSERT OR IGNORE INTO events (id, is_done) VALUES (?, 1)"
            if self.database.execute(inserting, (event.id,)).rowcount == 0:
                return
        event.retrieve(self.client)
        with self.database:
            self.do_work(event.id)


class DeduplicatesLast(Intentions):
    """Does the work of an event, and then notes it as seen; a crash in between repeats the work."""

    def accept(self, event: WebhookEvent) -> None:
        if self.database.execute("SELECT 1 FROM events WHERE id = ?", (event.id,)).fetchone():
            return
        with self.database:
            self.do_work(event.id)
        event.retrieve(self.client)
        with self.database:
            self.database.execute("INSERT INTO events (id, is_done) VALUES (?, 1)", (event.id,))


class RemembersInMemory(Intentions):
    """Keeps the ids of the events that it has seen in memory, where they do not survive a crash."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.seen: set[str] = set()

    def accept(self, event: WebhookEvent) -> None:
        if event.id not in self.seen:
            with self.database:
                self.do_work(event.id)
            self.seen.add(event.id)


class RespondsFirst(Intentions):
    """Responds with a 204 before it has stored the event, which is lost in a crash."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.arrived: list[WebhookEvent] = []

    def accept(self, event: WebhookEvent) -> None:
        self.arrived.append(event)

    def work(self) -> None:
        while self.arrived:
            super().accept(self.arrived.pop(0))
        super().work()


class BelievesOldEvents(Intentions):
    """Takes over the time in each webhook, also in one that arrives after newer ones."""

    def accept(self, event: WebhookEvent) -> None:
        super().accept(event)
        appointment = event.appointment
        if appointment is not None and appointment.status != "cancelled":
            moving = "UPDATE bookings SET start_at = ? WHERE external_id = ? AND start_at IS NOT NULL"
            with self.database:
                self.database.execute(moving, (appointment.start_at.isoformat(), appointment.external_id))


class AcceptsOldRequests(RemembersInMemory):
    """Checks the signature but not the timestamp, and forgets old events, so that an old request is new again."""

    def verified(self, request: httpx.Request) -> WebhookEvent:
        return construct_event(request.content, request.headers, self.secret, tolerance=None)

    def receive(self, request: httpx.Request) -> httpx.Response:
        try:
            event = self.verified(request)
        except WebhookSignatureError:
            return httpx.Response(400)
        self.accept(event)
        self.seen = {event.id}  # the latest one is enough, somebody thought
        return httpx.Response(204)
